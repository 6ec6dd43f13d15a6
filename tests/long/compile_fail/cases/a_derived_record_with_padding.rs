//! A record without padding.
//! Wrong: a field that needs more alignment than its place has.
//~ number: u32 => number: u64
use resident::{Element, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Sample {
    kind: [u8; 4],
    number: u32,
}

pub(crate) fn main() {
    let samples = SmartArray::from(vec![Sample { kind: [0; 4], number: 1 }; 4]);
    assert_eq!(samples.len(), 4);
}
