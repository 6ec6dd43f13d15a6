//! An item of that field.
//! Wrong: a field of 12 bytes in records of 16.
//~ position[0] => position
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
    assert_eq!(field!(cloud, Particle, position[0]).host()?.len(), 4);
    Ok(())
}
