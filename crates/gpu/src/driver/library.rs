//! Opens a driver's library, and looks up its functions.

use std::ffi::{OsStr, OsString};

use libloading::Library;

use super::cuda_like_vendor::CudaLikeVendor;
use super::function::DriverFunction;
use resident_backend::environment;

/// A driver's library, and whose it is.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub(super) library: Library,
    pub(super) vendor: &'static CudaLikeVendor,
}

impl Symbols {
    /// A function that every version has.
    ///
    /// # Safety
    ///
    /// `F` is the type of the function with that name.
    pub(super) unsafe fn needed<F: Copy>(
        &self,
        cuda: &'static str,
        hip: &'static str,
    ) -> Result<DriverFunction<F>, String> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.optional(cuda, hip) }
            .ok_or_else(|| format!("it has no function {}", self.vendor.own([cuda, hip])))
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
    ) -> Option<DriverFunction<F>> {
        let symbol = self.vendor.own([cuda, hip]);
        if symbol.is_empty() {
            return None;
        }
        // SAFETY: the caller promises the type. The library stays open for the life of the process
        // (`Driver`), so the pointer does not dangle.
        let function = *unsafe { self.library.get::<F>(symbol.as_bytes()) }.ok()?;
        let name = symbol.strip_suffix("_v2").unwrap_or(symbol);
        Some(DriverFunction { function, name, vendor: self.vendor })
    }
}

/// An environment variable that names the file of a library. If it is set, no other file is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileVariable {
    pub name: &'static str,
    /// What the library is.
    pub library: &'static str,
    /// The files that the variable may name.
    pub expected: &'static str,
}

impl FileVariable {
    /// The file, if the variable is set.
    pub(crate) fn file(&self) -> Option<OsString> {
        environment::text(self.name)
    }

    /// The error for a file that cannot be used.
    #[cold]
    pub(crate) fn misnamed(&self, file: &OsStr, fault: &str) -> String {
        let Self { name, library, expected } = self;
        format!(
            "{name} names {} as {library}, and that cannot be used: {fault}; let it name \
             {expected}, or unset it",
            file.display()
        )
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
