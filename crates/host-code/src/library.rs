//! A shared library that a compiler made of a source.

use std::ffi::c_void;
use std::ops::Range;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::faults::{self, LoadedCode};
use super::kernel_list::{self, KernelList, ListedKernel};
use super::sanitizer::{CheckedLibrary, TakeCalls};
use super::static_shared::StaticShared;
use super::temporary_files::{self, TemporaryFile};
use super::thread_memory::{OfThread, ThreadMemory};
use super::translation::Translation;
use super::variables::Variables;

/// A loaded library, the module of a source. It is never unloaded while a body refers to it.
#[derive(Debug)]
pub(super) struct Library {
    kernels: Vec<ListedKernel>,
    /// The source's variables.
    pub(super) variables: Variables,
    /// Read while a kernel runs, and written while the host accesses a variable.
    pub(super) running: RwLock<()>,
    checked: Option<CheckedLibrary>,
    /// The memory for each thread of the machine, where it is known.
    thread_memory: Option<ThreadMemory>,
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
        let list = unsafe { function::<KernelList>(&library, "resident_host_kernels") }?;
        // SAFETY: it is the function that the library exports by this name.
        let mut kernels = unsafe { kernel_list::read(list) };
        let mut addresses = None;
        if cfg!(target_os = "linux") {
            // SAFETY: `exports.hpp` defines the function with this type.
            let code = unsafe { function::<Code>(&library, "resident_host_code") }?;
            addresses = Some(code_addresses(code));
        }
        let names = kernels.iter().map(|kernel| &*kernel.name).collect::<Vec<_>>();
        let code = addresses.clone().map(|code| LoadedCode::new(code, &names.join("\" or \"")));
        let start = addresses.map_or(0, |code| code.start);
        let variables = Variables::read(image, start, translation.dynamic_arrays());
        if let Some(shared) = StaticShared::read(image, translation.dynamic_arrays()) {
            for kernel in &mut kernels {
                kernel.shared_bytes = shared.of((kernel.run as usize).wrapping_sub(start) as u64);
            }
        }
        let mut checked = None;
        if translation.is_checked() {
            // SAFETY: `hooks.hpp` defines the function with this type.
            let calls = unsafe { function::<TakeCalls>(&library, "resident_host_sanitize") }?;
            let pointers = translation.dynamic_arrays();
            checked = Some(CheckedLibrary::new(calls, image, translation.file(), pointers)?);
        }
        // SAFETY: `exports.hpp` defines the function with this type.
        let of_thread = unsafe { function::<OfThread>(&library, "resident_host_of_thread") }?;
        // SAFETY: it is the function that the library exports by this name.
        let thread_memory = unsafe { ThreadMemory::read(image, of_thread) };
        let (_library, _file, _code) = (library, file, code);
        let running = RwLock::new(());
        Ok(Self { kernels, variables, running, checked, thread_memory, _code, _library, _file })
    }

    /// A kernel by the name of its function, or by the name expression by which it is listed.
    pub(super) fn kernel(&self, entry: &str) -> Option<&ListedKernel> {
        self.kernels.iter().find(|kernel| kernel.name == entry)
    }

    /// Keeps the host from the library's variables, if it has any.
    pub(super) fn run(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let lock = || self.running.read().unwrap_or_else(PoisonError::into_inner);
        (!self.variables.is_empty()).then(lock)
    }

    /// The memory that it has for each thread of the machine, if that is known.
    pub(super) fn thread_memory(&self) -> Option<&ThreadMemory> {
        self.thread_memory.as_ref()
    }

    /// What the checker needs, if the code is to be checked.
    pub(super) fn checked(&self) -> Option<&CheckedLibrary> {
        self.checked.as_ref()
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

/// `resident_host_code`.
type Code = unsafe extern "C" fn(*mut *const c_void);

/// Where the library's code is.
fn code_addresses(code: Code) -> Range<usize> {
    let mut addresses = [std::ptr::null(); 2];
    // SAFETY: the function writes two pointers (`exports.hpp`).
    unsafe { code(addresses.as_mut_ptr()) };
    addresses[0].addr()..addresses[1].addr()
}
