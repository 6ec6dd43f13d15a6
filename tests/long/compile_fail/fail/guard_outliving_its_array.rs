//! A guard that outlives its array.
use resident::{Result, SmartArray};

fn main() -> Result<()> {
    let seen = {
        let array = SmartArray::<f32, _>::ones(8);
        array.host()?
    };
    println!("{}", seen.sum());
    Ok(())
}
