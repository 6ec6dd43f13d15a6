//! Pinned (page-locked) staging blocks for copies with pageable memory. They are bounded, and kept
//! for reuse, because pinning is slow.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::numa::NumaAffinity;
use crate::capture_mode::Relaxed;
use crate::context::Context;
use resident_backend::fork::ForkMark;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{BackendError, DeviceKind, StagedBytes, StagingOwner};

/// The smallest block.
const BLOCK_BYTES_MIN: u64 = 4 << 10;

/// Blocks up to this length are parts of a slab, so that one pinning makes several ready.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// Slabs are only freed by `trim`: programs that stage a few bytes do so all the time.
const SLAB_BYTES: u64 = 256 << 10;

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
    /// A forked child has neither the pinned blocks nor the copy threads.
    process: ForkMark,
    free: BackendLock<FreeBlocks>,
}

/// The number of lengths that small blocks have.
const SMALL_CLASSES: usize = (SMALL_BYTES_MAX / BLOCK_BYTES_MIN).ilog2() as usize + 1;

/// Unused blocks.
#[derive(Debug, Default)]
struct FreeBlocks {
    /// Blocks of 4 KiB, 8 KiB, and so on up to `SMALL_BYTES_MAX`.
    small: [Vec<BlockStart>; SMALL_CLASSES],
    /// By their length in bytes.
    large: BTreeMap<u64, Vec<BlockStart>>,
    /// The slabs whose parts the small blocks are, in use or not.
    slabs: Vec<Slab>,
}

/// Pinned memory that is cut into small blocks of one length.
#[derive(Clone, Copy, Debug)]
struct Slab {
    start: BlockStart,
    pinned_bytes: u64,
    block_bytes: u64,
}

impl Slab {
    fn contains(&self, block: BlockStart) -> bool {
        let offset_bytes = block.0.addr().wrapping_sub(self.start.0.addr());
        (offset_bytes as u64) < self.pinned_bytes
    }
}

#[derive(Clone, Copy, Debug)]
struct BlockStart(*mut u8);

// SAFETY: the pointer refers to memory that a `StagedBytes` or the pool owns.
unsafe impl Send for BlockStart {}

impl StagingPool {
    pub(crate) fn new(context: Arc<Context>, limit_bytes: u64) -> Self {
        Self {
            affinity: NumaAffinity::of(&context),
            context,
            limit_bytes,
            process: ForkMark::new(),
            free: BackendLock::default(),
        }
    }

    /// A block of at least `len_bytes` bytes; `None` if the limit or the system does not allow it,
    /// or in a forked child.
    pub(crate) fn take(self: &Arc<Self>, len_bytes: u64) -> Option<StagedBytes> {
        if !self.process.is_own() {
            return None;
        }
        let wanted_bytes = block_bytes(len_bytes)?;
        let pinned_bytes = self.pinned_together(wanted_bytes);
        let (start, block_bytes) = match self.reserve(wanted_bytes, pinned_bytes)? {
            Some(unused) => unused,
            None => {
                let start = self.affinity.run_near(|| self.allocate(pinned_bytes))?;
                if wanted_bytes <= SMALL_BYTES_MAX {
                    self.free().add_slab(Slab { start, pinned_bytes, block_bytes: wanted_bytes });
                }
                (start, wanted_bytes)
            }
        };
        let len_bytes = usize::try_from(len_bytes).ok()?;
        let owner: Arc<dyn StagingOwner> = Arc::clone(self) as _;
        // SAFETY: `allocate` zeroed the block, and freed blocks are those that `take_back` got.
        Some(unsafe { StagedBytes::new(start.0, len_bytes, block_bytes, owner) })
    }

    /// Whether `take` would find an unused block.
    pub(crate) fn has_unused(&self, len_bytes: u64) -> bool {
        block_bytes(len_bytes).is_some_and(|bytes| self.free().has_fitting(bytes))
    }

