//! The third.
//! Wrong: the fourth of three items.
//~ position[2] => position[3]
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
    assert_eq!(field!(cloud, Particle, position[2]).host()?.len(), 4);
    Ok(())
}
