//! Copies many lines by one driver call, on drivers that have this call: CUDA 12.8 and later.

use std::ffi::c_int;

use smallvec::SmallVec;

use crate::driver::{Batch, Driver, MemoryLocation, StreamHandle, status};
use resident_backend::BackendError;

/// Fewer lines than this take one call each: the driver splits a batch into single copies, so a
/// batch saves only the cost of the calls.
pub(super) const LINES_MIN: usize = 4;

/// Lines to copy, between device addresses or pinned host addresses.
#[derive(Debug, Default)]
pub(super) struct LineBatch {
    sources: SmallVec<[u64; 16]>,
    destinations: SmallVec<[u64; 16]>,
    lens_bytes: SmallVec<[usize; 16]>,
}

impl LineBatch {
    pub(super) fn push(&mut self, source: u64, destination: u64, len_bytes: u64) {
        self.sources.push(source);
        self.destinations.push(destination);
        self.lens_bytes.push(len_bytes as usize);
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.lens_bytes.iter().map(|len| *len as u64).sum()
    }

    /// Queues all lines. If the driver lacks the call, queues nothing and returns `false`.
    ///
    /// # Safety
    ///
    /// As for `memcpy::queue`: the stream's context is current, and each line is readable at its
    /// source and writable at its destination until the copy completes.
    pub(super) unsafe fn queue(
        mut self,
        driver: &Driver,
        stream: StreamHandle,
    ) -> Result<bool, BackendError> {
        const STREAM_ORDER: c_int = 1;
        let Some(copy) = &driver.copy_batch else { return Ok(false) };
        let unspecified = MemoryLocation { kind: 0, id: 0 };
        let mut attributes = Batch {
            source_access_order: STREAM_ORDER,
            source: unspecified,
            destination: unspecified,
            flags: 0,
        };
        let (count, mut first, mut refused) = (self.len(), 0, usize::MAX);
        // SAFETY: each list has `count` elements; the lists and the attributes live until the call
        // returns. The caller promises that the lines are accessible.
        let outcome = unsafe {
            (copy.function)(
                self.destinations.as_mut_ptr(),
                self.sources.as_mut_ptr(),
                self.lens_bytes.as_mut_ptr(),
                count,
                &raw mut attributes,
                &raw mut first,
                1,
                &raw mut refused,
                stream,
            )
        };
        match outcome {
            status::NOT_SUPPORTED => Ok(false),
            other => copy.check(other).map(|()| true),
        }
    }
}
