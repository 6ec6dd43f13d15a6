//! Staging memory for uploads to streams that are busy. Blocks are kept for reuse, since the page
//! faults of new memory take longer than the copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::Block;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{DeviceKind, StagedBytes, StagingOwner};

/// Shorter staging memory is not kept: the system's allocator keeps it.
const LEN_BYTES_MIN: u64 = 64 << 10;

/// The most bytes that are kept. Further blocks return to the system.
const KEPT_BYTES_MAX: u64 = 256 << 20;

/// The blocks of one device.
#[derive(Debug, Default)]
pub(crate) struct StagingPool(BackendLock<Blocks>);

#[derive(Debug, Default)]
struct Blocks {
    /// Unused blocks, by their length.
    by_len: BTreeMap<u64, Vec<Block>>,
    kept_bytes: u64,
    /// By the address where they start.
    in_use: BTreeMap<usize, Block>,
}

impl StagingPool {
    /// A block of at least this length. `None` for short memory, or if the system has none.
    pub(crate) fn take(self: &Arc<Self>, len_bytes: u64) -> Option<StagedBytes> {
        if len_bytes < LEN_BYTES_MIN {
            return None;
        }
        let unused = self.lock().take(len_bytes);
        let block = unused.or_else(|| Block::zeroed(len_bytes))?;
        let (start, block_bytes) = (block.start(), block.len_bytes());
        let len_bytes = usize::try_from(len_bytes).ok()?;
        self.lock().in_use.insert(start.addr(), block);
        let owner: Arc<dyn StagingOwner> = Arc::clone(self) as _;
        // SAFETY: the bytes of blocks are initialised. This one is in use until `take_back`.
        Some(unsafe { StagedBytes::new(start, len_bytes, block_bytes, owner) })
    }

    /// Returns the unused blocks to the system.
    pub(crate) fn trim(&self) {
        let unused = {
            let mut blocks = self.lock();
            blocks.kept_bytes = 0;
            std::mem::take(&mut blocks.by_len)
        };
        drop(unused);
    }

    fn lock(&self) -> BackendGuard<'_, Blocks> {
        self.0.lock()
    }
}

impl Blocks {
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

impl StagingOwner for StagingPool {
    fn is_pinned_for(&self, _kind: DeviceKind) -> bool {
        false
    }

    unsafe fn take_back(&self, start: *mut u8, _block_bytes: u64) {
        let surplus = {
            let mut blocks = self.lock();
            let block = blocks.in_use.remove(&start.addr());
            block.and_then(|block| blocks.keep(block))
        };
        // Memory returns to the system with no lock held.
        drop(surplus);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{LEN_BYTES_MIN, StagingPool};
    use resident_backend::HostMemory;

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
