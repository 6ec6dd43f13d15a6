//! Arrays whose host memory a driver allocated, and host arrays that are lent to the library for
//! the time of a call.

mod constructors;
mod in_place;
mod loan;
mod managed;
mod mapped;
mod pinned;

pub use loan::{with_mapped, with_pinned};
pub use managed::{Advice, ManagedArray, MemoryLocation};
pub use mapped::MappedArray;
pub use pinned::PinnedArray;
