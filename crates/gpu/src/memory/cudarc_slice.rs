//! cudarc's slices as memory that arrays take over.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

/// A slice of any element type.
pub(crate) struct CudarcSlice {
    len_bytes: u64,
    slice: Box<dyn AnySlice>,
}

trait AnySlice: Send + 'static {
    fn stream(&self) -> &Arc<CudaStream>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: 'static> AnySlice for CudaSlice<T> {
    fn stream(&self) -> &Arc<CudaStream> {
        Self::stream(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl CudarcSlice {
    pub(crate) fn new<T: 'static>(slice: CudaSlice<T>) -> Self {
        Self { len_bytes: slice.num_bytes() as u64, slice: Box::new(slice) }
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The stream on which the slice will be freed, after all work queued there.
    pub(crate) fn stream(&self) -> &CudaStream {
        self.slice.stream()
    }

    /// The stream, if the driver frees the slice in its order. Otherwise dropping this value waits
    /// for the stream.
    pub(crate) fn freeing_stream(&self) -> Option<&CudaStream> {
        Some(self.stream()).filter(|stream| stream.context().has_async_alloc())
    }

    /// The slice, if its elements are of type `T`.
    pub(crate) fn downcast<T: 'static>(self) -> Option<CudaSlice<T>> {
        self.slice.into_any().downcast().ok().map(|slice| *slice)
    }
}
