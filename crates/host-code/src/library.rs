//! A shared library that a compiler made of a source.

use std::ffi::{c_uint, c_void};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::runtime::RunBlocks;
use super::sanitizer::{CheckedLibrary, TakeCalls};
use super::stack_overflow::{self, LoadedCode};
use super::translation::Translation;

/// A loaded library. It is never unloaded while a body refers to it.
#[derive(Debug)]
pub(super) struct Library {
    run: RunBlocks,
    parameter_bytes: Vec<usize>,
    checked: Option<CheckedLibrary>,
    _code: Option<LoadedCode>,
    _library: libloading::Library,
}

impl Library {
    /// Loads an image that a compiler wrote of a translation.
    pub(super) fn load(image: &[u8], translation: &Translation) -> Result<Self, String> {
        stack_overflow::install();
        let file = TemporaryFile::new("so")
            .and_then(|file| file.fill(image).map(|()| file))
            .map_err(|fault| format!("the compiled code cannot be written to a file: {fault}"))?;
        // SAFETY: the library is code that a C++ compiler made from the user's source and from this
        // crate's headers. It has no initialisers but those of the source's globals, for which the
        // caller of `Kernel::cuda` vouches.
        let library = unsafe { libloading::Library::new(&file.path) }.map_err(not_loaded)?;
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
        let code = code.map(loaded_code);
        let mut checked = None;
        if translation.is_checked() {
            // SAFETY: `hooks.hpp` defines the function with this type.
            let calls = unsafe { function::<TakeCalls>(&library, "resident_host_sanitize") }?;
            let file = translation.file();
            let pointers = translation.dynamic_arrays();
            checked = Some(CheckedLibrary::new(calls, image, file, pointers)?);
        }
        Ok(Self { run, parameter_bytes, checked, _code: code, _library: library })
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
    format!("the compiled code cannot be loaded: {fault}")
}

/// `resident_host_parameters`.
type Parameters = unsafe extern "C" fn(*mut c_uint) -> *const c_uint;

/// `resident_host_code`.
type Code = unsafe extern "C" fn(*mut *const c_void);

fn loaded_code(code: Code) -> LoadedCode {
    let mut addresses = [std::ptr::null(); 2];
    // SAFETY: the function writes two pointers (`exports.hpp`).
    unsafe { code(addresses.as_mut_ptr()) };
    LoadedCode::new(addresses[0].addr()..addresses[1].addr())
}

/// A file of this process that is removed on drop.
#[derive(Debug)]
pub struct TemporaryFile {
    pub path: PathBuf,
}

impl TemporaryFile {
    /// An empty file with a new name, which no other user can write.
    pub fn new(extension: &str) -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // The loader returns a library that is already loaded from a file of the same name, even if
        // that file has been removed. A process may have several copies of this crate, each with
        // its own numbers, so names tell the copies apart.
        let copy = (&raw const NUMBER).addr();
        loop {
            let process = std::process::id();
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("resident-{process}-{copy:x}-{number}.{extension}");
            let path = std::env::temp_dir().join(name);
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(_file) => return Ok(Self { path }),
                Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    pub fn fill(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(&self.path)?;
        file.write_all(bytes)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that cannot be removed stays in the system's folder for temporary files.
        let _left = std::fs::remove_file(&self.path);
    }
}
