//! The record is not packed.
//! Wrong: a field that is not aligned.
//~ repr(C) => repr(C, packed)
use resident::bytemuck::{Pod, Zeroable};
use resident::{SmartArray, field};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Sample {
    kind: [u8; 4],
    value: f32,
}

pub(crate) fn main() -> resident::Result<()> {
    let samples = SmartArray::<Sample, _>::zeros(4);
    assert_eq!(field!(samples, Sample, value).host()?.len(), 4);
    Ok(())
}
