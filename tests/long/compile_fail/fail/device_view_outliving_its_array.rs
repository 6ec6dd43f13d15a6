//! A view of a device array that is gone.
use resident::ndarray::{Ix1, s};
use resident::{Device, DeviceArray, DeviceView, Result};

fn main() -> Result<()> {
    let head: DeviceView<'_, f32, Ix1>;
    {
        let line = DeviceArray::<f32, _>::full_on(&Device::cpu().stream(), 4, 0.5)?;
        head = line.slice(s![..3]);
    }
    assert_eq!(head.get(0)?, 0.5);
    Ok(())
}
