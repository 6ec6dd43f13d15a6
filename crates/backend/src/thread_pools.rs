//! Threads of the program's rayon pools, and bodies that use rayon.
//!
//! A body that calls rayon waits for threads of a pool. If all threads of that pool wait for the
//! body, in calls of this library, nothing goes on. So
//!
//! * once a thread of a pool has launched or awaited something, bodies run in pools of the
//!   library's own ([`in_own_pool`]), so that they do not depend on the program's;
//! * while a body runs that began before, a thread of a pool serves it as it waits ([`PoolWait`]):
//!   once all threads of its pool wait, it runs jobs of the pool, as rayon's own waits do. At other
//!   times it runs none, since the task that waits may hold a lock that the job takes;
//! * a thread of a pool runs no body of the program while it waits: rayon may run another task of
//!   the program within the body, whose calls would count as the body's ([`off_pool`]).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

use crate::fork::PerProcess;
use crate::sync::{BackendLock, EventCount};

/// How long a thread sleeps before it looks whether the pool needs it.
pub const PATIENCE: Duration = Duration::from_millis(1);

/// The most waits of one thread within each other: each job that runs in a wait takes stack.
const NESTED_MAX: u32 = 64;

/// Whether a thread of a rayon pool has launched or awaited something.
static ARE_USED: AtomicBool = AtomicBool::new(false);

/// The bodies that run, and may use pools of the program: none begins once pools are used.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// The threads of pools that wait and run no job meanwhile.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Pools for bodies, each for one body at a time: two bodies may wait for each other.
static OWN: PerProcess<BackendLock<Vec<ThreadPool>>> = PerProcess::new();

thread_local! {
    /// The jobs that this thread runs within waits.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// Whether this is a thread of a rayon pool.
#[inline]
pub fn is_pool_thread() -> bool {
    rayon::current_thread_index().is_some()
}

/// Remembers that threads of pools use the library, if this is one. Called before work is queued
/// that may call rayon.
#[inline]
pub fn note_pool_threads() {
    if is_pool_thread() {
        ARE_USED.store(true, Ordering::Relaxed);
    }
}

/// A wait of a thread of a rayon pool, which may run jobs of the pool meanwhile.
#[derive(Debug)]
pub struct PoolWait {
    /// All threads of the pool waited at once, so that work may depend on them.
    is_needed: bool,
}

impl PoolWait {
    /// Begins a wait. `None` on a thread of no pool, which only sleeps.
    ///
    /// The caller holds no lock and no claim: a job may call this library.
    #[must_use]
    pub fn begin() -> Option<Self> {
        if !is_pool_thread() {
            return None;
        }
        ARE_USED.store(true, Ordering::SeqCst);
        WAITING.fetch_add(1, Ordering::SeqCst);
        Some(Self { is_needed: false })
    }

    /// Runs jobs of the pool until the wait is over or there is none, if a body may need it.
    pub fn run_jobs(&mut self, is_over: impl Fn() -> bool) {
        while !is_over() && self.may_run_one() {
            WAITING.fetch_sub(1, Ordering::SeqCst);
            NESTED.set(NESTED.get() + 1);
            // A panic in a job does not unwind to here: rayon passes it to the job's owner.
            let ran = rayon::yield_now();
            NESTED.set(NESTED.get() - 1);
            WAITING.fetch_add(1, Ordering::SeqCst);
            if ran != Some(Yield::Executed) {
                return;
            }
        }
    }

    fn may_run_one(&mut self) -> bool {
        if RUNNING.load(Ordering::SeqCst) == 0 {
            return false;
        }
        self.is_needed |= WAITING.load(Ordering::SeqCst) >= rayon::current_num_threads();
        self.is_needed && NESTED.get() < NESTED_MAX
    }
}

impl Drop for PoolWait {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until there have been more than `seen` events. The caller holds no lock and no claim.
pub fn wait_after(events: &EventCount, seen: u64) {
    let Some(mut pool_wait) = PoolWait::begin() else { return events.wait_after(seen) };
    while events.current() == seen {
        events.wait_after_at_most(seen, PATIENCE);
        pool_wait.run_jobs(|| events.current() != seen);
    }
}

/// Runs `run`, which may run bodies, here or on a thread that is of no pool while this one waits. A
/// panic continues here.
pub fn off_pool<R: Send>(run: impl Fn() -> R + Sync) -> R {
    let Some(mut pool_wait) = PoolWait::begin() else { return run() };
    let caller = thread::current();
    let other = || {
        let result = run();
        caller.unpark();
        result
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("resident waiter".to_owned());
        // A system that refuses a thread leaves the work to this one.
        let Ok(other) = builder.spawn_scoped(scope, other) else { return run() };
        while !other.is_finished() {
            thread::park_timeout(PATIENCE);
            pool_wait.run_jobs(|| other.is_finished());
        }
        other.join().unwrap_or_else(|payload| resume_unwind(payload))
    })
}

/// Runs a body of the program, which is not called by the program itself: once threads of pools use
/// the library, in a pool of the library's own. A panic continues here.
#[inline]
pub fn in_own_pool(body: impl FnOnce() + Send) {
    if is_pool_thread() {
        return body();
    }
    let running = Running::begin();
    // In one order with `PoolWait`: it sees that the body runs, or the body that pools are used.
    if ARE_USED.load(Ordering::SeqCst) {
        drop(running);
        run_in_own_pool(body);
    } else {
        body();
    }
}

/// Counts a body until it is over, however it ends.
struct Running;

impl Running {
    #[inline]
    fn begin() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cold]
fn run_in_own_pool(body: impl FnOnce() + Send) {
    let pools = OWN.get_or_make(BackendLock::default);
    let idle = pools.lock().pop();
    let name = |number| format!("resident body {number}");
    let Some(pool) = idle.or_else(|| ThreadPoolBuilder::new().thread_name(name).build().ok())
    else {
        return body();
    };
    let outcome = pool.install(|| catch_unwind(AssertUnwindSafe(body)));
    pools.lock().push(pool);
    outcome.unwrap_or_else(|payload| resume_unwind(payload));
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::{PoolWait, Running, off_pool, run_in_own_pool};

    #[test]
    fn a_pool_whose_threads_all_wait_runs_jobs_that_a_body_may_need() {
        let _running = Running::begin();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
        let (wait, is_over) = (Barrier::new(2), AtomicBool::new(false));
        pool.scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|scope| {
                    wait.wait();
                    scope.spawn(|_| is_over.store(true, Ordering::SeqCst));
                    let mut pool_wait = PoolWait::begin().expect("a thread of a pool");
                    while !is_over.load(Ordering::SeqCst) {
                        pool_wait.run_jobs(|| is_over.load(Ordering::SeqCst));
                    }
                });
            }
        });
    }

    #[test]
    fn other_threads_lend_nothing_and_run_what_they_wait_for() {
        assert!(PoolWait::begin().is_none());
        let here = std::thread::current().id();
        assert_eq!(off_pool(|| std::thread::current().id()), here);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let (there, other) = pool.install(|| {
            (std::thread::current().id(), off_pool(|| rayon::current_thread_index().is_some()))
        });
        assert!(there != here && !other);
    }

    #[test]
    fn bodies_in_pools_of_the_library_wait_for_each_other() {
        let meet = Barrier::new(3);
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    run_in_own_pool(|| {
                        assert!(rayon::current_thread_index().is_some());
                        meet.wait();
                    });
                });
            }
        });
    }

    #[test]
    #[should_panic(expected = "in the body")]
    fn a_panic_of_a_body_continues_at_its_caller() {
        run_in_own_pool(|| panic!("in the body"));
    }
}
