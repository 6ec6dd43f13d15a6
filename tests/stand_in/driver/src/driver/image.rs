//! Images of modules: PTX, with the library of the stand-in for NVRTC in a comment.

use std::sync::Arc;

use super::call;
use super::code::{Code, Outcome};
use super::entry::Entry;
use super::machine;
use super::ptx;
use crate::code_library::{self, CodeLibrary};

/// What a module is made of.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) entries: Vec<Entry>,
    /// The library in the image, if the stand-in for NVRTC made it.
    pub(super) library: Option<Arc<CodeLibrary>>,
    /// The PTX version: 88 for 8.8.
    pub(super) version: i32,
}

/// Reads an image. Rejects PTX that is too new for the driver or for the device.
pub(super) fn read(image: &[u8]) -> Outcome<Image> {
    let library = library(image)?;
    let ptx = ptx::parse(image)?;
    check(&ptx)?;
    Ok(Image { entries: ptx.entries, library, version: ptx.version })
}

fn library(image: &[u8]) -> Outcome<Option<Arc<CodeLibrary>>> {
    let text = std::str::from_utf8(image).unwrap_or_default();
    let library = code_library::in_ptx(text).map(|library| CodeLibrary::load(&library));
    library.transpose().map(|library| library.map(Arc::new)).map_err(|fault| {
        call::note(format!("the library in the module cannot be loaded: {fault}"));
        Code::INVALID_IMAGE
    })
}

fn check(image: &ptx::Ptx) -> Outcome {
    let settings = machine::settings();
    let [major, minor] = settings.compute_capability;
    if image.version > ptx_version(settings.driver_version) {
        return Err(Code::UNSUPPORTED_PTX_VERSION);
    }
    if image.target > 10 * major + minor { Err(Code::INVALID_PTX) } else { Ok(()) }
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
