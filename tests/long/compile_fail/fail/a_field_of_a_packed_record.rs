//! A field that is not aligned.
use resident::bytemuck::{Pod, Zeroable};
use resident::{SmartArray, field};

#[repr(C, packed)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Sample {
    kind: [u8; 4],
    value: f32,
}

fn main() -> resident::Result<()> {
    let samples = SmartArray::<Sample, _>::zeros(4);
    assert_eq!(field!(samples, Sample, value).host()?.len(), 4);
    Ok(())
}
