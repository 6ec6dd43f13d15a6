//! The field of the parameter's type.
//! Wrong: a field of type `u32` for a parameter of `f32`.
//~ Particle, mass => Particle, id
use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::Ix1;
use resident::{Device, Grid, In, Kernel, SmartArray, field};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    id: u32,
    mass: f32,
}

pub(crate) fn main() -> resident::Result<()> {
    let sum = Kernel::<(In<f32, Ix1>,)>::new("sum").host(|_grid, (_,)| {});
    let cloud = SmartArray::<Particle, _>::zeros(4);
    sum.launch_on(&Device::cpu().stream(), Grid::cover(4), (&field!(cloud, Particle, mass),))
}
