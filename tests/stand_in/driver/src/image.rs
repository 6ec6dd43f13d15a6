//! Images of modules: PTX, with the library of the stand-in for NVRTC in a comment.

use std::sync::Arc;

use crate::code::{INVALID_PTX, UNSUPPORTED_PTX_VERSION};
use crate::ptx;
use resident_stand_in_code::library::{CodeLibrary, in_ptx};
use resident_stand_in_gpu::code::Outcome;
use resident_stand_in_gpu::entry::Image;
use resident_stand_in_gpu::machine;

/// Reads an image. Rejects PTX that is too new for the driver or for the device.
pub(crate) fn read(image: &[u8]) -> Outcome<Image> {
    let library = library(image)?;
    let ptx = ptx::parse(image)?;
    check(&ptx)?;
    Ok(Image { entries: ptx.entries, library, version: ptx.version })
}

fn library(image: &[u8]) -> Outcome<Option<Arc<CodeLibrary>>> {
    let text = std::str::from_utf8(image).unwrap_or_default();
    in_ptx(text).map(|library| Image::load(&library)).transpose()
}

fn check(image: &ptx::Ptx) -> Outcome {
    let settings = machine::settings();
    let [major, minor] = settings.compute_capability;
    if image.version > ptx_version(settings.version) {
        return Err(UNSUPPORTED_PTX_VERSION);
    }
    if image.target > 10 * major + minor { Err(INVALID_PTX) } else { Ok(()) }
}

/// The newest PTX version that a driver accepts, given the driver's CUDA version. For example,
/// 12080 is CUDA 12.8, which accepts PTX 8.7.
fn ptx_version(driver_version: i32) -> i32 {
    let (major, minor) = (driver_version / 1000, driver_version % 1000 / 10);
    match (major, minor) {
        (..=11, _) => 70 + minor,
        (12, 0..=5) => 80 + minor,
        (12, _) => 80 + minor - 1,
        _ => 10 * (major - 4) + minor,
    }
}
