//! Large copies in the host's memory by several threads: one alone does not keep up with a GPU's
//! link.
//!
//! Not by rayon: a thread of a user's pool that waits for a scope of another runs other jobs of its
//! own meanwhile, which may want the very array that is being copied. Whoever waits here does
//! nothing else.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use smallvec::SmallVec;

use super::{CopyBox, bytes};

/// How many threads help whoever copies.
const VARIABLE: &str = "RESIDENT_STAGING_THREADS";

/// Helpers where nothing else is asked for. One thread copies some 10 GB a second, and a link of
/// the fifth generation moves 55.
const HELPERS_MAX: usize = 7;

/// Less than this is copied sooner than another thread is woken.
const SHARE_BYTES_MIN: u64 = 256 << 10;

/// Where the two memories of a copy start.
#[derive(Clone, Copy)]
struct Ends(*const u8, *mut u8);

// SAFETY: the pointers are used by `copy_part` alone, within the promise of its caller.
unsafe impl Send for Ends {}
// SAFETY: as above.
unsafe impl Sync for Ends {}

impl Ends {
    /// # Safety
    ///
    /// As for [`bytes::copy_part`].
    unsafe fn copy(&self, part: &CopyBox) {
        // SAFETY: as the caller promises.
        unsafe { bytes::copy_part(self.0, self.1, part) };
    }
}

/// A share of a copy, for whichever thread comes first.
struct Job {
    ends: Ends,
    share: CopyBox,
    left: Arc<Left>,
}

/// How many shares of a copy are not done.
#[derive(Debug, Default)]
struct Left {
    shares: Mutex<usize>,
    none: Condvar,
}

/// The threads that help.
#[derive(Default)]
struct CopyPool {
    helpers: usize,
    jobs: Mutex<VecDeque<Job>>,
    arrived: Condvar,
}

/// As [`bytes::copy_part`], by the calling thread and a few others.
///
/// # Safety
///
/// As for [`bytes::copy_part`].
pub(crate) unsafe fn copy_part(source: *const u8, destination: *mut u8, part: &CopyBox) {
    let ends = Ends(source, destination);
    let copy_pool = if shares_max(part) > 1 { copy_pool() } else { None };
    let Some(copy_pool) = copy_pool else {
        // SAFETY: the caller's promise is handed on.
        return unsafe { ends.copy(part) };
    };
    let mut shares = shares(part, copy_pool.helpers as u64 + 1);
    let own = shares.pop();
    let left = Arc::new(Left { shares: Mutex::new(shares.len()), none: Condvar::new() });
    copy_pool.jobs().extend(shares.into_iter().map(|share| Job {
        ends,
        share,
        left: Arc::clone(&left),
    }));
    copy_pool.arrived.notify_all();
    // SAFETY: shares are disjoint parts of the part that the caller vouches for.
    own.iter().for_each(|own| unsafe { ends.copy(own) });
    left.wait();
}

impl Job {
    fn run(self) {
        // SAFETY: shares are disjoint parts of the part that the caller of `copy_part` vouches for,
        // who waits for all of them.
        unsafe { self.ends.copy(&self.share) };
        let mut shares = self.left.lock();
        *shares -= 1;
        if *shares == 0 {
            self.left.none.notify_all();
        }
    }
}

