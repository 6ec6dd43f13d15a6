//! Opens a driver's library, and looks up its functions.

use std::ffi::OsStr;

use libloading::Library;

use super::function::Function;
use super::vendor::Vendor;
use resident_backend::DeviceKind;

/// A driver's library, and whose it is.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub(super) library: Library,
    pub(super) vendor: &'static Vendor,
}

impl Symbols {
    /// The one of a function's names in CUDA and in HIP that this library has.
    pub(super) fn name(&self, cuda: &'static str, hip: &'static str) -> &'static str {
        if self.vendor.kind == DeviceKind::Hip { hip } else { cuda }
    }

    /// A function that every version has.
    ///
    /// # Safety
    ///
    /// `F` is the type of the function with that name.
    pub(super) unsafe fn needed<F: Copy>(
        &self,
        cuda: &'static str,
        hip: &'static str,
    ) -> Result<Function<F>, String> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.optional(cuda, hip) }
            .ok_or_else(|| format!("it has no function {}", self.name(cuda, hip)))
    }

    /// A function that other versions, or the other driver, lack.
    ///
    /// # Safety
    ///
    /// As [`needed`](Self::needed).
    pub(super) unsafe fn optional<F: Copy>(
        &self,
        cuda: &'static str,
        hip: &'static str,
    ) -> Option<Function<F>> {
        let symbol = self.name(cuda, hip);
        if symbol.is_empty() {
            return None;
        }
        // SAFETY: the caller promises the type. The library stays open for the life of the process
        // (`Driver`), so the pointer does not dangle.
        let function = *unsafe { self.library.get::<F>(symbol.as_bytes()) }.ok()?;
        let name = symbol.strip_suffix("_v2").unwrap_or(symbol);
        Some(Function { function, name, vendor: self.vendor })
    }
}

/// Opens a driver's or a compiler's library.
pub(crate) fn open(file: &OsStr) -> Result<Library, libloading::Error> {
    // SAFETY: opening runs the library's initialisers. The library is a GPU's driver or compiler,
    // which any program for GPUs opens in this way, or the file that the environment names.
    unsafe { Library::new(file) }
}

/// Opens the first file that can be opened.
pub(super) fn open_first(files: &[String]) -> Option<Library> {
    files.iter().find_map(|file| open(file.as_ref()).ok())
}
