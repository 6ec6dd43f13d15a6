//! Copies many lines by one driver call, on drivers that have this call: CUDA 12.8 and later.

use std::ffi::c_int;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};
use smallvec::SmallVec;

use crate::backend::BackendError;
use crate::backend::cuda::call::check;
use crate::backend::cuda::library::DRIVER;

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

/// `CUmemLocation`, with the layout of the driver's ABI.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemLocation {
    kind: c_int,
    id: c_int,
}

/// `CUmemcpyAttributes`, with the layout of the driver's ABI since CUDA 12.8. The bindings have it
/// only for newer versions.
#[repr(C)]
struct MemcpyAttributes {
    source_access_order: c_int,
    source_location: MemLocation,
    destination_location: MemLocation,
    flags: u32,
}

/// The arguments: destinations, sources, lengths, and the number of copies; attributes, the first
/// copy to which each attribute applies, and the number of attributes; the index of a refused copy
/// (output); the stream.
type CopyBatch = unsafe extern "C" fn(
    *mut u64,
    *mut u64,
    *mut usize,
    usize,
    *mut MemcpyAttributes,
    *mut usize,
    usize,
    *mut usize,
    sys::CUstream,
) -> CUresult;

/// The first version of the function, which newer drivers still export under this name.
fn function() -> Option<CopyBatch> {
    static FUNCTION: OnceLock<Option<CopyBatch>> = OnceLock::new();
    // SAFETY: `CopyBatch` is the type of this driver function.
    *FUNCTION.get_or_init(|| unsafe { DRIVER.function("cuMemcpyBatchAsync") })
}

/// Whether the driver has the function.
pub(super) fn is_supported() -> bool {
    function().is_some()
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

    /// Queues all lines. If the driver lacks the call, queues nothing and returns `false`.
    ///
    /// # Safety
    ///
    /// As for `memcpy::queue`: the stream's context is current, and each line is readable at its
    /// source and writable at its destination until the copy completes.
    pub(super) unsafe fn queue(mut self, stream: sys::CUstream) -> Result<bool, BackendError> {
        const STREAM_ORDER: c_int = 1;
        let Some(copy_batch) = function() else { return Ok(false) };
        let unspecified = MemLocation { kind: 0, id: 0 };
        let mut attributes = MemcpyAttributes {
            source_access_order: STREAM_ORDER,
            source_location: unspecified,
            destination_location: unspecified,
            flags: 0,
        };
        let (count, mut first, mut refused) = (self.len(), 0, usize::MAX);
        // SAFETY: each list has `count` elements; the lists and the attributes live until the call
        // returns. The caller promises that the lines are accessible.
        let outcome = unsafe {
            copy_batch(
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
            CUresult::CUDA_ERROR_NOT_SUPPORTED => Ok(false),
            other => check(other, "cuMemcpyBatchAsync").map(|()| true),
        }
    }
}
