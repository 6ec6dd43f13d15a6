//! A record of one number.
//! Wrong: an enum, of which not all bytes are valid.
//~ struct Kind(u32); => enum Kind { Solid = 1 }
//~ Kind(1) => Kind::Solid
use resident::{Element, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Kind(u32);

pub(crate) fn main() {
    let kinds = SmartArray::from(vec![Kind(1); 4]);
    assert_eq!(kinds.len(), 4);
}
