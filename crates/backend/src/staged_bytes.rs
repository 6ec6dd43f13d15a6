//! Staging memory in use.

use std::fmt;
use std::sync::Arc;

use crate::{DeviceKind, HostMemory};

/// The pool that a block of staging memory returns to.
pub trait StagingOwner: Send + Sync {
    /// Whether the memory is pinned for devices of this kind.
    fn is_pinned_for(&self, kind: DeviceKind) -> bool;
    /// Takes a block back.
    ///
    /// # Safety
    ///
    /// The block is one of this pool, with its length, and nothing uses it any more.
    unsafe fn take_back(&self, start: *mut u8, block_bytes: u64);
}

/// A block of staging memory in use. It returns to its pool when this value drops.
pub struct StagedBytes {
    start: *mut u8,
    len_bytes: usize,
    block_bytes: u64,
    owner: Arc<dyn StagingOwner>,
}

impl StagedBytes {
    /// # Safety
    ///
    /// `start` is that of `block_bytes` initialised bytes, at least `len_bytes`, which stay
    /// allocated and which nothing else uses until `owner`, whose block they are, takes them back.
    pub unsafe fn new(
        start: *mut u8,
        len_bytes: usize,
        block_bytes: u64,
        owner: Arc<dyn StagingOwner>,
    ) -> Self {
        Self { start, len_bytes, block_bytes, owner }
    }
}

// SAFETY: `start` points to at least `len_bytes` initialised bytes, which this value owns until it
// drops (contract of `new`).
unsafe impl HostMemory for StagedBytes {
    fn base(&self) -> *mut u8 {
        self.start
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        self.owner.is_pinned_for(kind)
    }

    fn is_staging(&self) -> bool {
        true
    }
}

// SAFETY: the value owns the bytes until it drops (contract of `new`), on whichever thread.
unsafe impl Send for StagedBytes {}
// SAFETY: the value only returns a pointer, whose users order their accesses (contract of
// `HostMemory`).
unsafe impl Sync for StagedBytes {}

impl Drop for StagedBytes {
    fn drop(&mut self) {
        // SAFETY: `owner` is the pool of the block (contract of `new`), which only this value used.
        unsafe { self.owner.take_back(self.start, self.block_bytes) };
    }
}

impl fmt::Debug for StagedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagedBytes({} bytes)", self.len_bytes)
    }
}
