//! Runs the parts of one piece of work on several threads of the machine.
//!
//! The calling thread takes parts too, from the first moment: waking another takes as long as some
//! parts do. It waits only for parts that another thread has begun, and runs nothing else
//! meanwhile. A thread of rayon that waits for rayon runs other jobs of the program, which may need
//! what the caller holds.

use std::any::Any;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::fork::PerProcess;
use crate::sync::BackendLock;
use crate::unwinding::abort_on_unwind;

/// How long the caller looks for the end of the last parts before it sleeps.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// What a part panicked with.
type Payload = Box<dyn Any + Send>;

/// Threads for work of one kind, started at first use: as many as the machine has, up to a limit.
#[derive(Debug)]
pub struct Threads {
    name: &'static str,
    count_max: usize,
    /// `None` if the system refuses the threads.
    pool: PerProcess<Option<ThreadPool>>,
}

/// A piece of work whose parts several threads take.
struct Shared {
    run: *const (dyn Fn(u64) + Sync),
    parts: u64,
    /// The next part that no thread has taken.
    next: AtomicU64,
    /// The parts that are over.
    over: AtomicU64,
    has_panicked: OnceLock<()>,
    payload: BackendLock<Option<Payload>>,
    caller: Thread,
}

// SAFETY: `run` is called only by a thread that has taken a part and not counted it as over, and
// `Threads::run`, whose caller lends it, returns only when all parts are over. It is `Sync`.
unsafe impl Send for Shared {}

// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Threads {
    /// At most `count_max` threads with this name and a number.
    #[must_use]
    pub const fn new(name: &'static str, count_max: usize) -> Self {
        Self { name, count_max, pool: PerProcess::new() }
    }

    /// The number of threads that run parts, with the one that calls.
    pub fn count(&self) -> usize {
        self.pool().map_or(1, ThreadPool::current_num_threads)
    }

    /// Calls `run` with each number below `parts`, on this thread and the others, and returns when
    /// all are over. After a panic no more begin, and the first panic continues here.
    pub fn run(&self, parts: u64, run: &(dyn Fn(u64) + Sync)) {
        let helpers = (self.count() as u64).min(parts).saturating_sub(1);
        let Some(pool) = self.pool().filter(|_| helpers > 0) else {
            return (0..parts).for_each(run);
        };
        let run: *const (dyn Fn(u64) + Sync + '_) = run;
        // SAFETY: only the lifetime changes, which ends after this function returns.
        let run: *const (dyn Fn(u64) + Sync) = unsafe { std::mem::transmute(run) };
        let shared = Arc::new(Shared::new(run, parts));
        for _ in 0..helpers {
            let shared = Arc::clone(&shared);
            pool.spawn(move || shared.take_parts());
        }
        abort_on_unwind("work on several threads", || {
            shared.take_parts();
            shared.wait();
        });
        if let Some(payload) = shared.payload.lock().take() {
            std::panic::resume_unwind(payload);
        }
    }

    fn pool(&self) -> Option<&ThreadPool> {
        let make = || {
            // This reads files of the system.
            let threads = thread::available_parallelism().map_or(1, |cores| cores.get());
            let builder = ThreadPoolBuilder::new().num_threads(threads.min(self.count_max));
            let name = self.name;
            builder.thread_name(move |number| format!("{name} {number}")).build().ok()
        };
        self.pool.get_or_make(make).as_ref()
    }
}

impl Shared {
    fn new(run: *const (dyn Fn(u64) + Sync), parts: u64) -> Self {
        Self {
            run,
            parts,
            next: AtomicU64::new(0),
            over: AtomicU64::new(0),
            has_panicked: OnceLock::new(),
            payload: BackendLock::default(),
            caller: thread::current(),
        }
    }

    /// Runs parts until all are taken.
    fn take_parts(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.parts {
                return;
            }
            if self.has_panicked.get().is_none() {
                self.run_part(number);
            }
            // Release: the caller sees what the part wrote.
            if self.over.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
                self.caller.unpark();
            }
        }
    }

    /// Keeps a panic for the caller: in rayon's thread it would end the process.
    fn run_part(&self, number: u64) {
        // SAFETY: this thread has taken a part, so `Threads::run` has not returned (see above).
        let run = unsafe { &*self.run };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(number))) {
            if self.has_panicked.set(()).is_ok() {
                *self.payload.lock() = Some(payload);
            } else {
                // Its drop may panic again.
                std::mem::forget(payload);
            }
        }
    }

    fn wait(&self) {
        let is_over = || self.over.load(Ordering::Acquire) >= self.parts;
        let start = Instant::now();
        while !is_over() && start.elapsed() < SPIN_TIME {
            hint::spin_loop();
        }
        while !is_over() {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Threads;

    static THREADS: Threads = Threads::new("test", 8);

    #[test]
    fn each_part_runs_once() {
        for parts in [0, 1, 2, 7, 1000] {
            let runs: Vec<_> = (0..parts).map(|_| AtomicU64::new(0)).collect();
            THREADS.run(parts, &|number| {
                runs[number as usize].fetch_add(1, Ordering::Relaxed);
            });
            assert!(runs.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{parts}");
        }
    }

    #[test]
    fn a_panic_of_a_part_is_the_callers_and_ends_the_work() {
        let runs = AtomicU64::new(0);
        let run = |number| {
            runs.fetch_add(1, Ordering::Relaxed);
            assert_ne!(number, 3, "the fourth");
            std::thread::sleep(std::time::Duration::from_micros(10));
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| THREADS.run(10_000, &run)));
        let payload = outcome.expect_err("it panicked");
        let text = crate::panic_message::panic_message(payload);
        assert!(text.contains("the fourth"), "{text}");
        assert!(runs.into_inner() < 10_000);
        THREADS.run(1, &|_| ());
    }

    #[test]
    fn parts_may_have_parts() {
        let sum = AtomicU64::new(0);
        THREADS.run(20, &|outer| {
            THREADS.run(20, &|inner| {
                sum.fetch_add(outer * 20 + inner, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 399 * 400 / 2);
    }
}
