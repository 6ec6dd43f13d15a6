//! The process's clock, and the times at which devices ran work and threads waited for it. They
//! are recorded only while a [`Listener`] lives: otherwise a piece of work costs one load. Waits
//! are always counted.

mod runs;

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::call_site::CallSite;
use crate::sync::Mutex;

pub use runs::{Run, Runs};

/// How many of the latest runs are kept.
const RUNS_KEPT: usize = 1 << 16;

/// All waits that were necessary.
static WAIT_COUNT: AtomicU64 = AtomicU64::new(0);
static WAITED_NS: AtomicU64 = AtomicU64::new(0);

/// The number of listeners.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);

static RUNS: Mutex<KeptRuns> = Mutex::new(KeptRuns::new());

/// The latest runs, and their streams in the order in which they were added.
struct KeptRuns {
    runs: Runs,
    stream_ids: VecDeque<u64>,
}

impl KeptRuns {
    const fn new() -> Self {
        Self { runs: Runs::new(), stream_ids: VecDeque::new() }
    }
}

/// What waits are reported to.
static REPORT_WAIT: OnceLock<fn(&Wait<'_>)> = OnceLock::new();

/// What a thread waits for, and why.
#[derive(Clone, Copy, Debug)]
pub struct Awaited<'a> {
    pub device: &'a str,
    pub stream: u32,
    pub site: CallSite,
    pub reason: WaitReason,
}

/// A wait of a thread for work of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    pub awaited: Awaited<'a>,
    pub started_ns: u64,
    pub finished_ns: u64,
}

/// Why a thread waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitReason {
    /// The program asked for it: `synchronize`.
    Synchronize,
    /// The call needs contents, or memory that work still uses.
    Contents,
    /// For the result of a host function.
    HostFunction,
    /// A stream is to wait for a device of another kind, for which the host waits.
    OtherKind,
}

impl WaitReason {
    /// Its word in records and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Synchronize => "synchronize",
            Self::Contents => "contents",
            Self::HostFunction => "host_function",
            Self::OtherKind => "other_kind",
        }
    }
}

/// While one of these lives, runs and waits are recorded.
#[derive(Debug)]
pub struct Listener(());

impl Listener {
    /// `report_wait` is called for each wait, on its thread, with no lock held. It is the same
    /// function for all listeners.
    pub fn start(report_wait: fn(&Wait<'_>)) -> Self {
        REPORT_WAIT.get_or_init(|| report_wait);
        LISTENERS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if LISTENERS.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        let mut runs = RUNS.lock();
        if !is_on() {
            *runs = KeptRuns::new();
        }
    }
}

/// Whether a listener lives.
#[inline]
pub fn is_on() -> bool {
    LISTENERS.load(Ordering::Relaxed) > 0
}

/// The clock, and what it showed at first.
static CLOCK: OnceLock<(quanta::Clock, u64)> = OnceLock::new();

/// Nanoseconds since the first call in this process, counted from 1, so that 0 means "not set". The
/// first call takes half a millisecond, in which it finds out how fast the processor counts.
#[inline]
pub fn now_ns() -> u64 {
    let (clock, start) = CLOCK.get_or_init(|| {
        let clock = quanta::Clock::new();
        let start = clock.raw();
        (clock, start)
    });
    clock.delta_as_nanos(*start, clock.raw()).saturating_add(1)
}

/// Runs an operation of a device, and records when.
#[inline]
pub fn timed<T>(stream_id: u64, position: u64, run: impl FnOnce() -> T) -> T {
    if !is_on() {
        return run();
    }
    let started_ns = now_ns();
    let outcome = run();
    add_run(Run { stream_id, position, started_ns, finished_ns: now_ns() });
    outcome
}

/// Records when an operation ran.
#[cold]
pub fn add_run(run: Run) {
    let mut kept = RUNS.lock();
    if kept.stream_ids.len() == RUNS_KEPT
        && let Some(oldest) = kept.stream_ids.pop_front()
    {
        kept.runs.remove_first(oldest);
    }
    kept.stream_ids.push_back(run.stream_id);
    kept.runs.add(run);
}

/// The latest runs that finished at this time or later.
pub fn runs_since(time_ns: u64) -> Runs {
    RUNS.lock().runs.since(time_ns)
}

/// The latest runs of some operations: of each stream, the positions from one to another.
pub fn runs_of(ranges: impl IntoIterator<Item = (u64, (u64, u64))>) -> Runs {
    let mut wanted = Runs::new();
    let kept = RUNS.lock();
    for (stream_id, (first, last)) in ranges {
        kept.runs.copy_range(stream_id, first..=last, &mut wanted);
    }
    wanted
}

/// Waits for work of a stream, and counts and reports the wait if there was anything to wait for.
/// `is_over` says whether the work is complete.
#[inline]
pub fn waiting<T>(
    awaited: Awaited<'_>,
    is_over: impl FnOnce() -> bool,
    wait: impl FnOnce() -> T,
) -> T {
    if is_over() {
        return wait();
    }
    let started_ns = now_ns();
    let outcome = wait();
    let finished_ns = now_ns();
    WAIT_COUNT.fetch_add(1, Ordering::Relaxed);
    WAITED_NS.fetch_add(finished_ns.saturating_sub(started_ns), Ordering::Relaxed);
    if is_on()
        && let Some(report) = REPORT_WAIT.get()
    {
        report(&Wait { awaited, started_ns, finished_ns });
    }
    outcome
}

/// How many waits there were in this process, and for how many nanoseconds.
pub fn waits() -> (u64, u64) {
    (WAIT_COUNT.load(Ordering::Relaxed), WAITED_NS.load(Ordering::Relaxed))
}
