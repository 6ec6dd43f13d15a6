//! Twenty exposures are added up on a device, and no pixel may become brighter than 1.

use resident::ndarray::{Array2, Ix2};
use resident::{Result, SmartArray, ops};

const SHAPE: (usize, usize) = (1024, 768);
const EXPOSURES: usize = 20;

fn picture() -> SmartArray<f32, Ix2> {
    SmartArray::from(Array2::zeros(SHAPE)).named("picture")
}

/// The host limits the pixels, so the picture goes down and up again in each round.
///
/// # Errors
///
/// Those of the device.
pub(crate) fn before() -> Result<f32> {
    let (mut picture, light) = (picture(), SmartArray::full(SHAPE, 0.1_f32));
    for _ in 0..EXPOSURES {
        ops::scaled_add(1.0, &light, &mut picture)?;
        picture.host_mut()?.mapv_inplace(|pixel| pixel.min(1.0));
    }
    picture.max()
}

/// The device limits the pixels.
///
/// # Errors
///
/// Those of the device.
pub(crate) fn after() -> Result<f32> {
    let (mut picture, light) = (picture(), SmartArray::full(SHAPE, 0.1_f32));
    let mut sum = SmartArray::uninit(SHAPE);
    for _ in 0..EXPOSURES {
        ops::add(&picture, &light, &mut sum)?;
        ops::clamp(&sum, 0.0, 1.0, &mut picture)?;
    }
    picture.max()
}
