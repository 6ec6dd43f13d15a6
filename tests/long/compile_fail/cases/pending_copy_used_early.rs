//! The copy is waited for.
//! Wrong: the elements of a copy that may still be in progress.
//~ .wait()? =>
use resident::{Device, DeviceArray, Result};

pub(crate) fn main() -> Result<()> {
    let stream = Device::cpu().stream();
    let line = DeviceArray::<f32, _>::full_on(&stream, 4, 0.5)?;
    let copy = line.copy_to_host_on(&stream)?.wait()?;
    assert_eq!(copy[0], 0.5);
    Ok(())
}
