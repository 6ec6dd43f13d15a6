//! Device memory of other code: cudarc's slices, and memory that other libraries exchange.

use std::any::Any;
use std::fmt;

#[cfg(feature = "cuda")]
use super::cudarc_slice::CudarcSlice;

/// Memory that an array took over, kept unchanged until the array returns it or drops.
pub(crate) enum ExternalAllocation {
    #[cfg(feature = "cuda")]
    Slice(CudarcSlice),
    /// The object's drop frees the memory at once.
    Object { len_bytes: u64, _object: Box<dyn Any + Send + Sync> },
}

impl ExternalAllocation {
    pub(crate) fn of_object(len_bytes: u64, object: Box<dyn Any + Send + Sync>) -> Self {
        Self::Object { len_bytes, _object: object }
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        match self {
            #[cfg(feature = "cuda")]
            Self::Slice(slice) => slice.len_bytes(),
            Self::Object { len_bytes, .. } => *len_bytes,
        }
    }
}

impl fmt::Debug for ExternalAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalAllocation({} bytes)", self.len_bytes())
    }
}
