//! A shared library that a compiler made of a source.

use std::ffi::{c_uint, c_void};
use std::path::Path;

use super::faults::{self, LoadedCode};
use super::runtime::RunBlocks;
use super::sanitizer::{CheckedLibrary, TakeCalls};
use super::temporary_files::{self, TemporaryFile};
use super::translation::Translation;

/// A loaded library. It is never unloaded while a body refers to it.
#[derive(Debug)]
pub(super) struct Library {
    run: RunBlocks,
    parameter_bytes: Vec<usize>,
    checked: Option<CheckedLibrary>,
    _code: Option<LoadedCode>,
    _library: libloading::Library,
    /// Open as long as the library is loaded, if it was loaded from a file without a name.
    _file: Option<std::fs::File>,
}

/// An open library.
struct Opened {
    library: libloading::Library,
    file: Option<std::fs::File>,
}

/// Opens a library: by way of a file among the temporary ones, or without, if that folder cannot be
/// used.
fn open(image: &[u8]) -> Result<Opened, String> {
    let in_folder = || {
        let file = TemporaryFile::new("so")?;
        file.fill(image)?;
        open_file(&file.path).map_err(|fault| temporary_files::unusable(&fault))
    };
    in_folder().map(|library| Opened { library, file: None }).or_else(|refused| {
        let file = temporary_files::in_memory(image).ok_or(refused.clone())?;
        let path = temporary_files::path_of(&file).ok_or(refused.clone())?;
        open_file(&path).map(|library| Opened { library, file: Some(file) }).map_err(|_| refused)
    })
}

fn open_file(path: &Path) -> Result<libloading::Library, String> {
    // SAFETY: the library is code that a C++ compiler made from the user's source and from this
    // crate's headers. It has no initialisers but those of the source's globals, for which the
    // caller of `Kernel::cuda` vouches.
    unsafe { libloading::Library::new(path) }.map_err(|fault| reason(&fault))
}

impl Library {
    /// Loads an image that a compiler wrote of a translation.
    pub(super) fn load(image: &[u8], translation: &Translation) -> Result<Self, String> {
        faults::install();
        let Opened { library, file } = open(image)?;
        // SAFETY: `exports.hpp` defines the function with this type.
        let run = unsafe { function::<RunBlocks>(&library, "resident_host_run") }?;
        // SAFETY: as above.
        let parameters = unsafe { function::<Parameters>(&library, "resident_host_parameters") }?;
        let mut count = 0;
        // SAFETY: the function writes one number.
        let sizes = unsafe { parameters(&raw mut count) };
        // SAFETY: the function has returned a static array of so many numbers.
        let sizes = unsafe { std::slice::from_raw_parts(sizes, count as usize) };
        let parameter_bytes = sizes.iter().map(|bytes| *bytes as usize).collect();
        let mut code = None;
        if cfg!(target_os = "linux") {
            // SAFETY: `exports.hpp` defines the function with this type.
            code = Some(unsafe { function::<Code>(&library, "resident_host_code") }?);
        }
        let code = code.map(|code| loaded_code(code, translation.entry()));
        let mut checked = None;
        if translation.is_checked() {
            // SAFETY: `hooks.hpp` defines the function with this type.
            let calls = unsafe { function::<TakeCalls>(&library, "resident_host_sanitize") }?;
            let named = (translation.file(), translation.entry());
            let pointers = translation.dynamic_arrays();
            checked = Some(CheckedLibrary::new(calls, image, named, pointers)?);
        }
        Ok(Self { run, parameter_bytes, checked, _code: code, _library: library, _file: file })
    }

    pub(super) fn entry(&self) -> RunBlocks {
        self.run
    }

    /// What the checker needs, if the code is to be checked.
    pub(super) fn checked(&self) -> Option<&CheckedLibrary> {
        self.checked.as_ref()
    }

    /// The size of each parameter of the kernel.
    pub(super) fn parameter_bytes(&self) -> Vec<usize> {
        self.parameter_bytes.clone()
    }
}

/// # Safety
///
/// The library's function has the type `F`, and the library stays loaded while it is used.
unsafe fn function<F: Copy>(library: &libloading::Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller promises this.
    unsafe { library.get::<F>(name) }.map(|function| *function).map_err(not_loaded)
}

fn not_loaded(fault: libloading::Error) -> String {
    format!("the compiled code cannot be loaded: {}", reason(&fault))
}

/// What the loader says.
fn reason(fault: &libloading::Error) -> String {
    std::error::Error::source(fault).map_or_else(|| fault.to_string(), ToString::to_string)
}

/// `resident_host_parameters`.
type Parameters = unsafe extern "C" fn(*mut c_uint) -> *const c_uint;

/// `resident_host_code`.
type Code = unsafe extern "C" fn(*mut *const c_void);

fn loaded_code(code: Code, kernel: &str) -> LoadedCode {
    let mut addresses = [std::ptr::null(); 2];
    // SAFETY: the function writes two pointers (`exports.hpp`).
    unsafe { code(addresses.as_mut_ptr()) };
    LoadedCode::new(addresses[0].addr()..addresses[1].addr(), kernel)
}
