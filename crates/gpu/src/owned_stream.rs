//! A stream of the driver and its owner.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "cuda")]
use cudarc::driver::CudaStream;

use super::capture_mode::Relaxed;
use super::context::Context;
use super::driver::StreamHandle;
use resident_backend::BackendError;

/// A stream, destroyed with its last owner. The driver finishes its work first.
pub(super) struct OwnedStream {
    handle: StreamHandle,
    owner: Owner,
}

enum Owner {
    /// cudarc's object, which other code may have too.
    #[cfg(feature = "cuda")]
    Cudarc(Arc<CudaStream>),
    /// This value.
    Own(Arc<Context>),
}

impl Owner {
    /// The context of a stream that this library destroys: cudarc destroys its own.
    fn context(&self) -> Option<&Arc<Context>> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cudarc(_) => None,
            Self::Own(context) => Some(context),
        }
    }
}

// SAFETY: the handle only names a stream, and the driver's functions are thread-safe.
unsafe impl Send for OwnedStream {}
// SAFETY: as above.
unsafe impl Sync for OwnedStream {}

/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`: not tied to the legacy default stream.
const NON_BLOCKING: u32 = 1;

impl OwnedStream {
    /// A new stream, with a priority if one is given, which the driver clamps. On NVIDIA GPUs it is
    /// also cudarc's.
    pub(super) fn new(context: &Arc<Context>, priority: Option<i32>) -> Result<Self, BackendError> {
        context.make_current()?;
        #[cfg(feature = "cuda")]
        if let Some(cudarc) = context.cudarc() {
            let _relaxed = Relaxed::enter(context.driver());
            return context.record_death(cudarc.new_stream(priority)).map(Self::of_cudarc);
        }
        Self::unshared(context, priority)
    }

    /// A new stream that other code never gets. The context is current.
    pub(super) fn unshared(
        context: &Arc<Context>,
        priority: Option<i32>,
    ) -> Result<Self, BackendError> {
        let mut handle = std::ptr::null_mut();
        let driver = context.driver();
        let _relaxed = Relaxed::enter(driver);
        let outcome = match priority {
            None => {
                let create = &driver.stream_create;
                // SAFETY: the context is current; the driver writes one handle.
                create.check(unsafe { (create.function)(&raw mut handle, NON_BLOCKING) })
            }
            Some(priority) => {
                let create = &driver.stream_create_with_priority;
                // SAFETY: as above.
                create.check(unsafe { (create.function)(&raw mut handle, NON_BLOCKING, priority) })
            }
        };
        context.record_death(outcome)?;
        Ok(Self { handle, owner: Owner::Own(Arc::clone(context)) })
    }

    #[cfg(feature = "cuda")]
    pub(super) fn of_cudarc(stream: Arc<CudaStream>) -> Self {
        Self { handle: stream.cu_stream().cast(), owner: Owner::Cudarc(stream) }
    }

    #[inline]
    pub(super) fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// cudarc's object, on NVIDIA GPUs.
    #[cfg(feature = "cuda")]
    pub(super) fn cudarc(&self) -> Option<&Arc<CudaStream>> {
        match &self.owner {
            Owner::Cudarc(stream) => Some(stream),
            Owner::Own(_) => None,
        }
    }
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        let Some(context) = self.owner.context() else { return };
        // If the context is dead or the process ends, the driver frees the stream itself.
        if context.make_current().is_ok() {
            // SAFETY: `unshared` made the stream, which no other code has.
            let _freed = unsafe { (context.driver().stream_destroy.function)(self.handle) };
        }
    }
}

impl fmt::Debug for OwnedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedStream({:p})", self.handle)
    }
}
