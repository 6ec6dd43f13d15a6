//! Device memory of arrays that were made from cudarc's slices.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

/// A slice that an array took over, kept unchanged until the array returns it or drops.
pub(crate) struct ExternalAllocation {
    len_bytes: u64,
    slice: Box<dyn Slice>,
}

/// A `CudaSlice` of any element type.
trait Slice: Send + 'static {
    fn stream(&self) -> &Arc<CudaStream>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: 'static> Slice for CudaSlice<T> {
    fn stream(&self) -> &Arc<CudaStream> {
        Self::stream(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ExternalAllocation {
    pub(crate) fn new<T: 'static>(slice: CudaSlice<T>) -> Self {
        Self { len_bytes: slice.num_bytes() as u64, slice: Box::new(slice) }
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The stream on which the slice will be freed, after all work queued there.
    pub(crate) fn stream(&self) -> &CudaStream {
        self.slice.stream()
    }

    /// Whether the driver frees the slice in stream order. Otherwise cudarc waits for the stream
    /// and then frees the slice.
    pub(crate) fn frees_in_order(&self) -> bool {
        self.slice.stream().context().has_async_alloc()
    }

    /// The slice, if its elements are of type `T`.
    pub(crate) fn into_slice<T: 'static>(self) -> Option<CudaSlice<T>> {
        self.slice.into_any().downcast().ok().map(|slice| *slice)
    }
}

impl fmt::Debug for ExternalAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalAllocation({} bytes)", self.len_bytes)
    }
}