impl Left {
    fn wait(&self) {
        let mut shares = self.lock();
        while *shares > 0 {
            shares = self.none.wait(shares).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CopyPool {
    fn jobs(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn help(&self) {
        loop {
            let mut jobs = self.jobs();
            let job = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => jobs = self.arrived.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            job.run();
        }
    }
}

/// The copy thread pool, started at the first large copy; none where the environment says 0, or the
/// system starts no thread.
fn copy_pool() -> Option<&'static CopyPool> {
    static CREW: OnceLock<Option<&'static CopyPool>> = OnceLock::new();
    *CREW.get_or_init(|| start(helpers_wanted()))
}

fn helpers_wanted() -> usize {
    let asked = std::env::var(VARIABLE).ok().and_then(|text| text.trim().parse().ok());
    asked.unwrap_or_else(|| {
        thread::available_parallelism().map_or(0, |threads| helpers_among(threads.get()))
    })
}

/// With whoever copies they take half of the processors, and leave the others to the program.
fn helpers_among(processors: usize) -> usize {
    (processors / 2).saturating_sub(1).clamp(processors.saturating_sub(1).min(1), HELPERS_MAX)
}

/// Starts so many helpers. They live as long as the process, and so does what they share.
fn start(helpers: usize) -> Option<&'static CopyPool> {
    let copy_pool: &'static CopyPool =
        Box::leak(Box::new(CopyPool { helpers, ..CopyPool::default() }));
    let begin = |number: usize| {
        thread::Builder::new()
            .name(format!("resident staging {number}"))
            .spawn(|| copy_pool.help())
            .is_ok()
    };
    // One helper is enough for all jobs to be done.
    (0..helpers).map(begin).fold(false, |any, begun| any | begun).then_some(copy_pool)
}

fn shares_max(part: &CopyBox) -> u64 {
    part.len_bytes() / SHARE_BYTES_MIN
}

/// The part in up to `count` disjoint ones of about the same length: by its slowest axis, or along
/// its one run. There is one at least.
fn shares(part: &CopyBox, count: u64) -> SmallVec<[CopyBox; 4]> {
    let count = count.min(shares_max(part)).max(1);
    let whole = part.slowest_count();
    let step = whole.div_ceil(count).max(1);
    let mut shares: SmallVec<[CopyBox; 4]> = (0..whole)
        .step_by(usize::try_from(step).unwrap_or(usize::MAX))
        .map(|start| part.section(start, step.min(whole - start)))
        .collect();
    if shares.is_empty() {
        shares.push(part.clone());
    }
    shares
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{SHARE_BYTES_MIN, copy_part, helpers_among, shares};
    use crate::backend::CopyBox;

    fn part(run_bytes: u64, axes: &[(u64, u64, u64)]) -> CopyBox {
        CopyBox {
            run_bytes,
            source_offset_bytes: 5,
            destination_offset_bytes: 7,
            axes: SmallVec::from_slice(axes),
        }
    }

    #[test]
    fn half_of_the_processors_copy() {
        assert_eq!([0, 1, 2, 4, 8, 16, 192].map(helpers_among), [0, 0, 1, 1, 3, 7, 7]);
    }

    #[test]
    fn small_parts_stay_whole_and_large_ones_are_shared_out() {
        let small = part(SHARE_BYTES_MIN, &[]);
        assert_eq!(shares(&small, 4).as_slice(), [small]);
        assert_eq!(shares(&part(SHARE_BYTES_MIN * 2 + 3, &[]), 4).len(), 2);
        assert_eq!(
            shares(&part(SHARE_BYTES_MIN, &[(9, SHARE_BYTES_MIN, SHARE_BYTES_MIN)]), 4).len(),
            3
        );
        assert_eq!(shares(&part(0, &[]), 4).len(), 1);
        assert_eq!(shares(&part(8, &[(0, 8, 8)]), 4).len(), 1);
    }

    #[test]
    fn all_bytes_are_copied_and_no_others() {
        let parts =
            [part(3 << 20, &[]), part(1 << 10, &[(7, 2 << 20, 1 << 20), (513, 1 << 11, 1 << 10)])];
        for part in &parts {
            let source: Vec<u8> = (0..16_usize << 20).map(|byte| (byte % 251) as u8 + 1).collect();
            let (mut expected, mut seen) = (vec![0_u8; 9 << 20], vec![0_u8; 9 << 20]);
            // SAFETY: both memories are longer than the part reaches, and nobody else has them.
            unsafe {
                crate::backend::bytes::copy_part(source.as_ptr(), expected.as_mut_ptr(), part)
            };
            // SAFETY: as above.
            unsafe { copy_part(source.as_ptr(), seen.as_mut_ptr(), part) };
            assert!(expected == seen);
        }
    }
}
