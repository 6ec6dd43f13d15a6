//! An NVIDIA GPU's primary context as two cudarc objects: one for this library, one for other code.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};

use super::driver::{Status, cuda};
use resident_backend::BackendError;
use resident_backend::sync::BackendLock;

/// cudarc's objects of one context.
#[derive(Debug)]
pub(super) struct CudarcContexts {
    own: Arc<CudaContext>,
    /// The object with cudarc's default slice tracking. It also creates the library's streams, so
    /// that it counts them: only with more than one stream does cudarc order uses of its slices by
    /// events.
    shared: Arc<CudaContext>,
    /// The first stream, until it is taken.
    first_stream: BackendLock<Option<Arc<CudaStream>>>,
}

impl CudarcContexts {
    /// Retains the primary context of a GPU, which exists.
    pub(super) fn open(ordinal: usize) -> Result<Self, BackendError> {
        let own = checked(CudaContext::new(ordinal), "cuDevicePrimaryCtxRetain")?;
        // SAFETY: cudarc's tracking orders uses of cudarc's slices, and no slice is made from this
        // object: the library manages memory, order and lifetimes itself (`ordering`, `storage`),
        // and other code gets the other object (`Device::cuda_context`).
        unsafe { own.disable_event_tracking() };
        let (shared, first_stream) = shared_context(ordinal)?;
        Ok(Self { own, shared, first_stream: BackendLock::new(Some(first_stream)) })
    }

    pub(super) fn own(&self) -> &Arc<CudaContext> {
        &self.own
    }

    /// The object for code other than this library.
    pub(super) fn shared(&self) -> &Arc<CudaContext> {
        &self.shared
    }

    /// A new stream, with a priority if one is given, which the driver clamps. The context is
    /// current, and the thread in relaxed capture mode.
    pub(super) fn new_stream(
        &self,
        priority: Option<i32>,
    ) -> Result<Arc<CudaStream>, BackendError> {
        let first = || self.first_stream.lock().take();
        if let Some(first) = priority.is_none().then(first).flatten() {
            return Ok(first);
        }
        // cudarc stores an error of a drop in the context, and the next call returns it. Such an
        // error is for other code than this library, so it is put back.
        let recorded = self.shared.check_err();
        let stream = match priority {
            None => checked(self.shared.new_stream(), "cuStreamCreate"),
            Some(priority) => {
                let stream = self.shared.new_stream_with_priority(priority);
                checked(stream, "cuStreamCreateWithPriority")
            }
        };
        self.shared.record_err(recorded);
        stream
    }
}

/// cudarc's object for other code, and the first stream that it counts.
fn shared_context(ordinal: usize) -> Result<(Arc<CudaContext>, Arc<CudaStream>), BackendError> {
    let shared = checked(CudaContext::new(ordinal), "cuDevicePrimaryCtxRetain")?;
    // For its first stream an object that tracks slices waits for the whole context, which would
    // end captures of other code. This object has no slices yet.
    // SAFETY: no other code has the object, so no slice is made meanwhile.
    unsafe { shared.disable_event_tracking() };
    let stream = checked(shared.new_stream(), "cuStreamCreate");
    // SAFETY: as above: all slices are made with tracking.
    unsafe { shared.enable_event_tracking() };
    Ok((shared, stream?))
}

/// Converts the result of one of cudarc's functions. The error names the driver's call.
pub(super) fn checked<T>(
    result: Result<T, DriverError>,
    call: &'static str,
) -> Result<T, BackendError> {
    result.map_err(|DriverError(failed)| cuda::VENDOR.error(failed as Status, call))
}
