//! `u8` as the element of an array and of a kernel's parameter.
//! Wrong: `bool` as the element of both.
//~ 1_u8 => true
//~ (u8, => (bool,
use resident::{In, Kernel, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let flags = SmartArray::from(vec![1_u8; 4]);
    let any = Kernel::<(u8, In<u8>)>::new("any");
    println!("{} {}", flags.len(), any.name());
    Ok(())
}
