//! The host's part of a download to pageable memory: copies bytes from staging memory.

use std::sync::Arc;

use smallvec::SmallVec;

use resident_backend::{CopyBox, HostMemory, host_copy};

/// A download whose bytes are in staging memory once its operation on the device completes.
#[derive(Debug)]
pub(crate) struct PendingUnpack {
    pub staged: Arc<dyn HostMemory>,
    pub destination: Arc<dyn HostMemory>,
    /// The copies from staging memory to the destination.
    pub parts: SmallVec<[CopyBox; 1]>,
}

impl PendingUnpack {
    /// Copies the bytes to their destination. Called after the device has completed the download.
    pub(crate) fn unpack(&self) {
        for part in &self.parts {
            // SAFETY: the parts lie within both memories: `submit::queue_copy` checked the bounds
            // of the destination, and `DownloadPlan` made the staged parts and their length. The
            // device has completed its writes to staging memory. No other thread accesses these
            // bytes of the destination: they are stale until this operation completes, and the
            // modules that use the backend allow no access before that (DESIGN.md, "Soundness").
            unsafe {
                host_copy::copy_box_in_parallel(self.staged.base(), self.destination.base(), part);
            };
        }
    }
}
