//! An array of `u8`, and a parameter.
use resident::{In, Kernel, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let flags = SmartArray::from(vec![1_u8; 4]);
    let any = Kernel::<(u8, In<u8>)>::new("any");
    println!("{} {}", flags.len(), any.name());
    Ok(())
}
