//! Many lines in one call of the driver, where it has such: CUDA 12.8 and later.

use std::ffi::c_int;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUresult};
use smallvec::SmallVec;

use super::call::check;
use super::library::DRIVER;
use crate::backend::BackendError;

/// Fewer lines than this are queued by a call each: a call has its price, and a batch is taken
/// apart by the driver.
pub(super) const LINES_MIN: usize = 4;

/// Lines to be copied: device addresses, or the host's.
#[derive(Debug, Default)]
pub(super) struct Lines {
    sources: SmallVec<[u64; 16]>,
    destinations: SmallVec<[u64; 16]>,
    lens_bytes: SmallVec<[usize; 16]>,
}

/// `CUmemLocation` as the driver's ABI has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemcpyAttributes` as the driver's ABI has it since CUDA 12.8: the bindings have it for newer
/// versions alone.
#[repr(C)]
struct Attributes {
    source_access_order: c_int,
    source_location: Location,
    destination_location: Location,
    flags: u32,
}

/// Destinations, sources, lengths, their number; attributes, from which copy on each holds, their
/// number; which copy was refused; the stream.
type CopyBatch = unsafe extern "C" fn(
    *mut u64,
    *mut u64,
    *mut usize,
    usize,
    *mut Attributes,
    *mut usize,
    usize,
    *mut usize,
    sys::CUstream,
) -> CUresult;

/// The first form of the function, which newer drivers keep under this name.
fn function() -> Option<CopyBatch> {
    static FUNCTION: OnceLock<Option<CopyBatch>> = OnceLock::new();
    // SAFETY: this is the function's type.
    *FUNCTION.get_or_init(|| unsafe { DRIVER.function("cuMemcpyBatchAsync") })
}

/// Whether the driver has such a call.
pub(super) fn is_there() -> bool {
    function().is_some()
}

impl Lines {
    pub(super) fn push(&mut self, source: u64, destination: u64, len_bytes: u64) {
        self.sources.push(source);
        self.destinations.push(destination);
        self.lens_bytes.push(len_bytes as usize);
    }

    /// Queues all of them; `false` where the driver does not do that, and nothing is queued.
    ///
    /// # Safety
    ///
    /// As for `copy::queue`: the stream's context is current, and each line is readable at its
    /// source and writable at its destination until the copy is over.
    pub(super) unsafe fn queue(mut self, stream: sys::CUstream) -> Result<bool, BackendError> {
        const IN_ORDER_OF_STREAM: c_int = 1;
        let Some(copy_batch) = function() else { return Ok(false) };
        let anywhere = Location { kind: 0, id: 0 };
        let mut attributes = Attributes {
            source_access_order: IN_ORDER_OF_STREAM,
            source_location: anywhere,
            destination_location: anywhere,
            flags: 0,
        };
        let (count, mut from_first, mut refused) = (self.sources.len(), 0, usize::MAX);
        let (destinations, sources, lens_bytes) = (
            self.destinations.as_mut_ptr(),
            self.sources.as_mut_ptr(),
            self.lens_bytes.as_mut_ptr(),
        );
        // SAFETY: the lists have `count` entries each and live for the call, as the attributes do;
        // the caller vouches for the lines.
        let outcome = unsafe {
            copy_batch(
                destinations,
                sources,
                lens_bytes,
                count,
                &raw mut attributes,
                &raw mut from_first,
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
