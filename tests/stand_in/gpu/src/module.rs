//! Modules and functions.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::entry::{Entry, Image};
use crate::handle::{self, Handle, Object};
use crate::host;
use crate::interface::{THREADS_MAX, interface, rules};
use resident_stand_in_code::library::CodeLibrary;

/// A loaded module.
#[derive(Debug)]
pub struct Module {
    pub handle: Handle,
    pub context: Handle,
    entries: Vec<Entry>,
    library: Option<Arc<CodeLibrary>>,
    version: i32,
    /// The functions requested so far.
    functions: Mutex<Vec<Arc<Function>>>,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct Function {
    pub handle: Handle,
    pub context: Handle,
    pub module: Handle,
    pub entry: Entry,
    /// The module's library, and the kernel in it, if the stand-in for NVRTC made the module.
    pub code: Option<(Arc<CodeLibrary>, usize)>,
    /// The version of the image's format.
    pub version: i32,
    max_dynamic_shared_bytes: AtomicI32,
}

impl Module {
    /// Loads a module from an image.
    pub fn load(context: &Context, image: &[u8]) -> Outcome<Arc<Self>> {
        let Image { entries, library, version } = interface().read_image(image)?;
        let module = Self {
            handle: handle::next(),
            context: context.handle,
            entries,
            library,
            version,
            functions: Mutex::default(),
        };
        let module = Arc::new(module);
        handle::insert(module.handle, Object::Module(Arc::clone(&module)));
        Ok(module)
    }

    /// The kernel with this name. Repeated calls return the same object, with its attributes.
    pub fn function(&self, name: &str) -> Outcome<Arc<Function>> {
        let entry = self.entries.iter().find(|entry| entry.name == name).ok_or(Code::NOT_FOUND)?;
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
            version: self.version,
            max_dynamic_shared_bytes: AtomicI32::new(rules().shared_bytes),
        });
        handle::insert(function.handle, Object::Function(Arc::clone(&function)));
        functions.push(Arc::clone(&function));
        Ok(function)
    }

    /// The address and the length of a variable: memory of the host that copies may access.
    pub fn variable(&self, name: &str) -> Outcome<(u64, usize)> {
        let library = self.library.as_ref().ok_or(Code::NOT_FOUND)?;
        let range = library.variables.with_symbol(name).ok_or(Code::NOT_FOUND)?;
        let (start, len_bytes) = (range.start as u64, range.len());
        if host::around(start).is_none() {
            host::register(start, len_bytes as u64, 0, self.context)?;
        }
        Ok((start, len_bytes))
    }

    fn code(&self, name: &str) -> Option<(Arc<CodeLibrary>, usize)> {
        let library = self.library.as_ref()?;
        let index = library.kernels.iter().position(|kernel| kernel.symbol == name)?;
        Some((Arc::clone(library), index))
    }

    /// Unloads the module and its functions. Queued launches still run.
    pub fn unload(&self) {
        handle::remove(self.handle);
        let functions =
            std::mem::take(&mut *self.functions.lock().unwrap_or_else(PoisonError::into_inner));
        for function in functions {
            handle::remove(function.handle);
        }
    }
}

impl Function {
    /// The maximum number of threads per block.
    pub fn max_threads(&self) -> u32 {
        self.entry.max_threads.unwrap_or(THREADS_MAX)
    }

    /// The maximum dynamic shared memory in bytes.
    pub fn max_dynamic_shared_bytes(&self) -> i32 {
        self.max_dynamic_shared_bytes.load(Ordering::Relaxed)
    }

    /// Sets the maximum dynamic shared memory in bytes.
    pub fn set_max_dynamic_shared_bytes(&self, len_bytes: i32) {
        self.max_dynamic_shared_bytes.store(len_bytes, Ordering::Relaxed);
    }
}
