//! The kinds, numbers and addresses that identify devices, streams, operations and memory.

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
    #[doc(hidden)]
    pub const COUNT: usize = Self::Hip as usize + 1;

    /// Why a build without the feature for this kind has no such device.
    #[cold]
    #[doc(hidden)]
    pub fn no_backend(self) -> String {
        let (vendor, feature) = match self {
            Self::Hip => ("HIP", "hip"),
            Self::Cpu | Self::Cuda => ("CUDA", "cuda"),
        };
        format!(
            "this build of resident has no {vendor} backend; enable its feature `{feature}`, or \
             use Device::cpu()"
        )
    }
}

/// The number of a stream: unique in the process and never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u64);

impl StreamId {
    /// Returns an unused number.
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A device address. The host never dereferences it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub u64);
