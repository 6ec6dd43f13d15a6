//! Copies and fills of host memory, by the calling thread (`copy`) or by several (`pool`).

mod copy;
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only pinned memory is copied so"))]
mod pool;

pub(crate) use copy::{BoundedMemory, copy_box, copy_box_within, fill, fill_within};
pub(crate) use pool::copy_box_in_parallel;
