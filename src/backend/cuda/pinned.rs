//! Page-locked memory through which ordinary memory goes up and down: bounded, and kept for reuse,
//! since locking pages is slow.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;

use super::call::check;
use super::context::Context;
use super::near::Near;
use crate::backend::{BackendError, DeviceKind, HostMemory};

/// The smallest block.
const BLOCK_BYTES_MIN: u64 = 4 << 10;

/// Larger blocks have no power of two, but a multiple of this: half of one could lie idle, and that
/// many pages more would have to be locked.
const BLOCK_BYTES_STEP: u64 = 2 << 20;

/// Bounds what is page-locked for all devices together, in bytes.
const VARIABLE: &str = "RESIDENT_PINNED_MAX";

/// Page-locked memory of one device.
#[derive(Debug)]
pub(super) struct PinnedStore {
    context: Arc<Context>,
    near: Near,
    limit_bytes: u64,
    /// The process that made it. In the child of a fork neither the blocks are there, nor the
    /// threads that help to pack into them.
    process: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks that nobody uses, by length.
    kept: BTreeMap<u64, Vec<Start>>,
    kept_bytes: u64,
}

/// What is page-locked for staging in this process, for all devices together.
static LOCKED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Counts so many bytes more as locked, unless that is above the bound.
fn count(block_bytes: u64, limit_bytes: u64) -> bool {
    let within =
        |locked: u64| locked.checked_add(block_bytes).filter(|locked| *locked <= limit_bytes);
    LOCKED_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
}

/// Where a block starts.
#[derive(Clone, Copy, Debug)]
struct Start(*mut u8);

// SAFETY: the pointer is that of memory which a `Pinned` or the store owns.
unsafe impl Send for Start {}

impl PinnedStore {
    pub(super) fn new(context: Arc<Context>) -> Self {
        let process = std::process::id();
        Self {
            near: Near::to(&context),
            context,
            limit_bytes: limit_bytes(),
            process,
            state: Mutex::default(),
        }
    }

    /// A block of at least so many bytes, the first `len_bytes` of which are its own; `None` where
    /// the bound or the system leaves no room, and in the child of a fork.
    pub(super) fn take(self: &Arc<Self>, len_bytes: u64) -> Option<Pinned> {
        if std::process::id() != self.process {
            return None;
        }
        let wanted_bytes = block_bytes(len_bytes)?;
        let (start, block_bytes) = match self.reserve(wanted_bytes)? {
            Some(kept) => kept,
            None => (self.lock_pages(wanted_bytes)?, wanted_bytes),
        };
        Some(Pinned {
            start,
            len_bytes: usize::try_from(len_bytes).ok()?,
            block_bytes,
            store: Arc::clone(self),
        })
    }

    /// Whether such a block is there already.
    pub(super) fn keeps(&self, len_bytes: u64) -> bool {
        block_bytes(len_bytes).is_some_and(|bytes| {
            self.state().kept.range(fitting(bytes)).any(|(_, blocks)| !blocks.is_empty())
        })
    }

    /// A kept block and its length, or the right to lock so many bytes more, or neither.
    fn reserve(&self, block_bytes: u64) -> Option<Option<(Start, u64)>> {
        // Freed after the lock, which a slow call is not made under.
        let mut given_back = Vec::new();
        let mut state = self.state();
        if let Some(kept) = state.take_fitting(block_bytes) {
            return Some(Some(kept));
        }
        let has_room = loop {
            if count(block_bytes, self.limit_bytes) {
                break true;
            }
            match state.take_any() {
                Some(start) => given_back.push(start),
                None => break false,
            }
        };
        drop(state);
        self.free_all(given_back);
        has_room.then_some(None)
    }

    /// Takes memory from the system, near the GPU.
    fn lock_pages(&self, block_bytes: u64) -> Option<Start> {
        self.near.run(|| self.lock_pages_here(block_bytes))
    }

    fn lock_pages_here(&self, block_bytes: u64) -> Option<Start> {
        const PORTABLE: u32 = 1;
        let mut start: *mut c_void = std::ptr::null_mut();
        let outcome = self.context.enter().and_then(|()| {
            // SAFETY: the driver writes one pointer.
            check(
                unsafe { sys::cuMemHostAlloc(&raw mut start, block_bytes as usize, PORTABLE) },
                "cuMemHostAlloc",
            )
        });
        if outcome.is_err() || start.is_null() {
            LOCKED_BYTES.fetch_sub(block_bytes, Ordering::Relaxed);
            return None;
        }
        // SAFETY: so many bytes were just allocated and nobody else knows of them.
        unsafe { start.cast::<u8>().write_bytes(0, block_bytes as usize) };
        Some(Start(start.cast()))
    }

    /// Gives back what nobody uses.
    pub(super) fn trim(&self) -> Result<(), BackendError> {
        self.context.enter()?;
        let mut given_back = Vec::new();
        let mut state = self.state();
        while let Some(start) = state.take_any() {
            given_back.push(start);
        }
        drop(state);
        self.free_all(given_back);
        Ok(())
    }

