//! The copy thread pool: several threads copy large boxes of host memory. One thread is slower than
//! a GPU's link: it copies about 10 GB per second, and PCIe 5 transfers 55 GB per second.
//!
//! A copy is divided into shares. The threads take shares of the oldest copy that has any left,
//! then of the next: so several copies can be under way, and no thread waits at the end of one. The
//! thread that waits for a copy takes its shares too. Threads look for work for a short time before
//! they sleep, because waking one takes about as long as a share.
//!
//! The threads are not rayon's. A rayon thread that waits for its scope runs other jobs meanwhile,
//! and one of them may need the array that is being copied. A thread that waits for this pool runs
//! nothing else.

use std::collections::VecDeque;
use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar};
use std::thread;
use std::time::{Duration, Instant};

use super::copy_box;
use crate::CopyBox;
use crate::environment;
use crate::fork::PerProcess;
use crate::sync::{BackendGuard, BackendLock};
use crate::unwinding::abort_on_unwind;

/// The environment variable for the number of pool threads. 0 disables the pool.
const VARIABLE: &str = "RESIDENT_STAGING_THREADS";

/// The maximum number of pool threads if that variable is not set.
const THREADS_MAX: usize = 7;

/// The usual length of a share, in bytes: a copy of this length takes longer than waking a thread.
/// Copies of less than two shares stay whole.
const SHARE_BYTES: u64 = 512 << 10;

/// How long a thread looks for work, or for the end of a copy, before it sleeps.
const SPIN_TIME: Duration = Duration::from_micros(30);

/// As [`copy_box`], by the calling thread together with the pool.
///
/// # Safety
///
/// As for [`copy_box`]; also, the runs of the destination do not overlap each other or the source.
pub unsafe fn copy_box_in_parallel(source: *const u8, destination: *mut u8, whole: &CopyBox) {
    // SAFETY: the caller promises this, and the copy ends before this function does.
    unsafe { start_copy(source, destination, whole) }.finish();
}

/// Starts a copy by the pool. A small copy is made at once.
///
/// # Safety
///
/// As for [`copy_box_in_parallel`], until the returned value has dropped, which it must do.
pub unsafe fn start_copy(source: *const u8, destination: *mut u8, whole: &CopyBox) -> PendingCopy {
    let ends = CopyEnds { source, destination };
    let pool = if whole.len_bytes() >= 2 * SHARE_BYTES { pool() } else { None };
    let Some(pool) = pool else {
        // SAFETY: the caller promises this for `whole`.
        unsafe { ends.copy(whole) };
        return PendingCopy(None);
    };
    let job = Arc::new(Job::new(ends, whole.clone()));
    pool.submit(&job);
    PendingCopy(Some((job, pool)))
}

