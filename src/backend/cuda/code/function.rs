//! One function of a module. All kernels with this function share the driver's object, and the
//! attributes that are set on it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute};

use crate::backend::BackendError;
use crate::backend::cuda::call::check;

/// A function, and the dynamic shared memory that its launches may use. The driver stores the
/// latter as an attribute of the function.
#[derive(Debug)]
pub(super) struct Function {
    handle: CUfunction,
    /// The attribute's value, in bytes. It only grows.
    shared_bytes_allowed: AtomicU32,
    /// Locked while a thread raises the attribute, so that no other thread lowers it again.
    raising: Mutex<()>,
}

// SAFETY: the handle names an object of the driver, which may be used from any thread; its module
// is never unloaded.
unsafe impl Send for Function {}
// SAFETY: as for `Send`; the fields that change are atomic or behind a lock.
unsafe impl Sync for Function {}

impl Function {
    /// A function of the current context.
    pub(super) fn new(handle: CUfunction) -> Result<Self, BackendError> {
        let allowed = attribute_of(
            handle,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        )?;
        Ok(Self { handle, shared_bytes_allowed: AtomicU32::new(allowed), raising: Mutex::new(()) })
    }

    #[inline]
    pub(super) fn handle(&self) -> CUfunction {
        self.handle
    }

    /// An attribute as the driver reports it. The context is current.
    pub(super) fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32, BackendError> {
        attribute_of(self.handle, attribute)
    }

    /// The dynamic shared memory that a launch may use now, in bytes.
    #[inline]
    pub(super) fn shared_bytes_allowed(&self) -> u32 {
        self.shared_bytes_allowed.load(Ordering::Acquire)
    }

    /// Allows launches to use this much dynamic shared memory. The context is current.
    pub(super) fn allow_shared(&self, len_bytes: u32) -> Result<(), BackendError> {
        let _raising = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        if len_bytes <= self.shared_bytes_allowed() {
            return Ok(());
        }
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the context is current (the caller's promise), and the function's module stays
        // loaded.
        let outcome = unsafe {
            sys::cuFuncSetAttribute(
                self.handle,
                attribute,
                len_bytes.min(i32::MAX.unsigned_abs()) as i32,
            )
        };
        check(outcome, "cuFuncSetAttribute")?;
        self.shared_bytes_allowed.store(len_bytes, Ordering::Release);
        Ok(())
    }
}

fn attribute_of(
    function: CUfunction,
    attribute: CUfunction_attribute,
) -> Result<u32, BackendError> {
    let mut value = 0;
    // SAFETY: the function belongs to the current context; the driver writes one `int`.
    let outcome = unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, function) };
    check(outcome, "cuFuncGetAttribute")?;
    Ok(value.max(0).unsigned_abs())
}
