//! Variables of modules, which the host reads and writes.

use std::sync::Arc;

use super::module::Module;
use crate::capture_mode::Relaxed;
use resident_backend::{BackendError, LoadError, ModuleVariable};
use resident_code::variable_names::{missing, name_in_source};

/// A variable of a module, which stays loaded.
#[derive(Debug)]
pub(super) struct GpuVariable {
    module: Arc<Module>,
    address: u64,
    len_bytes: usize,
}

impl GpuVariable {
    /// The variable with a name in the source. The context is current.
    pub(super) fn find(module: Arc<Module>, name: &str) -> Result<Self, LoadError> {
        let plain = name.trim_start_matches("::");
        let described = module
            .described
            .variables
            .iter()
            .find(|symbol| name_in_source(symbol) == plain)
            .cloned();
        // Code whose variables are not described may have them.
        for symbol in described.into_iter().chain([plain.to_owned(), mangled(plain)]) {
            let found = module.variable(&symbol).map_err(|error| module.load_error(error))?;
            if let Some((address, len_bytes)) = found {
                return Ok(Self { module, address, len_bytes });
            }
        }
        let symbols = module.described.variables.iter().map(String::as_str);
        Err(LoadError::Program(missing(name, symbols)))
    }

    /// Queues a copy on the driver's own stream, and waits for it.
    fn copy(&self, queue: impl FnOnce() -> Result<(), BackendError>) -> Result<(), BackendError> {
        let context = self.module.context();
        context.make_current()?;
        let driver = context.driver();
        let _relaxed = Relaxed::enter(driver);
        let wait = &driver.stream_synchronize;
        // SAFETY: null is the default stream of the current context.
        let waited = || wait.check(unsafe { (wait.function)(std::ptr::null_mut()) });
        context.record_death(queue().and_then(|()| waited()))
    }
}

impl ModuleVariable for GpuVariable {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn write(&self, bytes: &[u8]) -> Result<(), BackendError> {
        let len = bytes.len().min(self.len_bytes);
        let copy = &self.module.context().driver().copy_to_device;
        self.copy(|| {
            let stream = std::ptr::null_mut();
            // SAFETY: the variable has at least so many bytes, and so have these, which outlive the
            // wait for the copy.
            copy.check(unsafe { (copy.function)(self.address, bytes.as_ptr().cast(), len, stream) })
        })
    }

    fn read(&self, bytes: &mut [u8]) -> Result<(), BackendError> {
        let len = bytes.len().min(self.len_bytes);
        let copy = &self.module.context().driver().copy_to_host;
        self.copy(|| {
            let stream = std::ptr::null_mut();
            // SAFETY: as in `write`.
            copy.check(unsafe {
                (copy.function)(bytes.as_mut_ptr().cast(), self.address, len, stream)
            })
        })
    }
}

/// The symbol of a variable in namespaces: `_ZN2ns4coefE` for `ns::coef`.
fn mangled(name: &str) -> String {
    let parts = name.split("::");
    let parts: String = parts.map(|part| format!("{}{part}", part.len())).collect();
    format!("_ZN{parts}E")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_in_namespaces_are_mangled() {
        assert_eq!(super::mangled("ns::coef"), "_ZN2ns4coefE");
    }
}
