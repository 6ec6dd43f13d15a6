//! Captures: reports of what the calls of one thread copied.

use std::cell::{Cell, RefCell};

use super::copy_record::CopyRecord;
use super::report::Report;
use crate::traffic::Flow;

thread_local! {
    /// The number of nested captures on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The report of each of these captures, the outermost first.
    static REPORTS: RefCell<Vec<Report>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work`, and reports what the calls of this thread copied meanwhile, and why. Captures may
/// be nested: an outer capture includes the copies of the inner ones. A copy counts when it is
/// queued. Copies by other threads are not included.
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
    let scope = Scope::enter();
    let value = work();
    let report = scope.leave();
    (value, report)
}

/// One capture. The capture ends when this value drops, also during a panic.
struct Scope {
    depth: usize,
}

impl Scope {
    fn enter() -> Self {
        REPORTS.with_borrow_mut(|reports| reports.push(Report::default()));
        DEPTH.set(DEPTH.get() + 1);
        Self { depth: DEPTH.get() }
    }

    fn leave(self) -> Report {
        REPORTS.with_borrow_mut(|reports| std::mem::take(&mut reports[self.depth - 1]))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        DEPTH.set(self.depth - 1);
        REPORTS.with_borrow_mut(|reports| reports.truncate(self.depth - 1));
    }
}

#[inline]
pub(super) fn is_active() -> bool {
    // Nothing is captured while the thread's thread-locals are being destroyed.
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
}

pub(super) fn add_copy(record: &CopyRecord) {
    for_each_report(|report| report.add_copy(record));
}

pub(super) fn add_avoided(flow: Flow) {
    for_each_report(|report| report.add_avoided(flow));
}

#[cfg(feature = "cuda")]
pub(super) fn add_foreign_use(array: &str) {
    for_each_report(|report| report.add_foreign_use(array));
}

fn for_each_report(change: impl FnMut(&mut Report)) {
    REPORTS.with_borrow_mut(|reports| reports.iter_mut().for_each(change));
}