/// A copy that the pool may still be making. Dropping the value waits for it.
#[must_use = "the copy has ended when this has dropped"]
pub struct PendingCopy(Option<(Arc<Job>, &'static CopyPool)>);

impl PendingCopy {
    /// Helps with the copy, and waits for its end.
    pub fn finish(self) {
        drop(self);
    }
}

impl Drop for PendingCopy {
    fn drop(&mut self) {
        let Some((job, pool)) = self.0.take() else { return };
        abort_on_unwind("a copy by several threads", || {
            job.run_shares();
            pool.remove(&job);
            job.wait();
        });
    }
}

/// The starts of the source and the destination of a copy.
#[derive(Clone, Copy)]
struct CopyEnds {
    source: *const u8,
    destination: *mut u8,
}

// SAFETY: only `CopyEnds::copy` uses the pointers, under the promise of its caller.
unsafe impl Send for CopyEnds {}
// SAFETY: as for `Send`.
unsafe impl Sync for CopyEnds {}

impl CopyEnds {
    /// # Safety
    ///
    /// As for [`copy_box`].
    unsafe fn copy(&self, share: &CopyBox) {
        // SAFETY: as the caller promises.
        unsafe { copy_box(self.source, self.destination, share) };
    }
}

/// One copy, whose shares any thread may take.
struct Job {
    ends: CopyEnds,
    whole: CopyBox,
    shares: Shares,
    /// The number of shares that were taken, or more.
    taken: AtomicUsize,
    copied: AtomicUsize,
    /// Held to wait for the last share, and to announce it.
    end: BackendLock<()>,
    has_ended: Condvar,
}

impl Job {
    fn new(ends: CopyEnds, whole: CopyBox) -> Self {
        Self {
            ends,
            shares: Shares::of(&whole),
            whole,
            taken: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
            end: BackendLock::new(()),
            has_ended: Condvar::new(),
        }
    }

    fn has_untaken(&self) -> bool {
        self.taken.load(Ordering::Relaxed) < self.shares.count
    }

    /// Copies shares until all are taken.
    fn run_shares(&self) {
        while self.has_untaken() {
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            if number >= self.shares.count {
                return;
            }
            // SAFETY: the share lies within the box for which the caller of `start_copy` gave its
            // promise, and no other thread has this number. The promise holds until `PendingCopy`
            // has dropped, which waits for this share.
            unsafe { self.ends.copy(&self.shares.share(&self.whole, number)) };
            self.complete_share();
        }
    }

    fn complete_share(&self) {
        // Release: whoever sees that all shares are copied sees their bytes.
        let copied = self.copied.fetch_add(1, Ordering::AcqRel) + 1;
        if copied == self.shares.count {
            let _end = lock(&self.end);
            self.has_ended.notify_all();
        }
    }

    fn is_copied(&self) -> bool {
        self.copied.load(Ordering::Acquire) == self.shares.count
    }

    fn wait(&self) {
        if spin_until(|| self.is_copied()) {
            return;
        }
        let mut end = lock(&self.end);
        while !self.is_copied() {
            end = end.wait(&self.has_ended);
        }
    }
}

/// The division of a box into disjoint boxes of about equal length, along its slowest axis, or
/// along its run if there is only one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shares {
    count: usize,
    /// The steps along the slowest axis that one share has; the last may have fewer.
    steps: u64,
}

impl Shares {
    fn of(whole: &CopyBox) -> Self {
        let all_steps = whole.slowest_count();
        let wanted = (whole.len_bytes() / SHARE_BYTES).max(1);
        let steps = all_steps.div_ceil(wanted).max(1);
        Self { count: usize::try_from(all_steps.div_ceil(steps)).unwrap_or(usize::MAX), steps }
    }

    fn share(self, whole: &CopyBox, number: usize) -> CopyBox {
        let start = number as u64 * self.steps;
        whole.section(start, self.steps.min(whole.slowest_count() - start))
    }
}

#[derive(Default)]
struct CopyPool {
    jobs: BackendLock<Jobs>,
    arrived: Condvar,
    /// The number of jobs in the list, readable without the lock.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Jobs {
    /// The oldest first. Jobs without untaken shares are removed as they are found.
    list: VecDeque<Arc<Job>>,
    sleeping: usize,
}

impl CopyPool {
    fn submit(&self, job: &Arc<Job>) {
        let mut jobs = lock(&self.jobs);
        jobs.list.push_back(Arc::clone(job));
        self.waiting.store(jobs.list.len(), Ordering::Relaxed);
        let wakes = jobs.sleeping.min(job.shares.count);
        drop(jobs);
        (0..wakes).for_each(|_| self.arrived.notify_one());
    }

    fn remove(&self, job: &Arc<Job>) {
        let mut jobs = lock(&self.jobs);
        jobs.list.retain(|other| !Arc::ptr_eq(other, job));
        self.waiting.store(jobs.list.len(), Ordering::Relaxed);
    }

    /// Runs jobs as they arrive, for the life of the process.
    fn run(&self) {
        loop {
            spin_until(|| self.waiting.load(Ordering::Relaxed) > 0);
            self.next_job().run_shares();
        }
    }

    /// Sleeps until there is a job with untaken shares.
    fn next_job(&self) -> Arc<Job> {
        let mut jobs = lock(&self.jobs);
        loop {
            while jobs.list.front().is_some_and(|job| !job.has_untaken()) {
                jobs.list.pop_front();
            }
            self.waiting.store(jobs.list.len(), Ordering::Relaxed);
            if let Some(job) = jobs.list.front() {
                return Arc::clone(job);
            }
            jobs.sleeping += 1;
            jobs = jobs.wait(&self.arrived);
            jobs.sleeping -= 1;
        }
    }
}

/// Checks a condition repeatedly for a short time. Returns whether it became true.
fn spin_until(is_true: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !is_true() {
        if start.elapsed() > SPIN_TIME {
            return false;
        }
        hint::spin_loop();
    }
    true
}

fn lock<T>(mutex: &BackendLock<T>) -> BackendGuard<'_, T> {
    mutex.lock()
}

/// The pool, which the first large copy starts. `None` if it has no threads.
fn pool() -> Option<&'static CopyPool> {
    static POOL: PerProcess<Option<&'static CopyPool>> = PerProcess::new();
    *POOL.get_or_make(|| start(threads_wanted()))
}

/// The number of threads that the environment asks for. The error says what is wrong with it.
pub fn threads_asked() -> Result<Option<usize>, String> {
    environment::number(VARIABLE, 0..=1024)
}

/// Devices have refused a variable that is wrong.
fn threads_wanted() -> usize {
    threads_asked().ok().flatten().unwrap_or_else(|| {
        thread::available_parallelism().map_or(0, |processors| default_threads(processors.get()))
    })
}

