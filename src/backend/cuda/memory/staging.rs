//! Pinned (page-locked) staging blocks for copies with pageable memory. They are bounded, and kept
//! for reuse, because pinning is slow.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;

use super::numa::NumaAffinity;
use super::staging_limit::limit_bytes;
use crate::backend::cuda::call::check;
use crate::backend::cuda::capture_mode::Relaxed;
use crate::backend::cuda::context::Context;
use crate::backend::{BackendError, DeviceKind, HostMemory};

/// The smallest block.
const BLOCK_BYTES_MIN: u64 = 4 << 10;

/// The length of a larger block is rounded up to a multiple of this, and not to a power of two,
/// which could be almost twice the needed bytes.
const BLOCK_BYTES_STEP: u64 = 2 << 20;

/// The pinned staging bytes of this process, for all devices together.
static PINNED_BYTES: AtomicU64 = AtomicU64::new(0);

/// The staging blocks of one device.
#[derive(Debug)]
pub(crate) struct StagingPool {
    context: Arc<Context>,
    affinity: NumaAffinity,
    limit_bytes: u64,
    /// The process that made the pool. A forked child has neither the pinned blocks nor the copy
    /// threads.
    process: u32,
    free: Mutex<FreeBlocks>,
}

/// A block in use. The block returns to its pool when this value drops.
pub(crate) struct StagingBlock {
    start: BlockStart,
    len_bytes: usize,
    block_bytes: u64,
    pool: Arc<StagingPool>,
}

/// Unused blocks by their length in bytes.
#[derive(Debug, Default)]
struct FreeBlocks(BTreeMap<u64, Vec<BlockStart>>);

#[derive(Clone, Copy, Debug)]
struct BlockStart(*mut u8);

// SAFETY: the pointer refers to memory that a `StagingBlock` or the pool owns.
unsafe impl Send for BlockStart {}

impl StagingPool {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            affinity: NumaAffinity::of(&context),
            context,
            limit_bytes: limit_bytes(),
            process: std::process::id(),
            free: Mutex::default(),
        }
    }

    /// A block of at least `len_bytes` bytes; `None` if the limit or the system does not allow it,
    /// or in a forked child.
    pub(crate) fn take(self: &Arc<Self>, len_bytes: u64) -> Option<StagingBlock> {
        if std::process::id() != self.process {
            return None;
        }
        let wanted_bytes = block_bytes(len_bytes)?;
        let (start, block_bytes) = match self.reserve(wanted_bytes)? {
            Some(unused) => unused,
            None => (self.affinity.run_near(|| self.allocate(wanted_bytes))?, wanted_bytes),
        };
        let len_bytes = usize::try_from(len_bytes).ok()?;
        Some(StagingBlock { start, len_bytes, block_bytes, pool: Arc::clone(self) })
    }

    /// Whether `take` would find an unused block.
    pub(crate) fn has_unused(&self, len_bytes: u64) -> bool {
        block_bytes(len_bytes).is_some_and(|bytes| {
            self.free().0.range(fitting(bytes)).any(|(_, blocks)| !blocks.is_empty())
        })
    }

    /// Reserves a block. Returns an unused block and its length, or `Some(None)` if the caller may
    /// pin a new block, or `None` if the limit does not allow one.
    fn reserve(&self, block_bytes: u64) -> Option<Option<(BlockStart, u64)>> {
        // These blocks are freed after the lock is released, because freeing is slow.
        let mut removed = Vec::new();
        let mut free = self.free();
        if let Some(unused) = free.take_fitting(block_bytes) {
            return Some(Some(unused));
        }
        let has_room = loop {
            if count_pinned(block_bytes, self.limit_bytes) {
                break true;
            }
            match free.remove_largest() {
                Some(start) => removed.push(start),
                None => break false,
            }
        };
        drop(free);
        self.free_all(removed);
        has_room.then_some(None)
    }

    /// Allocates a block of zeros, whose bytes the caller has counted.
    fn allocate(&self, block_bytes: u64) -> Option<BlockStart> {
        const PORTABLE: u32 = 1;
        let mut start: *mut c_void = std::ptr::null_mut();
        let outcome = self.context.make_current().and_then(|()| {
            let _relaxed = Relaxed::enter();
            // SAFETY: the driver writes one pointer.
            let outcome =
                unsafe { sys::cuMemHostAlloc(&raw mut start, block_bytes as usize, PORTABLE) };
            check(outcome, "cuMemHostAlloc")
        });
        if outcome.is_err() || start.is_null() {
            PINNED_BYTES.fetch_sub(block_bytes, Ordering::Relaxed);
            return None;
        }
        // SAFETY: the driver just allocated this many bytes, and no other code can access them.
        unsafe { start.cast::<u8>().write_bytes(0, block_bytes as usize) };
        Some(BlockStart(start.cast()))
    }

    /// Frees all unused blocks.
    pub(crate) fn trim(&self) -> Result<(), BackendError> {
        self.context.make_current()?;
        let mut free = self.free();
        let removed: Vec<BlockStart> = std::iter::from_fn(|| free.remove_largest()).collect();
        drop(free);
        self.free_all(removed);
        Ok(())
    }

    /// Frees blocks that are no longer in the list.
    fn free_all(&self, blocks: Vec<BlockStart>) {
        if blocks.is_empty() || self.context.make_current().is_err() {
            return;
        }
        let _relaxed = Relaxed::enter();
        for BlockStart(start) in blocks {
            // SAFETY: `allocate` made the block, and no `StagingBlock` uses it. If the driver
            // refuses, the block leaks.
            let _leaked = unsafe { sys::cuMemFreeHost(start.cast()) };
        }
    }

    fn free(&self) -> MutexGuard<'_, FreeBlocks> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreeBlocks {
    /// Removes and returns the shortest block that is long enough, and its length.
    fn take_fitting(&mut self, block_bytes: u64) -> Option<(BlockStart, u64)> {
        let mut lists = self.0.range_mut(fitting(block_bytes));
        lists.find_map(|(len_bytes, blocks)| Some((blocks.pop()?, *len_bytes)))
    }

    /// Removes and returns the largest block, which no longer counts as pinned.
    fn remove_largest(&mut self) -> Option<BlockStart> {
        self.0.retain(|_, blocks| !blocks.is_empty());
        let mut largest = self.0.last_entry()?;
        let start = largest.get_mut().pop()?;
        PINNED_BYTES.fetch_sub(*largest.key(), Ordering::Relaxed);
        Some(start)
    }
}

