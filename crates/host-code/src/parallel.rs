//! Runs the blocks of a launch on several threads of the machine.
//!
//! The threads are rayon's, but the thread that launches waits by itself: a thread of rayon that
//! waits for rayon runs other jobs meanwhile, which may need what the launching program holds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::block::BlockRunner;
use super::output::LaunchOutput;
use super::runtime::{LaunchParameters, RunBlocks};
use resident_backend::fork::PerProcess;
use resident_backend::panic_message::panic_message;
use resident_backend::unwinding::abort_on_unwind;

/// Launches of fewer threads run on the calling thread: waking another takes longer.
const PARALLEL_THREADS_MIN: u64 = 8 << 10;

/// The most threads that run kernels. Each may need 1,024 stacks of two mappings each, and Linux
/// allows a process 65,530 mappings by default.
const THREADS_MAX: usize = 24;

/// How many parts of a launch there are for each thread of the machine, so that all end together.
const PARTS_PER_THREAD: u64 = 8;

/// A launch whose blocks several threads run, part by part.
struct SharedLaunch {
    entry: RunBlocks,
    launch: *const LaunchParameters,
    blocks: u64,
    parts: u64,
    /// The next part that no thread has taken.
    next: AtomicU64,
    /// The parts that are over.
    over: AtomicU64,
    failed: OnceLock<String>,
    output: Option<*const LaunchOutput>,
    caller: Thread,
}

// SAFETY: `launch` and `output` are dereferenced only by a thread that has taken a part and not
// counted it as over, and `run_blocks`, whose caller lends both, returns only when all parts are
// over. All threads only read the launch, and the output is `Sync`.
unsafe impl Send for SharedLaunch {}

// SAFETY: as above.
unsafe impl Sync for SharedLaunch {}

/// Runs all blocks of a launch, on several threads if there are many, and passes what they print to
/// the listener. The caller holds no lock. The error says why the launch failed.
///
/// # Safety
///
/// As for `BlockRunner::new`.
pub unsafe fn run_all(entry: RunBlocks, launch: &LaunchParameters) -> Result<(), String> {
    let output = LaunchOutput::of_launch();
    // SAFETY: the caller promises this.
    let outcome = unsafe { run_blocks(entry, launch, output.as_ref()) };
    output.into_iter().for_each(LaunchOutput::pass_on);
    outcome
}

/// As [`run_all`], printing to `output`.
///
/// # Safety
///
/// As for [`run_all`].
unsafe fn run_blocks(
    entry: RunBlocks,
    launch: &LaunchParameters,
    output: Option<&LaunchOutput>,
) -> Result<(), String> {
    let blocks = launch.blocks();
    let is_small = blocks.saturating_mul(u64::from(launch.threads())) < PARALLEL_THREADS_MIN;
    let Some(pool) = pool().filter(|_| blocks > 1 && !is_small) else {
        // SAFETY: the caller promises this.
        let mut runner = unsafe { BlockRunner::new(entry, launch) };
        return runner.printing_to(output).run(0..blocks);
    };
    let threads = pool.current_num_threads();
    let shared = Arc::new(SharedLaunch {
        entry,
        launch,
        blocks,
        parts: (threads as u64 * PARTS_PER_THREAD).min(blocks),
        next: AtomicU64::new(0),
        over: AtomicU64::new(0),
        failed: OnceLock::new(),
        output: output.map(std::ptr::from_ref),
        caller: thread::current(),
    });
    for _ in 1..threads {
        let shared = Arc::clone(&shared);
        pool.spawn(move || shared.take_parts());
    }
    abort_on_unwind("a launch of CUDA C on the host", || {
        shared.take_parts();
        while shared.over.load(Ordering::Acquire) < shared.parts {
            thread::park();
        }
    });
    shared.failed.get().cloned().map_or(Ok(()), Err)
}

impl SharedLaunch {
    /// Runs parts until all are taken. After a failure the others do not run.
    fn take_parts(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.parts {
                return;
            }
            if self.failed.get().is_none()
                && let Err(text) = self.run_part_caught(number)
            {
                let _is_first = self.failed.set(text);
            }
            if self.over.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
                self.caller.unpark();
            }
        }
    }

    /// As [`run_part`](Self::run_part): a panic fails the launch, since in rayon's thread it would
    /// end the process.
    fn run_part_caught(&self, number: u64) -> Result<(), String> {
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_part(number)));
        ran.unwrap_or_else(|payload| Err(panic_message(payload)))
    }

    fn run_part(&self, number: u64) -> Result<(), String> {
        let end = |number: u64| {
            (u128::from(self.blocks) * u128::from(number) / u128::from(self.parts)) as u64
        };
        // SAFETY: this thread has taken a part, so `run_blocks` has not returned (see above).
        let launch = unsafe { &*self.launch };
        // SAFETY: the caller of `run_all` promises this.
        let mut runner = unsafe { BlockRunner::new(self.entry, launch) };
        // SAFETY: as for the launch.
        let output = self.output.map(|output| unsafe { &*output });
        runner.printing_to(output).run(end(number)..end(number + 1))
    }
}

/// The threads that run kernels, with the one that launches; `None` if the system refuses them.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: PerProcess<Option<ThreadPool>> = PerProcess::new();
    let make = || {
        // This reads files of the system.
        let threads = thread::available_parallelism().map_or(1, |cores| cores.get());
        let builder = ThreadPoolBuilder::new().num_threads(threads.min(THREADS_MAX));
        builder.thread_name(|number| format!("resident kernel {number}")).build().ok()
    };
    POOL.get_or_make(make).as_ref()
}
