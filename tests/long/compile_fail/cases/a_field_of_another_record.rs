//! A field of the array's record.
//! Wrong: a field of another record than the array's.
//~ cloud, Particle => cloud, Body
use resident::bytemuck::{Pod, Zeroable};
use resident::{SmartArray, field};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Body {
    mass: f32,
}

pub(crate) fn main() -> resident::Result<()> {
    assert_eq!(Body { mass: 0.0 }.mass, 0.0);
    let cloud = SmartArray::<Particle, _>::zeros(4);
    assert_eq!(field!(cloud, Particle, mass).host()?.sum(), 0.0);
    Ok(())
}
