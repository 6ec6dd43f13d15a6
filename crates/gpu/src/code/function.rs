//! One function of a module. All kernels with this function share the driver's object, and the
//! attributes that are set on it.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::driver::{Driver, FunctionAttribute, FunctionHandle};
use resident_backend::BackendError;
use resident_backend::sync::BackendLock;

/// A function, and the dynamic shared memory that its launches may use. The driver stores the
/// latter as an attribute of the function.
#[derive(Debug)]
pub(super) struct LoadedFunction {
    handle: FunctionHandle,
    driver: &'static Driver,
    /// The attribute's value, in bytes. It only grows.
    shared_bytes_allowed: AtomicU32,
    /// Locked while a thread raises the attribute, so that no other thread lowers it again.
    raising: BackendLock<()>,
}

// SAFETY: the handle names an object of the driver, which may be used from any thread; its module
// is never unloaded.
unsafe impl Send for LoadedFunction {}
// SAFETY: as for `Send`; the fields that change are atomic or behind a lock.
unsafe impl Sync for LoadedFunction {}

impl LoadedFunction {
    /// A function of the current context.
    ///
    /// # Safety
    ///
    /// The function's module is loaded in the current context of this driver, and never unloaded.
    pub(super) unsafe fn new(
        driver: &'static Driver,
        handle: FunctionHandle,
    ) -> Result<Self, BackendError> {
        // Without permissions a launch may use all shared memory that the kernel leaves.
        let attribute = FunctionAttribute::DynamicSharedBytesMax;
        let mut allowed = 0;
        if driver.set_function_attribute.is_some() {
            // SAFETY: the caller's promise is passed on.
            allowed = unsafe { driver.attribute_of(handle, attribute) }?.unwrap_or(0);
        }
        let shared_bytes_allowed = AtomicU32::new(allowed);
        Ok(Self { handle, driver, shared_bytes_allowed, raising: BackendLock::new(()) })
    }

    #[inline]
    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    #[inline]
    pub(super) fn handle(&self) -> FunctionHandle {
        self.handle
    }

    /// An attribute as the driver reports it, if it does. The context is current.
    pub(super) fn attribute(
        &self,
        attribute: FunctionAttribute,
    ) -> Result<Option<u32>, BackendError> {
        // SAFETY: the module stays loaded (`new`).
        unsafe { self.driver.attribute_of(self.handle, attribute) }
    }

    /// The dynamic shared memory that a launch may use now, in bytes.
    #[inline]
    pub(super) fn shared_bytes_allowed(&self) -> u32 {
        self.shared_bytes_allowed.load(Ordering::Acquire)
    }

    /// Allows launches to use this much dynamic shared memory. The context is current.
    pub(super) fn allow_shared(&self, len_bytes: u32) -> Result<(), BackendError> {
        let _raising = self.raising.lock();
        if len_bytes <= self.shared_bytes_allowed() {
            return Ok(());
        }
        if let Some(set) = &self.driver.set_function_attribute {
            let attribute = FunctionAttribute::DynamicSharedBytesMax as i32;
            let value = len_bytes.min(i32::MAX.unsigned_abs()) as i32;
            // SAFETY: the context is current (the caller's promise), and the function's module
            // stays loaded.
            set.check(unsafe { (set.function)(self.handle, attribute, value) })?;
        }
        self.shared_bytes_allowed.store(len_bytes, Ordering::Release);
        Ok(())
    }
}
