//! A record with the layout of C.
//! Wrong: a record whose layout Rust chooses.
//~ #[repr(C)] => #[repr(align(8))]
use resident::{Element, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Sample {
    kind: u32,
    number: u32,
}

pub(crate) fn main() {
    let samples = SmartArray::from(vec![Sample { kind: 0, number: 1 }; 4]);
    assert_eq!(samples.len(), 4);
}
