//! Modules and functions.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::call;
use super::code::{Code, Outcome};
use super::context::Context;
use super::handle::{self, Handle, Object};
use super::machine;
use super::ptx::{self, Entry, Image};
use crate::code_library::{self, CodeLibrary};

/// A loaded module.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) handle: Handle,
    pub(super) context: Handle,
    image: Image,
    library: Option<Arc<CodeLibrary>>,
    /// The functions requested so far.
    functions: Mutex<Vec<Arc<Function>>>,
}

/// A kernel of a module.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) handle: Handle,
    pub(super) context: Handle,
    pub(super) module: Handle,
    pub(super) entry: Entry,
    /// The module's library, and the kernel in it, if the stand-in for NVRTC made the module.
    pub(super) code: Option<(Arc<CodeLibrary>, usize)>,
    ptx_version: i32,
    max_dynamic_shared_bytes: AtomicI32,
}

/// The default limit of dynamic shared memory in bytes.
const SHARED_BYTES: i32 = 48 << 10;
/// The opt-in limit in bytes, as on devices with compute capability 9.0.
pub(super) const SHARED_BYTES_MAX: i32 = 227 << 10;
/// The maximum number of threads per block.
pub(super) const THREADS_MAX: u32 = 1024;

impl Module {
    /// Loads a module from PTX.
    pub(super) fn load(context: &Context, image: &[u8]) -> Outcome<Arc<Self>> {
        let library = library(image)?;
        let image = ptx::parse(image)?;
        check(&image)?;
        let module = Self {
            handle: handle::next(),
            context: context.handle,
            image,
            library,
            functions: Mutex::default(),
        };
        let module = Arc::new(module);
        handle::insert(module.handle, Object::Module(Arc::clone(&module)));
        Ok(module)
    }

    /// The kernel with this name. Repeated calls return the same object, with its attributes.
    pub(super) fn function(&self, name: &str) -> Outcome<Arc<Function>> {
        let entry =
            self.image.entries.iter().find(|entry| entry.name == name).ok_or(Code::NOT_FOUND)?;
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.iter().find(|function| function.entry.name == name) {
            return Ok(Arc::clone(known));
        }
        let function = Arc::new(Function {
            handle: handle::next(),
            context: self.context,
            module: self.handle,
            entry: entry.clone(),
            code: self.code(name),
            ptx_version: self.image.version,
            max_dynamic_shared_bytes: AtomicI32::new(SHARED_BYTES),
        });
        handle::insert(function.handle, Object::Function(Arc::clone(&function)));
        functions.push(Arc::clone(&function));
        Ok(function)
    }

    fn code(&self, name: &str) -> Option<(Arc<CodeLibrary>, usize)> {
        let library = self.library.as_ref()?;
        let index = library.kernels.iter().position(|kernel| kernel.symbol == name)?;
        Some((Arc::clone(library), index))
    }

    /// Unloads the module and its functions. Queued launches still run.
    pub(super) fn unload(&self) {
        handle::remove(self.handle);
        let functions =
            std::mem::take(&mut *self.functions.lock().unwrap_or_else(PoisonError::into_inner));
        for function in functions {
            handle::remove(function.handle);
        }
    }
}

/// The library in an image, if the stand-in for NVRTC made it.
fn library(image: &[u8]) -> Outcome<Option<Arc<CodeLibrary>>> {
    let text = std::str::from_utf8(image).unwrap_or_default();
    let library = code_library::in_ptx(text).map(|library| CodeLibrary::load(&library));
    library.transpose().map(|library| library.map(Arc::new)).map_err(|fault| {
        call::note(format!("the library in the module cannot be loaded: {fault}"));
        Code::INVALID_IMAGE
    })
}

/// Rejects PTX that is too new for the driver or for the device.
fn check(image: &Image) -> Outcome {
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

impl Function {
    /// The maximum number of threads per block.
    pub(super) fn max_threads(&self) -> u32 {
        self.entry.max_threads.unwrap_or(THREADS_MAX)
    }

    /// The maximum dynamic shared memory in bytes.
    pub(super) fn max_dynamic_shared_bytes(&self) -> i32 {
        self.max_dynamic_shared_bytes.load(Ordering::Relaxed)
    }

    /// `cuFuncGetAttribute`.
    pub(super) fn attribute(&self, attribute: u32) -> Outcome<i32> {
        let [major, minor] = machine::settings().compute_capability;
        Ok(match attribute {
            0 => self.max_threads() as i32,
            // Attributes that are 0 because a host function has none: static shared, constant and
            // local memory, and caching of globals.
            1..=3 | 7 => 0,
            4 => 32,
            5 => self.ptx_version,
            6 => 10 * major + minor,
            8 => self.max_dynamic_shared_bytes(),
            9 => -1,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// `cuFuncSetAttribute`: dynamic shared memory, and the carve-out, which is a hint.
    pub(super) fn set_attribute(&self, attribute: u32, value: i32) -> Outcome {
        match attribute {
            8 if (0..=SHARED_BYTES_MAX).contains(&value) => {
                self.max_dynamic_shared_bytes.store(value, Ordering::Relaxed);
            }
            9 if (-1..=100).contains(&value) => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
}
