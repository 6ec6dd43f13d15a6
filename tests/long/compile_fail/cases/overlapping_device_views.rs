//! The source is a copy of its own.
//! Wrong: elements of a device array copied to others of the same array.
//~ let head = line.slice(s![..3]).to_contiguous()? => let mut tail = line.slice_mut(s![1..])
//~ line.slice_mut(s![1..]).copy_from_device(&head) => tail.copy_from_device(&line.slice(s![..3]))
use resident::ndarray::s;
use resident::{Device, DeviceArray, Result};

pub(crate) fn main() -> Result<()> {
    let mut line = DeviceArray::<f32, _>::full_on(&Device::cpu().stream(), 4, 0.5)?;
    let head = line.slice(s![..3]).to_contiguous()?;
    line.slice_mut(s![1..]).copy_from_device(&head)
}
