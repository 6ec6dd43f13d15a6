//! Collecting what one thread's calls move.

use std::cell::{Cell, RefCell};

use super::{Flow, Record, Report};

thread_local! {
    /// How many captures this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static REPORTS: RefCell<Vec<Report>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` and reports what this thread's calls moved meanwhile, and why. Captures nest: an
/// outer one sees what an inner one sees. Copies are reported when they are queued; what other
/// threads move is theirs.
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
/// let (sum, report) = audit::capture(|| border(&image));                // a test that says what a function may move
/// assert_eq!((sum?, report.traffic().to_host.count, report.traffic().to_host.bytes), (400.0, 2, 1600));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Panics
///
/// Not by itself; a panic of `work` goes through.
pub fn capture<T>(work: impl FnOnce() -> T) -> (T, Report) {
    let scope = Scope::enter();
    let value = work();
    let report = scope.leave();
    (value, report)
}

/// Ends its capture also when the work panics.
struct Scope {
    level: usize,
}

impl Scope {
    fn enter() -> Self {
        REPORTS.with_borrow_mut(|reports| reports.push(Report::default()));
        DEPTH.set(DEPTH.get() + 1);
        Self { level: DEPTH.get() }
    }

    fn leave(self) -> Report {
        REPORTS.with_borrow_mut(|reports| std::mem::take(&mut reports[self.level - 1]))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        DEPTH.set(self.level - 1);
        REPORTS.with_borrow_mut(|reports| reports.truncate(self.level - 1));
    }
}

#[inline]
pub(super) fn is_active() -> bool {
    // A thread that is being torn down captures nothing.
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
}

pub(super) fn add(record: &Record) {
    REPORTS.with_borrow_mut(|reports| reports.iter_mut().for_each(|report| report.add(record)));
}

pub(super) fn add_avoided(flow: Flow) {
    REPORTS
        .with_borrow_mut(|reports| reports.iter_mut().for_each(|report| report.add_avoided(flow)));
}

#[cfg(feature = "cuda")]
pub(super) fn add_waited_for(array: &str) {
    REPORTS.with_borrow_mut(|reports| {
        reports.iter_mut().for_each(|report| report.add_waited_for(array))
    });
}
