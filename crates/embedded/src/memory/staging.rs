//! Staging memory for uploads to streams that are busy. Blocks are kept for reuse, since the page
//! faults of new memory take longer than the copy.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::block::Block;
use resident_backend::HostMemory;
use resident_backend::sync::{BackendGuard, BackendLock};

/// Shorter staging memory is not kept: the system's allocator keeps it.
const LEN_BYTES_MIN: u64 = 64 << 10;

/// The most bytes that are kept. Further blocks return to the system.
const KEPT_BYTES_MAX: u64 = 256 << 20;

/// The unused blocks of one device.
#[derive(Debug, Default)]
pub(crate) struct StagingPool(BackendLock<UnusedBlocks>);

#[derive(Debug, Default)]
struct UnusedBlocks {
    by_len: BTreeMap<u64, Vec<Block>>,
    kept_bytes: u64,
}

/// A block in use. It returns to its pool when this value drops.
pub(crate) struct StagingBlock {
    /// `None` only while this value drops.
    block: Option<Block>,
    start: *mut u8,
    len_bytes: usize,
    pool: Arc<StagingPool>,
}

impl StagingPool {
    /// A block of at least this length. `None` for short memory, or if the system has none.
    pub(crate) fn take(self: &Arc<Self>, len_bytes: u64) -> Option<StagingBlock> {
        if len_bytes < LEN_BYTES_MIN {
            return None;
        }
        let unused = self.lock().take(len_bytes);
        let block = unused.or_else(|| Block::zeroed(len_bytes))?;
        let (start, len_bytes) = (block.start(), usize::try_from(len_bytes).ok()?);
        Some(StagingBlock { block: Some(block), start, len_bytes, pool: Arc::clone(self) })
    }

    /// Returns the unused blocks to the system.
    pub(crate) fn trim(&self) {
        let unused = std::mem::take(&mut *self.lock());
        drop(unused);
    }

    fn lock(&self) -> BackendGuard<'_, UnusedBlocks> {
        self.0.lock()
    }
}

impl UnusedBlocks {
    /// The shortest block that is long enough and at most a quarter longer.
    fn take(&mut self, len_bytes: u64) -> Option<Block> {
        let fitting = len_bytes..=len_bytes.saturating_add(len_bytes / 4);
        let (len_bytes, blocks) = self.by_len.range_mut(fitting).next()?;
        let (len_bytes, block) = (*len_bytes, blocks.pop()?);
        if blocks.is_empty() {
            self.by_len.remove(&len_bytes);
        }
        self.kept_bytes -= len_bytes;
        Some(block)
    }

    /// Keeps a block, or gives it back if there is no room for it.
    fn keep(&mut self, block: Block) -> Option<Block> {
        let len_bytes = block.len_bytes();
        if self.kept_bytes + len_bytes > KEPT_BYTES_MAX {
            return Some(block);
        }
        self.kept_bytes += len_bytes;
        self.by_len.entry(len_bytes).or_default().push(block);
        None
    }
}

// SAFETY: `start` is that of a block of at least `len_bytes` initialised bytes (`Block`), which
// this value owns until it drops.
unsafe impl HostMemory for StagingBlock {
    fn base(&self) -> *mut u8 {
        self.start
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_staging(&self) -> bool {
        true
    }
}

// SAFETY: the value owns its block; the pointer is only returned, and its users order their
// accesses (contract of `HostMemory`).
unsafe impl Send for StagingBlock {}
// SAFETY: as above.
unsafe impl Sync for StagingBlock {}

impl Drop for StagingBlock {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else { return };
        let surplus = self.pool.lock().keep(block);
        // Memory returns to the system with no lock held.
        drop(surplus);
    }
}

impl fmt::Debug for StagingBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StagingBlock({} bytes)", self.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{HostMemory, LEN_BYTES_MIN, StagingPool};

    #[test]
    fn a_block_is_used_again_for_a_length_that_nearly_fills_it() {
        let pool = Arc::new(StagingPool::default());
        let take = |len_bytes| pool.take(len_bytes).expect("memory");
        let first = take(1 << 20);
        let start = first.base();
        assert_ne!(take(1 << 20).base(), start);
        drop(first);
        let again = take((1 << 20) - 5);
        assert_eq!((again.base(), again.len_bytes()), (start, (1 << 20) - 5));
        assert!(pool.take(LEN_BYTES_MIN - 1).is_none());
    }

    #[test]
    fn a_pool_keeps_a_bounded_number_of_bytes_until_it_is_trimmed() {
        let pool = Arc::new(StagingPool::default());
        let kept = || pool.lock().kept_bytes >> 20;
        let blocks = [100_u64, 120, 130].map(|mebibytes| pool.take(mebibytes << 20));
        drop(blocks);
        assert_eq!(kept(), 220);
        pool.trim();
        assert_eq!(kept(), 0);
    }
}
