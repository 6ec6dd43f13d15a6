//! An array of `bool`, and a parameter.
use resident::{In, Kernel, Result, SmartArray};

fn main() -> Result<()> {
    let flags = SmartArray::from(vec![true; 4]);
    let any = Kernel::<(bool, In<u8>)>::new("any");
    println!("{} {}", flags.len(), any.name());
    Ok(())
}
