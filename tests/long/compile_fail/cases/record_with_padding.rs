//! The bytes are a field.
//! Wrong: a record with three bytes that belong to no field.
//~     unused: [u8; 3],\n =>
//~  unused: [0; 3], =>
//~  && first.unused == [0; 3] =>
use resident::bytemuck::{Pod, Zeroable};
use resident::{Result, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    kind: u8,
    unused: [u8; 3],
    mass: f32,
}

pub(crate) fn main() -> Result<()> {
    let cloud = SmartArray::from(vec![Particle { kind: 1, unused: [0; 3], mass: 2.0 }; 4]);
    let first = cloud.get(0)?;
    assert!(first.kind == 1 && first.mass == 2.0 && first.unused == [0; 3]);
    Ok(())
}
