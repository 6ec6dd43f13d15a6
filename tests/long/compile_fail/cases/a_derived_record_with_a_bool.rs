//! A record of elements.
//! Wrong: a field that is no element.
//~ is_alive: u8 => is_alive: bool
//~ is_alive: 1 => is_alive: true
use resident::{Element, SmartArray};

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Cell {
    kind: u8,
    is_alive: u8,
}

pub(crate) fn main() {
    let cells = SmartArray::from(vec![Cell { kind: 0, is_alive: 1 }; 4]);
    assert_eq!(cells.len(), 4);
}