/// Half of the processors copy, including that of the calling thread. With two processors there is
/// one pool thread.
fn default_threads(processors: usize) -> usize {
    (processors / 2).saturating_sub(1).clamp(processors.saturating_sub(1).min(1), THREADS_MAX)
}

/// Starts this many threads. The threads and the pool live as long as the process.
fn start(threads: usize) -> Option<&'static CopyPool> {
    let pool: &'static CopyPool = Box::leak(Box::default());
    let spawn = |number: usize| {
        let builder = thread::Builder::new().name(format!("resident staging {number}"));
        builder.spawn(|| pool.run()).is_ok()
    };
    // One thread is enough to run all jobs.
    (0..threads).map(spawn).fold(false, |any, started| any | started).then_some(pool)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use smallvec::SmallVec;

    use super::{
        CopyEnds, Job, SHARE_BYTES, SPIN_TIME, Shares, copy_box_in_parallel, default_threads,
        start_copy,
    };
    use crate::{CopyBox, host_copy};

    fn copy_box(run_bytes: u64, axes: &[(u64, u64, u64)]) -> CopyBox {
        CopyBox {
            run_bytes,
            source_offset_bytes: 5,
            destination_offset_bytes: 7,
            axes: SmallVec::from_slice(axes),
        }
    }

    #[test]
    fn half_of_the_processors_copy() {
        assert_eq!([0, 1, 2, 4, 8, 16, 192].map(default_threads), [0, 0, 1, 1, 3, 7, 7]);
    }

    #[test]
    fn shares_hold_every_step_once() {
        const SHARE: u64 = SHARE_BYTES;
        for (whole, count) in [
            (copy_box(SHARE, &[]), 1),
            (copy_box(SHARE * 2 + 3, &[]), 2),
            (copy_box(SHARE, &[(9, SHARE, SHARE)]), 9),
            (copy_box(SHARE / 4, &[(9, SHARE, SHARE)]), 2),
        ] {
            let shares = Shares::of(&whole);
            assert_eq!(shares.count, count, "{whole:?}");
            let steps = (0..count).map(|number| shares.share(&whole, number).slowest_count());
            assert_eq!(steps.sum::<u64>(), whole.slowest_count());
        }
        assert_eq!(Shares::of(&copy_box(8, &[(0, 8, 8)])).count, 0);
    }

    #[test]
    fn a_parallel_copy_writes_the_same_bytes_as_a_copy_by_one_thread() {
        let rows = [(7, 2 << 20, 1 << 20), (513, 1 << 11, 1 << 10)];
        for part in [copy_box(3 << 20, &[]), copy_box(1 << 10, &rows)] {
            let source: Vec<u8> = (0..16_usize << 20).map(|byte| (byte % 251) as u8 + 1).collect();
            let (mut expected, mut seen) = (vec![0_u8; 9 << 20], vec![0_u8; 9 << 20]);
            // SAFETY: the box lies within both vectors, and only this test uses them.
            unsafe { host_copy::copy_box(source.as_ptr(), expected.as_mut_ptr(), &part) };
            // SAFETY: as above.
            unsafe { copy_box_in_parallel(source.as_ptr(), seen.as_mut_ptr(), &part) };
            assert!(expected == seen);
        }
    }

    #[test]
    fn a_copy_ends_when_a_slow_thread_has_copied_the_last_share() {
        let (source, mut seen) = (vec![7_u8; 1 << 20], vec![0_u8; 1 << 20]);
        let whole = CopyBox {
            source_offset_bytes: 0,
            destination_offset_bytes: 0,
            ..copy_box(1 << 20, &[])
        };
        let ends = CopyEnds { source: source.as_ptr(), destination: seen.as_mut_ptr() };
        let job = Job::new(ends, whole);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(1000 * SPIN_TIME);
                job.run_shares();
            });
            job.wait();
            assert!(job.is_copied());
        });
        assert!(seen == source);
    }

    #[test]
    fn several_copies_are_under_way_at_once_and_end_in_any_order() {
        let source: Vec<u8> = (0..4_usize << 20).map(|byte| (byte % 253) as u8).collect();
        let mut copies = vec![vec![0_u8; 4 << 20]; 5];
        let whole = CopyBox {
            source_offset_bytes: 0,
            destination_offset_bytes: 0,
            ..copy_box(4 << 20, &[])
        };
        // SAFETY: both vectors have the bytes of the box, and each destination is used once. The
        // vectors outlive the pending copies.
        let start =
            |copy: &mut Vec<u8>| unsafe { start_copy(source.as_ptr(), copy.as_mut_ptr(), &whole) };
        let mut pending: Vec<_> = copies.iter_mut().map(start).collect();
        pending.swap_remove(2).finish();
        drop(pending);
        assert!(copies.iter().all(|copy| *copy == source));
    }
}
