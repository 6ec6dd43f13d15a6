//! The elements of a copy that may still be in progress.
use resident::{Device, DeviceArray, Result};

fn main() -> Result<()> {
    let stream = Device::cpu().stream();
    let line = DeviceArray::<f32, _>::full_on(&stream, 4, 0.5)?;
    let copy = line.copy_to_host_on(&stream)?;
    assert_eq!(copy[0], 0.5);
    Ok(())
}
