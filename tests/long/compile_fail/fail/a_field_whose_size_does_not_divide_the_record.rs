//! A field of 12 bytes in records of 16.
use resident::bytemuck::{Pod, Zeroable};
use resident::{SmartArray, field};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

fn main() -> resident::Result<()> {
    let cloud = SmartArray::<Particle, _>::zeros(4);
    assert_eq!(field!(cloud, Particle, position).host()?.len(), 4);
    Ok(())
}