/// Counts this many more bytes as pinned, unless that exceeds the limit.
fn count_pinned(block_bytes: u64, limit_bytes: u64) -> bool {
    let within =
        |pinned: u64| pinned.checked_add(block_bytes).filter(|pinned| *pinned <= limit_bytes);
    PINNED_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
}

/// The length of a new block that holds `len_bytes` bytes.
fn block_bytes(len_bytes: u64) -> Option<u64> {
    let power = len_bytes.max(BLOCK_BYTES_MIN).checked_next_power_of_two()?;
    if power <= 2 * BLOCK_BYTES_STEP {
        Some(power)
    } else {
        len_bytes.checked_next_multiple_of(BLOCK_BYTES_STEP)
    }
}

/// The lengths of unused blocks that may serve a request: up to a quarter longer.
fn fitting(block_bytes: u64) -> RangeInclusive<u64> {
    block_bytes..=block_bytes.saturating_add(block_bytes / 4)
}

// SAFETY: `start` points to a block of at least `len_bytes` bytes, which `allocate` zeroed and this
// value owns until it drops.
unsafe impl HostMemory for StagingBlock {
    fn base(&self) -> *mut u8 {
        self.start.0
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        kind == DeviceKind::Cuda
    }

    fn is_staging(&self) -> bool {
        true
    }
}

// SAFETY: the value only returns a pointer, whose users order their accesses (contract of
// `HostMemory`).
unsafe impl Sync for StagingBlock {}

impl Drop for StagingBlock {
    fn drop(&mut self) {
        self.pool.free().0.entry(self.block_bytes).or_default().push(self.start);
    }
}

impl fmt::Debug for StagingBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagingBlock({} bytes)", self.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockStart, FreeBlocks, block_bytes};

    #[test]
    fn blocks_are_powers_of_two_up_to_4_mib_and_multiples_of_2_mib_above() {
        assert_eq!(
            [0, 1, 5000, 1 << 20, (1 << 20) + 1, 3 << 20].map(block_bytes),
            [4096, 4096, 8192, 1 << 20, 2 << 20, 4 << 20].map(Some)
        );
        assert_eq!([(4 << 20) + 1, 10 << 30].map(block_bytes), [6 << 20, 10 << 30].map(Some));
        assert_eq!(block_bytes(u64::MAX), None);
    }

    #[test]
    fn a_block_up_to_a_quarter_longer_fits() {
        let start = BlockStart(std::ptr::null_mut());
        let blocks = [(4096, vec![start]), (8192, vec![]), (10_000, vec![start, start])];
        let mut free = FreeBlocks(blocks.into());
        let mut taken = |bytes| free.take_fitting(bytes).map(|(_, len_bytes)| len_bytes);
        assert_eq!(
            [taken(4096), taken(4096), taken(8192), taken(8192), taken(8192)],
            [Some(4096), None, Some(10_000), Some(10_000), None]
        );
    }
}
