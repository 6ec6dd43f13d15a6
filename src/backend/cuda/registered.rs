//! Host memory that the user asked to be page-locked.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};

use super::call::{check, refusal};
use super::context::Context;
use crate::backend::{BackendError, PageLock};

/// Locked pages, unlocked when this drops.
pub(super) struct Registered {
    context: Arc<Context>,
    /// Where they start; null where others locked them, who unlock them too.
    start: *mut u8,
}

// SAFETY: the pointer is a name for the driver, never followed here.
unsafe impl Send for Registered {}
// SAFETY: as above.
unsafe impl Sync for Registered {}

impl Registered {
    /// Locks the pages of some memory, for all devices. What others locked already is used as it is, and left to them; all of it must be then, since the
    /// driver copies nothing that lies half in locked memory.
    pub(super) fn lock(context: &Arc<Context>, start: *mut u8, len_bytes: usize) -> Result<Self, BackendError> {
        const PORTABLE: u32 = 1;
        context.enter()?;
        // SAFETY: the memory is the caller's, who keeps it for as long as the lock; registering changes nothing of what it holds.
        let outcome = unsafe { sys::cuMemHostRegister_v2(start.cast(), len_bytes, PORTABLE) };
        let start = match outcome {
            CUresult::CUDA_SUCCESS => start,
            CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED if is_locked(start) && is_locked(start.wrapping_add(len_bytes - 1)) => {
                std::ptr::null_mut()
            }
            other => return context.note(Err(refusal(other, "cuMemHostRegister"))),
        };
        Ok(Self { context: Arc::clone(context), start })
    }
}

/// Whether the driver knows the page at this address. The context is current.
fn is_locked(address: *const u8) -> bool {
    const HOST: u32 = 1;
    let mut kind = 0_u32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the driver writes one 32-bit number; the address is a name to it, which it does not follow.
    let asked = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address as sys::CUdeviceptr) };
    asked == CUresult::CUDA_SUCCESS && kind == HOST
}

impl PageLock for Registered {}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.start.is_null() {
            return;
        }
        // SAFETY: registered by `lock`; work in flight keeps the memory, and with it this, so nothing uses it any more. A context that is dead or gone has
        // no registrations left.
        let _gone =
            self.context.enter().and_then(|()| check(unsafe { sys::cuMemHostUnregister(self.start.cast()) }, "cuMemHostUnregister"));
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registered(of {})", self.context.ordinal())
    }
}
