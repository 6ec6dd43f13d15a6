//! A field of the record.
//! Wrong: a field that the record does not have.
//~ Particle, mass => Particle, charge
use resident::bytemuck::{Pod, Zeroable};
use resident::{SmartArray, field};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

pub(crate) fn main() -> resident::Result<()> {
    let cloud = SmartArray::<Particle, _>::zeros(4);
    assert_eq!(field!(cloud, Particle, mass).host()?.sum(), 0.0);
    Ok(())
}
