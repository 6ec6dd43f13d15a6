//! Captures: reports of what the calls of one thread, of several, or of all copied.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use crate::audit::limits::deny::Rules;
use crate::audit::recording::contents;
use crate::audit::recording::listeners::{self, Capture};
use crate::audit::recording::log;
use crate::audit::reports::at_exit::at_exit;
use crate::audit::reports::outputs::{Outputs, VARIABLE, say};
use crate::audit::reports::regularly;
use crate::audit::reports::report::Report;
use crate::device;
use crate::traffic::Flow;
use resident_backend::sync::ForkMark;
use resident_backend::timeline::{self, Listener};

/// The number of running captures, and [`UNREAD`] until the first copy or launch. While it is 0, a
/// copy and a launch pay one load for captures.
static RUNNING: AtomicUsize = AtomicUsize::new(UNREAD);

/// Says that `RESIDENT_AUDIT` was not read yet, which may start a capture of all threads.
const UNREAD: usize = 1 << (usize::BITS - 1);

/// The capture for `RESIDENT_AUDIT`, and what to write of it when the process ends.
static UNTIL_EXIT: OnceLock<UntilExit> = OnceLock::new();

struct UntilExit {
    attached: Attached,
    outputs: Outputs,
    /// A process that this one forks has its memory, and is another program.
    process: ForkMark,
    /// Held while the reports are written.
    writing: Mutex<IsOver>,
}

/// Whether the last reports of the process are written.
struct IsOver(bool);

/// What all threads copied while a capture was running.
static COPIES: AtomicU64 = AtomicU64::new(0);
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Runs `work`, and reports what the calls of this thread copied meanwhile, and why. Captures may
/// be nested: an outer capture includes the copies of the inner ones. A copy counts when it is
/// queued. Copies by other threads are not included, unless they run in a [`scope`] of this
/// capture; [`capture_all`] includes them all. A report that has no copies, although other threads
/// copied something meanwhile, says so when it is printed.
///
/// ```
/// use resident::{Device, Result, SmartArray, audit, ndarray::{Array2, Ix2, s}};
///
/// fn border(image: &SmartArray<f32, Ix2>) -> Result<f32> {
///     Ok(image.slice(s![0, ..]).host()?.sum() + image.slice(s![-1, ..]).host()?.sum())
/// }
///
/// let _here = Device::cpu().enter();
/// let mut image = SmartArray::from(Array2::<f32>::ones((100, 200)));
/// image.gpu_mut()?;
/// // A test that states what a function may move:
/// let (sum, report) = audit::capture(|| border(&image));
/// let to_host = report.traffic().to_host;
/// assert_eq!((sum?, to_host.count, to_host.bytes), (400.0, 2, 1600));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Panics
///
/// If `work` panics; the panic is passed on.
pub fn capture<T>(work: impl FnOnce() -> T) -> (T, Report) {
    let capture = Arc::<Capture>::default();
    let running = Running::start(&capture);
    let counting = Counting::start(std::slice::from_ref(&capture));
    let value = work();
    drop(counting);
    let mut report = capture.take();
    report.set_elsewhere(running.copied() - report.traffic().moved());
    (value, report)
}

/// Runs `work`, and reports what the calls of all threads copied meanwhile, also of threads that
/// have nothing to do with `work`. To count only the threads that work for this one, use
/// [`capture`] and [`scope`].
///
/// ```
/// use resident::{Device, SmartArray, audit};
///
/// let parts = [SmartArray::from(vec![1_u8; 100]), SmartArray::from(vec![2_u8; 200])];
/// let ((), report) = audit::capture_all(|| {
///     std::thread::scope(|threads| {
///         for part in &parts {
///             threads.spawn(|| part.prefetch(&Device::cpu().stream()).expect("memory"));
///         }
///     });
/// });
/// assert!(report.traffic().to_device.bytes >= 300);     // other threads may copy meanwhile
/// ```
///
/// # Panics
///
/// If `work` panics; the panic is passed on.
pub fn capture_all<T>(work: impl FnOnce() -> T) -> (T, Report) {
    let attached = Attached::start(Arc::default());
    let value = work();
    (value, attached.stop())
}

