//! The copy thread pool: several threads copy one large box of host memory. One thread is slower
//! than a GPU's link: it copies about 10 GB per second, and PCIe 5 transfers 55 GB per second.
//!
//! The threads are not rayon's. A rayon thread that waits for its scope runs other jobs meanwhile,
//! and one of them may need the array that is being copied. A thread that waits for this pool runs
//! nothing else.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use smallvec::SmallVec;

use super::copy_box;
use crate::backend::CopyBox;

/// The environment variable for the number of pool threads. 0 disables the pool.
const VARIABLE: &str = "RESIDENT_STAGING_THREADS";

/// The maximum number of pool threads if that variable is not set.
const THREADS_MAX: usize = 7;

/// The smallest share of a copy, in bytes, for which waking a thread pays.
const SHARE_BYTES_MIN: u64 = 256 << 10;

/// As [`copy_box`], by the calling thread together with the pool.
///
/// # Safety
///
/// As for [`copy_box`]; also, the runs of the destination do not overlap each other or the source.
pub(crate) unsafe fn copy_box_in_parallel(
    source: *const u8,
    destination: *mut u8,
    whole: &CopyBox,
) {
    let ends = CopyEnds { source, destination };
    let pool = if shares_max(whole) > 1 { pool() } else { None };
    let Some(pool) = pool else {
        // SAFETY: the caller promises this for `whole`.
        return unsafe { ends.copy(whole) };
    };
    let mut shares = shares(whole, pool.threads as u64 + 1);
    let own_share = shares.pop();
    let pending = pool.submit(ends, shares);
    if let Some(share) = own_share {
        // SAFETY: the shares are disjoint boxes within `whole`, whose validity the caller
        // guarantees.
        unsafe { ends.copy(&share) };
    }
    pending.wait();
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

/// One share of a copy, which any pool thread may run.
struct Job {
    ends: CopyEnds,
    share: CopyBox,
    pending: Arc<PendingShares>,
}

impl Job {
    fn run(self) {
        // SAFETY: the share lies within the box for which the caller of `copy_box_in_parallel` gave
        // its promise. That function waits for this job, and the other shares are disjoint.
        unsafe { self.ends.copy(&self.share) };
        self.pending.complete_one();
    }
}

/// The number of shares of a copy that are not copied yet.
#[derive(Debug)]
struct PendingShares {
    count: Mutex<usize>,
    is_zero: Condvar,
}

impl PendingShares {
    fn complete_one(&self) {
        let mut count = lock(&self.count);
        *count -= 1;
        if *count == 0 {
            self.is_zero.notify_all();
        }
    }

    fn wait(&self) {
        let mut count = lock(&self.count);
        while *count > 0 {
            count = self.is_zero.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[derive(Default)]
struct CopyPool {
    threads: usize,
    jobs: Mutex<VecDeque<Job>>,
    arrived: Condvar,
}

impl CopyPool {
    fn submit(&self, ends: CopyEnds, shares: SmallVec<[CopyBox; 4]>) -> Arc<PendingShares> {
        let count = Mutex::new(shares.len());
        let pending = Arc::new(PendingShares { count, is_zero: Condvar::new() });
        let job = |share| Job { ends, share, pending: Arc::clone(&pending) };
        lock(&self.jobs).extend(shares.into_iter().map(job));
        self.arrived.notify_all();
        pending
    }

    /// Runs jobs as they arrive, for the life of the process.
    fn run(&self) {
        loop {
            self.next_job().run();
        }
    }

    fn next_job(&self) -> Job {
        let mut jobs = lock(&self.jobs);
        loop {
            match jobs.pop_front() {
                Some(job) => return job,
                None => jobs = self.arrived.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pool, which the first large copy starts. `None` if it has no threads.
fn pool() -> Option<&'static CopyPool> {
    static POOL: OnceLock<Option<&'static CopyPool>> = OnceLock::new();
    *POOL.get_or_init(|| start(threads_wanted()))
}

fn threads_wanted() -> usize {
    let asked = std::env::var(VARIABLE).ok().and_then(|text| text.trim().parse().ok());
    asked.unwrap_or_else(|| {
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
    let pool: &'static CopyPool = Box::leak(Box::new(CopyPool { threads, ..CopyPool::default() }));
    let spawn = |number: usize| {
        let builder = thread::Builder::new().name(format!("resident staging {number}"));
        builder.spawn(|| pool.run()).is_ok()
    };
    // One thread is enough to run all jobs.
    (0..threads).map(spawn).fold(false, |any, started| any | started).then_some(pool)
}

fn shares_max(copy_box: &CopyBox) -> u64 {
    copy_box.len_bytes() / SHARE_BYTES_MIN
}

/// Splits a box into up to `count` disjoint boxes of about equal length, along its slowest axis, or
/// along its run if there is only one. Returns at least one.
fn shares(whole: &CopyBox, count: u64) -> SmallVec<[CopyBox; 4]> {
    let count = count.min(shares_max(whole)).max(1);
    let turns = whole.slowest_count();
    let step = turns.div_ceil(count).max(1);
    let mut shares: SmallVec<[CopyBox; 4]> = (0..turns)
        .step_by(usize::try_from(step).unwrap_or(usize::MAX))
        .map(|start| whole.section(start, step.min(turns - start)))
        .collect();
    if shares.is_empty() {
        shares.push(whole.clone());
    }
    shares
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{SHARE_BYTES_MIN, copy_box_in_parallel, default_threads, shares};
    use crate::backend::{CopyBox, host_copy};

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
    fn small_boxes_stay_whole_and_large_ones_are_split() {
        const MIN: u64 = SHARE_BYTES_MIN;
        let small = copy_box(MIN, &[]);
        assert_eq!(shares(&small, 4).as_slice(), [small]);
        assert_eq!(shares(&copy_box(MIN * 2 + 3, &[]), 4).len(), 2);
        assert_eq!(shares(&copy_box(MIN, &[(9, MIN, MIN)]), 4).len(), 3);
        assert_eq!(shares(&copy_box(0, &[]), 4).len(), 1);
        assert_eq!(shares(&copy_box(8, &[(0, 8, 8)]), 4).len(), 1);
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
}
