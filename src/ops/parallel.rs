//! The threads that run the host bodies of large operations.

use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};
use resident_backend::fork::PerProcess;

/// From this many elements on, an operation uses all cores.
pub(super) const PARALLEL_LEN_MIN: usize = 1 << 20;

/// The elements of which one task consists, whatever the number of threads, so that sums do not
/// depend on it.
pub(super) const TASK_LEN: usize = 1 << 16;

/// The most threads.
const THREADS_MAX: usize = 64;

/// Runs `work` where `rayon` finds the threads of this library.
///
/// A thread of another pool of rayon would run other jobs of the program while it waits, and those
/// may need what this body's launch holds. Such a thread waits for a thread that waits.
pub(super) fn with_threads(work: impl FnOnce() + Send) {
    let Some(pool) = pool() else { return work() };
    if rayon::current_thread_index().is_none() {
        return pool.install(work);
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.install(work));
        if let Err(panic) = waiting.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// `None` if the system refuses the threads.
fn pool() -> Option<&'static ThreadPool> {
    static POOL: PerProcess<Option<ThreadPool>> = PerProcess::new();
    let name = |number| format!("resident ops {number}");
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get());
    let builder = || ThreadPoolBuilder::new().num_threads(threads.min(THREADS_MAX));
    POOL.get_or_make(|| builder().thread_name(name).build().ok()).as_ref()
}