    /// Whether a block of this length is small, and the limit allows another slab.
    pub(crate) fn is_ready_for(&self, len_bytes: u64) -> bool {
        let room_bytes = self.limit_bytes.saturating_sub(PINNED_BYTES.load(Ordering::Relaxed));
        len_bytes <= SMALL_BYTES_MAX && SLAB_BYTES <= room_bytes
    }

    /// The number of bytes that are pinned at once to make a block: a slab, if the limit allows it.
    fn pinned_together(&self, block_bytes: u64) -> u64 {
        let is_small = block_bytes <= SMALL_BYTES_MAX && SLAB_BYTES <= self.limit_bytes;
        if is_small { SLAB_BYTES } else { block_bytes }
    }

    /// Reserves a block. Returns an unused block and its length, or `Some(None)` if the caller may
    /// pin `pinned_bytes`, or `None` if the limit does not allow that.
    fn reserve(&self, block_bytes: u64, pinned_bytes: u64) -> Option<Option<(BlockStart, u64)>> {
        // These blocks are freed after the lock is released, because freeing is slow.
        let mut removed = Vec::new();
        let mut free = self.free();
        if let Some(unused) = free.take_fitting(block_bytes) {
            return Some(Some(unused));
        }
        let has_room = loop {
            if count_pinned(pinned_bytes, self.limit_bytes) {
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
            let _relaxed = Relaxed::enter(self.context.driver());
            let allocate = &self.context.driver().allocate_host;
            // SAFETY: the driver writes one pointer.
            let outcome =
                unsafe { (allocate.function)(&raw mut start, block_bytes as usize, PORTABLE) };
            allocate.check(outcome)
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
        let mut removed: Vec<BlockStart> = std::iter::from_fn(|| free.remove_largest()).collect();
        removed.extend(free.remove_unused_slabs());
        drop(free);
        self.free_all(removed);
        Ok(())
    }

    /// Frees blocks that are no longer in the list.
    fn free_all(&self, blocks: Vec<BlockStart>) {
        if blocks.is_empty() || self.context.make_current().is_err() {
            return;
        }
        let driver = self.context.driver();
        let _relaxed = Relaxed::enter(driver);
        for BlockStart(start) in blocks {
            // SAFETY: `allocate` made the block, and no `StagedBytes` uses it. If the driver
            // refuses, the block leaks.
            let _leaked = unsafe { (driver.free_host.function)(start.cast()) };
        }
    }

    fn free(&self) -> BackendGuard<'_, FreeBlocks> {
        self.free.lock()
    }
}

impl FreeBlocks {
    fn has_fitting(&self, block_bytes: u64) -> bool {
        match small_class(block_bytes) {
            Some(class) => !self.small[class].is_empty(),
            None => self.large.range(fitting(block_bytes)).any(|(_, blocks)| !blocks.is_empty()),
        }
    }

    /// Removes and returns the shortest block that is long enough, and its length.
    fn take_fitting(&mut self, block_bytes: u64) -> Option<(BlockStart, u64)> {
        if let Some(class) = small_class(block_bytes) {
            return self.small[class].pop().map(|start| (start, block_bytes));
        }
        let mut lists = self.large.range_mut(fitting(block_bytes));
        lists.find_map(|(len_bytes, blocks)| Some((blocks.pop()?, *len_bytes)))
    }

    fn add(&mut self, start: BlockStart, block_bytes: u64) {
        match small_class(block_bytes) {
            Some(class) => self.small[class].push(start),
            None => self.large.entry(block_bytes).or_default().push(start),
        }
    }

    /// Adds a new slab and its blocks after the first, which the caller uses.
    fn add_slab(&mut self, slab: Slab) {
        self.slabs.push(slab);
        let offsets = (slab.block_bytes..slab.pinned_bytes).step_by(slab.block_bytes as usize);
        offsets.for_each(|offset| {
            let start = BlockStart(slab.start.0.wrapping_add(offset as usize));
            self.add(start, slab.block_bytes);
        });
    }

