//! A record without padding after its last field.
//! Wrong: the record is larger than its fields.
//~ kind: [u8; 4] => kind: [u8; 2]
//~ kind: [0; 4] => kind: [0; 2]
use resident::{Element, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Sample {
    number: u32,
    kind: [u8; 4],
}

pub(crate) fn main() {
    let samples = SmartArray::from(vec![Sample { kind: [0; 4], number: 1 }; 4]);
    assert_eq!(samples.len(), 4);
}
