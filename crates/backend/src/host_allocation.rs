//! Options of host memory that a driver allocates, and counts of such memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a driver allocates host memory: see [`PinnedArray`](struct.PinnedArray.html). The flags of
/// CUDA's `cuMemHostAlloc`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[must_use = "pass the options to `zeros_with`, `uninit_with` or `from_array_with`"]
pub struct PinnedOptions {
    #[doc(hidden)]
    pub is_portable: bool,
    #[doc(hidden)]
    pub is_write_combined: bool,
}

impl Default for PinnedOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl PinnedOptions {
    /// Memory that is pinned for all GPUs, and that the host caches.
    pub const fn new() -> Self {
        Self { is_portable: true, is_write_combined: false }
    }

    /// Whether the memory is pinned for all GPUs (`CU_MEMHOSTALLOC_PORTABLE`,
    /// `hipHostMallocPortable`); by default it is. With unified addressing, which every 64-bit
    /// system has, the driver pins it for all of them in any case.
    pub const fn portable(self, is_portable: bool) -> Self {
        Self { is_portable, ..self }
    }

    /// Whether the host writes the memory past its caches (`CU_MEMHOSTALLOC_WRITECOMBINED`); by
    /// default it does not. Uploads of such memory may be faster. The host reads it very slowly:
    /// use it only for what the host writes and devices read.
    pub const fn write_combined(self, is_write_combined: bool) -> Self {
        Self { is_write_combined, ..self }
    }
}

/// The number of bytes of one kind of memory that is in use through one device.
#[derive(Clone, Debug, Default)]
pub struct ByteCount(Arc<AtomicU64>);

/// Bytes that count until this value drops.
#[derive(Debug)]
pub struct CountedBytes {
    count: Arc<AtomicU64>,
    len_bytes: u64,
}

impl ByteCount {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn count(&self, len_bytes: usize) -> CountedBytes {
        let len_bytes = len_bytes as u64;
        self.0.fetch_add(len_bytes, Ordering::Relaxed);
        CountedBytes { count: Arc::clone(&self.0), len_bytes }
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.count.fetch_sub(self.len_bytes, Ordering::Relaxed);
    }
}