/// Runs `work`. Reports what the calls of this thread copied, with those that run in a [`scope`] of
/// it, and what all threads copied that work for nobody else: that are in no capture in which this
/// thread is not.
pub(in crate::audit) fn capture_work<T>(work: impl FnOnce() -> T) -> (T, Report, Report) {
    let (own, all) = (Arc::<Capture>::default(), Arc::new(Capture::of_work()));
    let attached = Attached::start(Arc::clone(&all));
    let counting = Counting::start(&[Arc::clone(&own), all]);
    let value = work();
    drop(counting);
    let all = attached.stop();
    (value, own.take(), all)
}

/// A handle by which calls on another thread count to the captures in which this thread is now: for
/// thread pools and spawned threads. Copies that this thread [denies](crate::audit::deny()) now are
/// denied to them too.
///
/// ```
/// use resident::{Device, SmartArray, audit};
///
/// let array = SmartArray::from(vec![1.0_f32; 1000]);
/// let ((), report) = audit::capture(|| {
///     let scope = audit::scope();
///     std::thread::scope(|threads| {
///         threads.spawn(|| scope.run(|| array.prefetch(&Device::cpu().stream())));
///     });
/// });
/// assert_eq!(report.traffic().to_device.bytes, 4000);
/// ```
#[must_use]
pub fn scope() -> Scope {
    let compares_contents = contents::is_asked_for();
    Scope { captures: listeners::share_own(), rules: Rules::current(), compares_contents }
}

/// The captures and denials of a thread, for other threads; made by [`scope`]. Copies that are made
/// after a capture has ended do not count to it. The denials are those of the time of [`scope`].
#[derive(Clone, Debug)]
pub struct Scope {
    captures: Vec<Arc<Capture>>,
    rules: Rules,
    compares_contents: bool,
}

impl Scope {
    /// Runs `work`. What this thread copies meanwhile counts to the captures of the thread that
    /// called [`scope`], as well as to this thread's own; once to each. What that thread denied is
    /// denied, as well as what this thread denies.
    ///
    /// # Panics
    ///
    /// If `work` panics; the panic is passed on.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _counting = Counting::start(&self.captures);
        let _rules = self.rules.enter();
        let _contents = self.compares_contents.then(contents::compare_contents);
        work()
    }
}

impl Capture {
    /// The report of a capture that has ended: this thread's events are in it.
    fn take(&self) -> Report {
        if self.is_shared() {
            log::settle_all();
        }
        let memory = self.end_memory();
        let mut report = std::mem::take(&mut *self.report.lock());
        report.close(memory);
        report
    }

    /// Forgets all that was queued before.
    pub(super) fn reset(&self) {
        log::settle_all();
        let earlier = std::mem::take(&mut *self.report.lock());
        self.restart_memory();
        drop(earlier);
    }

    /// The report so far.
    pub(super) fn so_far(&self) -> Report {
        log::settle_all();
        let memory = self.memory();
        let mut report = self.report.lock().clone();
        report.close(memory);
        report
    }
}

/// A running capture. It ends when this value drops, also during a panic.
#[derive(Debug)]
pub(super) struct Running {
    /// `None` while this value drops.
    listener: Option<Listener>,
    /// What all threads had copied when it started.
    before: Flow,
}

impl Running {
    pub(in crate::audit) fn start(capture: &Capture) -> Self {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        capture.watch_memory();
        Self { listener: Some(Listener::start(add_wait)), before: copied_by_all() }
    }

    /// What all threads have copied since.
    fn copied(&self) -> Flow {
        copied_by_all() - self.before
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        drop(self.listener.take());
        // After the last capture nothing needs the times of work that still runs.
        device::take_times();
    }
}

fn copied_by_all() -> Flow {
    Flow { count: COPIES.load(Ordering::Relaxed), bytes: COPIED_BYTES.load(Ordering::Relaxed) }
}

/// While this lives, calls of this thread count to more captures.
struct Counting {
    /// The number of captures before.
    depth: usize,
}

impl Counting {
    fn start(captures: &[Arc<Capture>]) -> Self {
        log::settle_own();
        Self { depth: listeners::enter(captures) }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        log::settle_own();
        listeners::leave(self.depth);
    }
}

/// While this lives, calls of all threads count to a capture.
#[derive(Debug)]
pub(super) struct Attached {
    capture: Arc<Capture>,
    _running: Running,
}

