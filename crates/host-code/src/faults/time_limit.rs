//! Interrupts the threads of the machine that run blocks for longer than the limit of launches.
//!
//! One thread of the process, which starts with the first such launch, sends them `SIGURG` once the
//! limit has passed, and again and again until they run no more blocks: the handler does nothing
//! where a thread is between blocks. By default the signal is ignored, and programs hardly use it.

use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::handler;
use crate::launch_timeout;

/// How long a thread is left alone after it was interrupted.
const PAUSE: Duration = Duration::from_millis(5);

/// The threads that run blocks.
static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// A thread more runs blocks.
static BEGUN: Condvar = Condvar::new();

/// A thread that runs blocks, and when it is interrupted next.
struct Running {
    thread: libc::pthread_t,
    next: Instant,
}

/// As long as this lives, the thread that made it is interrupted once its time is over.
pub(in super::super) struct Watched(libc::pthread_t);

impl Watched {
    /// `None` without a limit.
    pub(in super::super) fn new() -> Option<Self> {
        let limit = launch_timeout::limit().ok().flatten()?;
        let next = Instant::now().checked_add(limit)?;
        start_watching();
        handler::accept_interruptions();
        // SAFETY: the function has no preconditions.
        let thread = unsafe { libc::pthread_self() };
        running().push(Running { thread, next });
        BEGUN.notify_one();
        Some(Self(thread))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A thread runs the blocks of one launch at a time.
        running().retain(|running| running.thread != self.0);
    }
}

fn running() -> MutexGuard<'static, Vec<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_watching() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let watcher = thread::Builder::new().name(String::from("resident launch limit"));
        // Without it, threads that wait for others still look at the time (`turns`).
        let _started = watcher.spawn(watch);
    });
}

fn watch() {
    let mut all = running();
    loop {
        let now = Instant::now();
        for running in all.iter_mut().filter(|running| running.next <= now) {
            handler::interrupt(running.thread);
            running.next = now + PAUSE;
        }
        let first = all.iter().map(|running| running.next).min();
        let wait = first.map_or(Duration::MAX, |first| first.saturating_duration_since(now));
        all = BEGUN.wait_timeout(all, wait).unwrap_or_else(PoisonError::into_inner).0;
    }
}
