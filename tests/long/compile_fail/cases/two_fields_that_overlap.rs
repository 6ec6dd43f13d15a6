//! Of different bytes.
//! Wrong: two exclusive views of the same bytes.
//~ position[1] => position[0]
use resident::bytemuck::{Pod, Zeroable};
use resident::{SmartArray, field_mut};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    position: [f32; 3],
    mass: f32,
}

pub(crate) fn main() -> resident::Result<()> {
    let mut cloud = SmartArray::<Particle, _>::zeros(4);
    let (mut x, mut other) = field_mut!(cloud, Particle, position[0], position[1]);
    x.fill(1.0)?;
    other.fill(2.0)
}