impl Attached {
    pub(in crate::audit) fn start(capture: Arc<Capture>) -> Self {
        let running = Running::start(&capture);
        listeners::attach(&capture);
        Self { capture, _running: running }
    }

    fn stop(self) -> Report {
        listeners::detach(&self.capture);
        self.capture.take()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        listeners::detach(&self.capture);
        // The logs of idle threads must not keep the report.
        log::settle_all();
    }
}

/// Whether calls of this thread count to a capture.
#[inline]
pub(in crate::audit) fn is_active() -> bool {
    is_any_running() && is_active_here()
}

/// Whether a capture of any thread runs, or `RESIDENT_AUDIT` was not read yet.
#[inline]
pub(in crate::audit) fn is_any_running() -> bool {
    RUNNING.load(Ordering::Relaxed) > 0
}

#[cold]
fn is_active_here() -> bool {
    if RUNNING.load(Ordering::Relaxed) & UNREAD != 0 {
        read_variable();
    }
    listeners::has_any()
}

/// Reads `RESIDENT_AUDIT`, once. Threads that copy meanwhile wait, so that their copies count.
fn read_variable() {
    static READ: Once = Once::new();
    READ.call_once(|| {
        let outputs = Outputs::of_variable();
        if outputs.as_ref().is_some_and(|outputs| outputs.compares_contents) {
            contents::compare_in_all_threads();
        } else {
            contents::compare_under_guards();
        }
        if let Some(outputs) = outputs {
            let attached = Attached::start(Arc::default());
            let process = ForkMark::new();
            let writing = Mutex::new(IsOver(false));
            let (every, signals) = (outputs.every, outputs.signals.clone());
            if UNTIL_EXIT.set(UntilExit { attached, outputs, process, writing }).is_ok() {
                at_exit(write_last);
                regularly::start(every, &signals, write_or_say);
            }
        }
    });
    RUNNING.fetch_and(!UNREAD, Ordering::Relaxed);
}

/// Writes the reports that the variable
/// [`RESIDENT_AUDIT`](crate::audit#the-words-of-resident_audit) asks for, now: what was queued so
/// far. Later writes, such as the one when the process ends, replace them. A file is written beside
/// its place and then renamed, so that readers never see half of one. Without the variable it does
/// nothing.
///
/// ```
/// use resident::audit;
///
/// // A server calls it when it is asked for a report, or in its handler of SIGTERM.
/// audit::write_reports()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// The system's, if a report cannot be written; the text names the file. The others are written
/// nevertheless.
pub fn write_reports() -> io::Result<()> {
    if RUNNING.load(Ordering::Relaxed) & UNREAD != 0 {
        read_variable();
    }
    write_until_exit(IsOver(false))
}

/// Writes the reports, and says so if that fails.
fn write_or_say() {
    say_if_failed(write_until_exit(IsOver(false)));
}

fn write_last() {
    say_if_failed(write_until_exit(IsOver(true)));
}

fn say_if_failed(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        say(format_args!("{VARIABLE}: the report was not written: {error}"));
    }
}

/// Writes the reports, unless the last ones were written.
fn write_until_exit(is_last: IsOver) -> io::Result<()> {
    let Some(UntilExit { attached, outputs, process, writing }) = UNTIL_EXIT.get() else {
        return Ok(());
    };
    if !process.is_own() {
        return Ok(());
    }
    let mut is_over = writing.lock().unwrap_or_else(PoisonError::into_inner);
    if is_over.0 {
        return Ok(());
    }
    *is_over = is_last;
    outputs.write(&attached.capture.so_far())
}

/// Counts a copy for the captures of other threads, which say that they did not see it.
#[inline]
pub(in crate::audit) fn note_copy(bytes: u64) {
    if is_any_running() {
        COPIES.fetch_add(1, Ordering::Relaxed);
        COPIED_BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn add_wait(wait: &timeline::Wait<'_>) {
    if is_active() {
        log::append(|block| block.push_wait(wait));
    }
}

#[cfg(feature = "cuda")]
pub(in crate::audit) fn add_foreign_use(array: &str) {
    let captures = listeners::of_thread();
    captures.iter().for_each(|capture| capture.report.lock().add_foreign_use(array));
}
