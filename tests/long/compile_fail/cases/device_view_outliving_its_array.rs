//! The array lives as long as its view.
//! Wrong: a view of a device array that is gone.
//~     let line =>     let head: DeviceView<'_, f32, Ix1>;\n    {\n        let line
//~     let head: DeviceView<'_, f32, Ix1> = =>         head =
//~ (s![..3]); => (s![..3]);\n    }
use resident::ndarray::{Ix1, s};
use resident::{Device, DeviceArray, DeviceView, Result};

pub(crate) fn main() -> Result<()> {
    let line = DeviceArray::<f32, _>::full_on(&Device::cpu().stream(), 4, 0.5)?;
    let head: DeviceView<'_, f32, Ix1> = line.slice(s![..3]);
    assert_eq!(head.get(0)?, 0.5);
    Ok(())
}
