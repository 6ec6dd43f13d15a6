//! The blocks of a launch that no thread of the machine has begun, and how many are set aside since
//! they wait for others.
//!
//! A launch whose blocks all wait for one that cannot begin, since too many are set aside, fails.
//! That is certain, not guessed from the time: no thread of any of them changes what it keeps in
//! registers and on its stack between two turns. Only a thread that changes other memory in each
//! round, and nothing else, is taken for one that waits.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// So many blocks of a launch make progress together.
pub(super) const BLOCKS_MAX: u64 = 256;

/// So many threads do, in these blocks. Each needs a stack, which takes two of the 65,530 mappings
/// that Linux allows a process by default.
pub(super) const THREADS_MAX: u64 = 16_384;

/// All blocks wait for so long before the launch fails.
const WAIT_TIME: Duration = Duration::from_secs(1);

/// The blocks of one launch, which several threads of the machine run: its workers.
pub(super) struct Work {
    blocks: u64,
    parts: u64,
    threads_of_block: u64,
    next: AtomicU64,
    /// The blocks that have begun and not ended.
    live: AtomicU64,
    /// Those of them that wait for others.
    set_aside: AtomicU64,
    workers: AtomicU64,
    failed: OnceLock<String>,
    stillness: Mutex<Stillness>,
}

/// Which workers have blocks that only wait.
#[derive(Default)]
struct Stillness {
    /// Rises whenever a thread of the launch comes to something else.
    changes: u64,
    /// The workers whose blocks all have waited since the last change.
    still: u64,
    since: Option<Instant>,
}

impl Work {
    /// Blocks in so many parts, of which the first come first.
    pub(super) fn new(blocks: u64, parts: u64, threads_of_block: u32) -> Self {
        Self {
            blocks,
            parts,
            threads_of_block: u64::from(threads_of_block).max(1),
            next: AtomicU64::new(0),
            live: AtomicU64::new(0),
            set_aside: AtomicU64::new(0),
            workers: AtomicU64::new(0),
            failed: OnceLock::new(),
            stillness: Mutex::default(),
        }
    }

    /// The blocks of the next part; `None` if all have begun, or the launch has failed.
    pub(super) fn take(&self) -> Option<Range<u64>> {
        if self.failure().is_some() {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.parts).then(|| self.start(number)..self.start(number + 1))
    }

    fn start(&self, number: u64) -> u64 {
        (u128::from(self.blocks) * u128::from(number) / u128::from(self.parts)) as u64
    }

    /// The launch has failed.
    pub(super) fn fail(&self, text: String) {
        let _is_first = self.failed.set(text);
    }

    pub(super) fn failure(&self) -> Option<&String> {
        self.failed.get()
    }

    pub(super) fn outcome(self) -> Result<(), String> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }

    /// How many blocks make progress together.
    fn blocks_max(&self) -> u64 {
        (THREADS_MAX / self.threads_of_block).clamp(1, BLOCKS_MAX)
    }

    /// A worker begins a block, and has set none aside.
    pub(super) fn begin_block(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets a worker begin a block beside those that it has set aside. Returns whether it may.
    pub(super) fn begin_another(&self) -> bool {
        let more = |live| (live < self.blocks_max()).then_some(live + 1);
        self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// A block that was not set aside has ended.
    pub(super) fn end_block(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// A block waits for others.
    pub(super) fn set_aside(&self) {
        self.set_aside.fetch_add(1, Ordering::Relaxed);
        self.change();
    }

    /// A block that was set aside has ended.
    pub(super) fn end_set_aside(&self) {
        self.set_aside.fetch_sub(1, Ordering::Relaxed);
        self.end_block();
        self.change();
    }

    /// Whether blocks are set aside.
    pub(super) fn has_set_aside(&self) -> bool {
        self.set_aside.load(Ordering::Relaxed) > 0
    }

    /// Whether so many blocks have begun that no other begins beside them.
    pub(super) fn is_full(&self) -> bool {
        self.live.load(Ordering::Relaxed) >= self.blocks_max()
    }

    /// Another worker takes part.
    pub(super) fn begin_worker(&self) {
        self.workers.fetch_add(1, Ordering::Relaxed);
        if self.has_set_aside() {
            self.change();
        }
    }

    /// A worker has no more blocks.
    pub(super) fn end_worker(&self) {
        self.workers.fetch_sub(1, Ordering::Relaxed);
        if self.has_set_aside() {
            self.change();
        }
    }

    /// A thread of the launch has come to something else.
    pub(super) fn change(&self) {
        self.with(|stillness| {
            stillness.changes += 1;
            stillness.still = 0;
        });
    }

    /// How often something has changed.
    pub(super) fn changes(&self) -> u64 {
        self.with(|stillness| stillness.changes)
    }

    /// All blocks of a worker have only waited since so many changes. Each worker calls this once
    /// after a change.
    pub(super) fn be_still(&self, changes: u64) {
        self.with(|stillness| {
            if stillness.changes == changes {
                stillness.still += 1;
                stillness.since = Some(Instant::now());
            }
        });
    }

    /// Why no block can begin, if all those that have begun wait.
    pub(super) fn hang(&self) -> Option<String> {
        let is_still = self.with(|stillness| {
            stillness.still == self.workers.load(Ordering::Relaxed)
                && stillness.since.is_some_and(|since| since.elapsed() > WAIT_TIME)
        });
        is_still.then(|| self.hang_text())
    }

    #[cold]
    fn hang_text(&self) -> String {
        format!(
            "its blocks wait for one that cannot begin: {} of the {} blocks, of {} threads each, \
             run at once here (at most {BLOCKS_MAX} blocks, and {THREADS_MAX} threads), and all of \
             them wait for memory that nothing changes; launch fewer blocks, or divide the kernel \
             where it waits. A barrier of more blocks than a GPU holds at once hangs there too",
            self.blocks_max(),
            self.blocks,
            self.threads_of_block
        )
    }

    fn with<R>(&self, run: impl FnOnce(&mut Stillness) -> R) -> R {
        run(&mut self.stillness.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::Work;

    #[test]
    fn parts_have_each_block_once_in_order() {
        let work = Work::new(10, 4, 32);
        let parts: Vec<_> = std::iter::from_fn(|| work.take()).collect();
        assert_eq!(parts, [0..2, 2..5, 5..7, 7..10]);
    }

    #[test]
    fn so_many_blocks_begin_as_have_stacks() {
        for (threads, expected) in [(1, 256), (64, 256), (256, 64), (1024, 16)] {
            let work = Work::new(1000, 1, threads);
            let count = (0..1000).take_while(|_| work.begin_another()).count();
            assert_eq!(count, expected, "{threads}");
            assert!(work.is_full());
        }
    }

    #[test]
    fn a_change_ends_the_stillness_of_all() {
        let work = Work::new(1000, 1, 32);
        work.begin_worker();
        work.be_still(work.changes());
        assert_eq!(work.with(|stillness| stillness.still), 1);
        let before = work.changes();
        work.change();
        work.be_still(before);
        assert_eq!(work.with(|stillness| stillness.still), 0);
    }
}
