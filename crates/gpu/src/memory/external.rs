//! Device memory of other code: cudarc's slices, and memory that other libraries exchange.

use std::any::Any;
use std::fmt;
#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "cuda")]
use cudarc::driver::{CudaSlice, CudaStream};

/// Memory that an array took over, kept unchanged until the array returns it or drops.
pub(crate) struct ExternalAllocation {
    len_bytes: u64,
    owner: Owner,
}

enum Owner {
    #[cfg(feature = "cuda")]
    Slice(Box<dyn Slice>),
    /// The object's drop frees the memory at once.
    Object { _object: Box<dyn Any + Send + Sync> },
}

/// A `CudaSlice` of any element type.
#[cfg(feature = "cuda")]
trait Slice: Send + 'static {
    fn stream(&self) -> &Arc<CudaStream>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

#[cfg(feature = "cuda")]
impl<T: 'static> Slice for CudaSlice<T> {
    fn stream(&self) -> &Arc<CudaStream> {
        Self::stream(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl ExternalAllocation {
    #[cfg(feature = "cuda")]
    pub(crate) fn new<T: 'static>(slice: CudaSlice<T>) -> Self {
        Self { len_bytes: slice.num_bytes() as u64, owner: Owner::Slice(Box::new(slice)) }
    }

    pub(crate) fn of_object(len_bytes: u64, object: Box<dyn Any + Send + Sync>) -> Self {
        Self { len_bytes, owner: Owner::Object { _object: object } }
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The stream on which a slice will be freed, after all work queued there.
    #[cfg(feature = "cuda")]
    pub(crate) fn stream(&self) -> Option<&CudaStream> {
        match &self.owner {
            Owner::Slice(slice) => Some(slice.stream()),
            Owner::Object { .. } => None,
        }
    }

    /// The stream, if the driver frees the slice in its order. Otherwise dropping this value waits
    /// for the stream, or frees the memory at once.
    #[cfg(feature = "cuda")]
    pub(crate) fn freeing_stream(&self) -> Option<&CudaStream> {
        self.stream().filter(|stream| stream.context().has_async_alloc())
    }

    /// The slice, if its elements are of type `T`.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_slice<T: 'static>(self) -> Option<CudaSlice<T>> {
        match self.owner {
            Owner::Slice(slice) => slice.into_any().downcast().ok().map(|slice| *slice),
            Owner::Object { .. } => None,
        }
    }
}

impl fmt::Debug for ExternalAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalAllocation({} bytes)", self.len_bytes)
    }
}
