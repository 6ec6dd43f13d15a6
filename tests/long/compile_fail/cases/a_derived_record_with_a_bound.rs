//! A record of an element.
//! Wrong: a record of a `bool`, with a bound in which a group comes before the fields.
//~ struct Switch { => struct Switch where (): Copy {
//~ state: u8 => state: bool
//~ state: 1 => state: true
use resident::{Element, bytemuck};

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Switch {
    state: u8,
}

pub(crate) fn main() {
    assert_eq!(bytemuck::bytes_of(&Switch { state: 1 }), [1]);
}