    /// Frees blocks that are in no list any more.
    fn free_all(&self, blocks: Vec<Start>) {
        if blocks.is_empty() || self.context.enter().is_err() {
            return;
        }
        for Start(start) in blocks {
            // SAFETY: the block came from `lock_pages` and was in nobody's hands. A refusal leaves
            // it locked: a leak, no danger.
            let _leaked = unsafe { sys::cuMemFreeHost(start.cast()) };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a block for so many bytes is made.
fn block_bytes(len_bytes: u64) -> Option<u64> {
    let power = len_bytes.max(BLOCK_BYTES_MIN).checked_next_power_of_two()?;
    if power <= 2 * BLOCK_BYTES_STEP {
        Some(power)
    } else {
        len_bytes.checked_next_multiple_of(BLOCK_BYTES_STEP)
    }
}

/// Lengths of blocks that are taken for one of this length: a little longer ones too.
fn fitting(block_bytes: u64) -> RangeInclusive<u64> {
    block_bytes..=block_bytes.saturating_add(block_bytes / 4)
}

impl State {
    /// The shortest block that will do, and its length.
    fn take_fitting(&mut self, block_bytes: u64) -> Option<(Start, u64)> {
        let kept = self
            .kept
            .range_mut(fitting(block_bytes))
            .find_map(|(len_bytes, blocks)| Some((blocks.pop()?, *len_bytes)))?;
        self.kept_bytes -= kept.1;
        Some(kept)
    }

    /// The largest block that nobody uses. It is not counted any more.
    fn take_any(&mut self) -> Option<Start> {
        self.kept.retain(|_, blocks| !blocks.is_empty());
        let mut largest = self.kept.last_entry()?;
        let block_bytes = *largest.key();
        let start = largest.get_mut().pop()?;
        self.kept_bytes -= block_bytes;
        LOCKED_BYTES.fetch_sub(block_bytes, Ordering::Relaxed);
        Some(start)
    }
}

/// A page-locked block in use. It goes back to its store when dropped.
pub(super) struct Pinned {
    start: Start,
    len_bytes: usize,
    block_bytes: u64,
    store: Arc<PinnedStore>,
}

// SAFETY: `start` is that of a block of at least `len_bytes`, zeroed when it was made and owned by
// this value alone until it is dropped.
unsafe impl HostMemory for Pinned {
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

// SAFETY: the pointer is used as `HostMemory` allows: whoever uses it keeps the order of uses.
unsafe impl Sync for Pinned {}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut state = self.store.state();
        state.kept_bytes += self.block_bytes;
        state.kept.entry(self.block_bytes).or_default().push(self.start);
    }
}

/// Ordinary memory in the place of a block, where there is no room for one: copies with it wait.
#[derive(Debug)]
pub(super) struct Plain {
    start: NonNull<u8>,
    layout: Layout,
}

impl Plain {
    /// Zeroed memory of so many bytes, above none; `None` if there is no room.
    pub(super) fn zeroed(len_bytes: u64) -> Option<Self> {
        let layout = Layout::from_size_align(usize::try_from(len_bytes.max(1)).ok()?, 64).ok()?;
        // SAFETY: the layout's size is above zero.
        NonNull::new(unsafe { alloc_zeroed(layout) }).map(|start| Self { start, layout })
    }
}

// SAFETY: it owns its allocation, and hands out a pointer.
unsafe impl Send for Plain {}
// SAFETY: as above; whoever uses the pointer keeps the order of uses.
unsafe impl Sync for Plain {}

// SAFETY: `start` is that of `layout.size()` bytes, zeroed when they were made and freed by `drop`
// alone.
unsafe impl HostMemory for Plain {
    fn base(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn len_bytes(&self) -> usize {
        self.layout.size()
    }

    fn is_staging(&self) -> bool {
        true
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this layout, and given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} bytes)", self.len_bytes)
    }
}

/// What the environment asks for, else an eighth of the machine's memory.
fn limit_bytes() -> u64 {
    let asked = std::env::var(VARIABLE).ok().and_then(|text| parse_bytes(&text));
    asked.unwrap_or_else(|| machine_bytes().map_or(1 << 30, |bytes| bytes / 8))
}

/// A number of bytes, with k, M or G for powers of 1,024.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1 << 10),
        'm' | 'M' => (&text[..text.len() - 1], 1 << 20),
        'g' | 'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// The memory that this process may use, where the system tells: the machine's, or what its
/// container has of it.
fn machine_bytes() -> Option<u64> {
    const OF_CONTAINERS: [&str; 2] =
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // Without a bound it says "max", or a number above what any machine has.
    let bounds = OF_CONTAINERS
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    bounds.chain(installed_bytes()).min()
}

fn installed_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{Start, State, block_bytes, parse_bytes};

    #[test]
    fn blocks_have_powers_of_two_up_to_4_mib_and_whole_steps_above() {
        assert_eq!(
            [0, 1, 5000, 1 << 20, (1 << 20) + 1, 3 << 20].map(block_bytes),
            [4096, 4096, 8192, 1 << 20, 2 << 20, 4 << 20].map(Some)
        );
        assert_eq!([(4 << 20) + 1, 10 << 30].map(block_bytes), [6 << 20, 10 << 30].map(Some));
        assert_eq!(block_bytes(u64::MAX), None);
    }

    #[test]
    fn a_block_that_is_a_little_longer_will_do() {
        let (mut state, start) = (State::default(), Start(std::ptr::null_mut()));
        state.kept = [(4096, vec![start]), (8192, vec![]), (10_000, vec![start, start])].into();
        state.kept_bytes = 24_096;
        let mut taken = |bytes| state.take_fitting(bytes).map(|(_, len_bytes)| len_bytes);
        assert_eq!(
            [taken(4096), taken(4096), taken(8192), taken(8192), taken(8192)],
            [Some(4096), None, Some(10_000), Some(10_000), None]
        );
        assert_eq!(state.kept_bytes, 0);
    }

    #[test]
    fn bytes_are_read_with_their_unit() {
        assert_eq!(
            ["4096", "64k", " 2 G ", "3M"].map(parse_bytes),
            [Some(4096), Some(64 << 10), Some(2 << 30), Some(3 << 20)]
        );
        assert_eq!(["", "lots", "-1", "99999999999G"].map(parse_bytes), [None; 4]);
    }
}
