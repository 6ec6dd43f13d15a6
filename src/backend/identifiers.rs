//! The kinds, numbers and addresses that identify devices, queues, operations and memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The embedded device, which is made of this process's memory and threads.
    Cpu,
    /// An NVIDIA GPU through the CUDA driver.
    Cuda,
    /// An AMD GPU through HIP.
    Hip,
}

impl DeviceKind {
    /// The number of kinds: the length of a table that `kind as usize` indexes.
    pub(crate) const COUNT: usize = Self::Hip as usize + 1;
}

/// The number of an operation in its queue, counted from 1. Position 0 precedes the first operation
/// and always counts as completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Position(pub(crate) u64);

impl Position {
    /// The position before the first operation, which always counts as completed.
    pub(crate) const START: Self = Self(0);
}

/// The number of a queue: unique in the process and never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct QueueId(pub(crate) u64);

impl QueueId {
    /// Returns an unused number.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A device address. The host never dereferences it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Address(pub(crate) u64);
