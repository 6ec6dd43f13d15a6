//! Copies and fills of host memory, by the calling thread (`copy`) or by several (`pool`).

mod copy;
mod pool;

pub use copy::{BoundedMemory, CopyFunction, copy_box, copy_box_within, fill, fill_within};
pub use pool::{PendingCopy, copy_box_in_parallel, start_copy, threads_asked};
