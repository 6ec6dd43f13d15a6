//! The source is a copy of its own.
use resident::ndarray::s;
use resident::{Device, DeviceArray, Result};

pub(crate) fn main() -> Result<()> {
    let mut line = DeviceArray::<f32, _>::full_on(&Device::cpu().stream(), 4, 0.5)?;
    let head = line.slice(s![..3]).to_contiguous()?;
    line.slice_mut(s![1..]).copy_from_device(&head)
}
