//! Elements of a device array copied to others of the same array.
use resident::ndarray::s;
use resident::{Device, DeviceArray, Result};

fn main() -> Result<()> {
    let mut line = DeviceArray::<f32, _>::full_on(&Device::cpu().stream(), 4, 0.5)?;
    let mut tail = line.slice_mut(s![1..]);
    tail.copy_from_device(&line.slice(s![..3]))
}
