//! One function of a module: the driver's object, which all kernels of that name share, and what
//! was set on it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute};

use crate::backend::BackendError;
use crate::backend::cuda::call::check;

/// A function, with how much dynamic shared memory its launches may ask for: a number that the
/// driver keeps for the function, and so for all its kernels.
#[derive(Debug)]
pub(super) struct Function {
    handle: CUfunction,
    /// In bytes. It only grows.
    shared_bytes_allowed: AtomicU32,
    /// Held while more is allowed, so that nobody allows less again.
    allowing: Mutex<()>,
}

// SAFETY: the handle is a name for an object of the driver, which may be used from any thread; its
// module is never unloaded.
unsafe impl Send for Function {}
// SAFETY: as for `Send`; what changes is atomic.
unsafe impl Sync for Function {}

impl Function {
    /// A function of the current context.
    pub(super) fn new(handle: CUfunction) -> Result<Self, BackendError> {
        let allowed = attribute_of(
            handle,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        )?;
        Ok(Self { handle, shared_bytes_allowed: AtomicU32::new(allowed), allowing: Mutex::new(()) })
    }

    #[inline]
    pub(super) fn handle(&self) -> CUfunction {
        self.handle
    }

    /// What the driver says of it. The context is current.
    pub(super) fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32, BackendError> {
        attribute_of(self.handle, attribute)
    }

    /// Dynamic shared memory that a launch may ask for as things are, in bytes.
    #[inline]
    pub(super) fn shared_bytes_allowed(&self) -> u32 {
        self.shared_bytes_allowed.load(Ordering::Acquire)
    }

    /// Allows so much dynamic shared memory, unless as much is allowed. The context is current.
    pub(super) fn allow_shared(&self, len_bytes: u32) -> Result<(), BackendError> {
        let _alone = self.allowing.lock().unwrap_or_else(PoisonError::into_inner);
        if len_bytes <= self.shared_bytes_allowed() {
            return Ok(());
        }
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the context is current, and the function's module stays loaded.
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
    // SAFETY: the function is one of the current context; the driver writes one `int`.
    check(
        unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, function) },
        "cuFuncGetAttribute",
    )?;
    Ok(value.max(0).unsigned_abs())
}
