//! A variable of a loaded library, which the host reads and writes.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use super::library::Library;
use resident_backend::{BackendError, ModuleVariable};
use resident_code::variable_names::missing;

/// A variable of a library, for the backend.
#[derive(Debug)]
pub(super) struct VariableOfLibrary {
    library: Arc<Library>,
    addresses: Range<usize>,
}

impl VariableOfLibrary {
    /// The error names the variables that there are.
    pub(super) fn find(library: Arc<Library>, name: &str) -> Result<Self, String> {
        match library.variables.find(name) {
            Some(addresses) => Ok(Self { library, addresses }),
            None => Err(missing(name, library.variables.symbols())),
        }
    }

    fn start(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.addresses.start)
    }

    /// Runs something while no kernel of the library runs.
    fn alone<R>(&self, access: impl FnOnce() -> R) -> R {
        let _alone = self.library.running.write().unwrap_or_else(PoisonError::into_inner);
        access()
    }
}

impl ModuleVariable for VariableOfLibrary {
    fn len_bytes(&self) -> usize {
        self.addresses.len()
    }

    fn write(&self, bytes: &[u8]) -> Result<(), BackendError> {
        let len = bytes.len().min(self.len_bytes());
        // SAFETY: the variable is writable memory of the library, which is loaded; it has at least
        // so many bytes, and only kernels access it, of which none runs.
        self.alone(|| unsafe { self.start().copy_from_nonoverlapping(bytes.as_ptr(), len) });
        Ok(())
    }

    fn read(&self, bytes: &mut [u8]) -> Result<(), BackendError> {
        let len = bytes.len().min(self.len_bytes());
        // SAFETY: as in `write`; all its bytes are initialised, as those of globals are.
        self.alone(|| unsafe { self.start().copy_to_nonoverlapping(bytes.as_mut_ptr(), len) });
        Ok(())
    }
}
