//! The bytes of arrays in the memory of devices, and in pinned memory of the host: totals and
//! peaks, which always count, and [logs](log) of how they came about, while something listens.

mod log;
mod place;
mod place_log;

pub(crate) use log::MemoryLog;
pub(crate) use place::{DEVICES, Gauge, PINNED, PINNED_MEMORY, Place};
pub(crate) use place_log::Owner;
