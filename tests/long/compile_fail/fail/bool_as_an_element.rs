//! `bool` as the element of an array and of a kernel's parameter.
use resident::{In, Kernel, Result, SmartArray};

fn main() -> Result<()> {
    let flags = SmartArray::from(vec![true; 4]);
    let any = Kernel::<(bool, In<u8>)>::new("any");
    println!("{} {}", flags.len(), any.name());
    Ok(())
}