    /// Removes and returns the slabs none of whose blocks is in use. They no longer count as
    /// pinned.
    fn remove_unused_slabs(&mut self) -> Vec<BlockStart> {
        let small = &mut self.small;
        let is_unused = |slab: &mut Slab| {
            let Some(class) = small_class(slab.block_bytes) else { return false };
            let blocks = &mut small[class];
            let unused = blocks.iter().filter(|block| slab.contains(**block)).count() as u64;
            let is_unused = unused * slab.block_bytes == slab.pinned_bytes;
            if is_unused {
                blocks.retain(|block| !slab.contains(*block));
                PINNED_BYTES.fetch_sub(slab.pinned_bytes, Ordering::Relaxed);
            }
            is_unused
        };
        self.slabs.extract_if(.., is_unused).map(|slab| slab.start).collect()
    }

    /// Removes and returns the largest block that is no part of a slab. It no longer counts as
    /// pinned.
    fn remove_largest(&mut self) -> Option<BlockStart> {
        self.large.retain(|_, blocks| !blocks.is_empty());
        let mut largest = self.large.last_entry()?;
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

/// The index of a small block's length among the lengths that small blocks have.
fn small_class(block_bytes: u64) -> Option<usize> {
    (block_bytes <= SMALL_BYTES_MAX).then(|| (block_bytes / BLOCK_BYTES_MIN).ilog2() as usize)
}

/// The lengths of unused blocks that may serve a request: up to a quarter longer.
fn fitting(block_bytes: u64) -> RangeInclusive<u64> {
    block_bytes..=block_bytes.saturating_add(block_bytes / 4)
}

impl StagingOwner for StagingPool {
    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        kind == self.context.kind()
    }

    unsafe fn take_back(&self, start: *mut u8, block_bytes: u64) {
        self.free().add(BlockStart(start), block_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BLOCK_BYTES_MIN, BlockStart, FreeBlocks, SLAB_BYTES, SMALL_BYTES_MAX, Slab, block_bytes,
        count_pinned,
    };

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
        let mut free = FreeBlocks::default();
        let lengths: [u64; 3] = [100_000, 120_000, 120_000];
        lengths.into_iter().for_each(|len_bytes| free.add(start(0), len_bytes));
        let mut taken = |bytes| free.take_fitting(bytes).map(|(_, len_bytes)| len_bytes);
        assert_eq!(
            [taken(100_000), taken(90_000), taken(100_000), taken(100_000), taken(100_000)],
            [Some(100_000), None, Some(120_000), Some(120_000), None]
        );
    }

    #[test]
    fn a_slab_is_cut_into_blocks_of_one_length_and_kept_while_one_is_in_use() {
        let mut free = FreeBlocks::default();
        count_pinned(SLAB_BYTES, u64::MAX);
        let slab = Slab {
            start: start(SLAB_BYTES),
            pinned_bytes: SLAB_BYTES,
            block_bytes: SMALL_BYTES_MAX,
        };
        free.add_slab(slab);
        assert!(free.has_fitting(SMALL_BYTES_MAX) && !free.has_fitting(BLOCK_BYTES_MIN));
        assert!(free.remove_largest().is_none() && free.remove_unused_slabs().is_empty());
        let taken: Vec<BlockStart> = std::iter::from_fn(|| free.take_fitting(SMALL_BYTES_MAX))
            .map(|taken| taken.0)
            .collect();
        let offsets: Vec<u64> =
            taken.iter().map(|block| block.0.addr() as u64 - SLAB_BYTES).collect();
        assert_eq!(offsets, [3, 2, 1].map(|number| number * SMALL_BYTES_MAX));
        taken.into_iter().chain([slab.start]).for_each(|block| free.add(block, SMALL_BYTES_MAX));
        assert_eq!(free.remove_unused_slabs().len(), 1);
        assert!(!free.has_fitting(SMALL_BYTES_MAX));
    }

    fn start(address: u64) -> BlockStart {
        BlockStart(std::ptr::without_provenance_mut(address as usize))
    }
}
