//! A record with three bytes that belong to no field.
use resident::bytemuck::{Pod, Zeroable};
use resident::{Result, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    kind: u8,
    mass: f32,
}

fn main() -> Result<()> {
    let cloud = SmartArray::from(vec![Particle { kind: 1, mass: 2.0 }; 4]);
    let first = cloud.get(0)?;
    assert!(first.kind == 1 && first.mass == 2.0);
    Ok(())
}
