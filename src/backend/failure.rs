//! Failures. A call returns its failure; a failure of queued work is recorded under the position of
//! the work.
//!
//! One table holds the failures of queued work on all devices. [`epoch`] rises with each failure. A
//! caller that has found no failure can store the epoch, and need not search again until the epoch
//! changes. Records stay for the life of the process.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Position, QueueId};
use crate::call_site::CallSite;

/// Why a backend refused a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BackendErrorKind {
    /// Not enough memory; both numbers are in bytes.
    OutOfMemory { requested: u64, free: u64 },
    /// The call would have to wait, but the calling thread runs a kernel body, which must not wait.
    InsideKernel,
    /// A fault that the emulation injected.
    Injected,
    /// The device is lost.
    #[allow(dead_code, reason = "the embedded device is never lost")]
    DeviceLost,
    /// The event was recorded without a time stamp, or has not completed.
    NoTiming,
    /// Any other error of the driver, with its code.
    Driver { code: i64 },
}

/// A refused backend call: it has queued nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BackendError {
    pub(crate) kind: BackendErrorKind,
    /// The backend's name for the call (`allocate`, `cuMemcpyHtoDAsync`).
    pub(crate) call: &'static str,
    /// Details from the backend: values seen, limits. May be empty.
    pub(crate) detail: String,
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.call)?;
        match &self.kind {
            BackendErrorKind::OutOfMemory { requested, free } => {
                write!(f, "{requested} bytes requested, {free} free")?;
            }
            BackendErrorKind::InsideKernel => write!(f, "would wait inside a kernel body")?,
            BackendErrorKind::Injected => write!(f, "a fault injected by the emulation")?,
            BackendErrorKind::DeviceLost => write!(f, "the device is lost")?,
            BackendErrorKind::NoTiming => write!(f, "the event carries no time")?,
            BackendErrorKind::Driver { code } => write!(f, "driver error {code}")?,
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// The effect of a failure on the bytes that the operation should have written, from the least
/// severe to the most severe. If an operation fails because another one failed, the more severe of
/// the two effects applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FailureKind {
    /// A fill of a stale copy with poison bytes: nothing is lost and nothing is reported.
    Poison,
    /// A copy: its destination is invalid, its source is unchanged.
    Copy,
    /// A fill with a constant that the library still knows: its destination is invalid.
    Constant,
    /// A kernel or an assignment: the contents that it should have written are lost.
    Contents,
    /// The device is lost, with everything that was queued on it.
    Device,
}

/// One failure of queued work.
#[derive(Clone, Debug)]
pub(crate) struct FailureRecord {
    pub(crate) kind: FailureKind,
    /// The operation that failed first, such as `kernel "blur"` or `copy of "photo" to cpu:0`.
    pub(crate) operation: String,
    /// The call that queued this operation.
    pub(crate) site: Option<CallSite>,
    /// The panic's message, or the driver's text.
    pub(crate) cause: String,
    /// Whether the operation did not run because an operation that it depends on failed. The other
    /// fields then describe the operation that failed first.
    pub(crate) inherited: bool,
}

/// The number of failures of queued work so far in this process.
#[inline]
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Records a failure. A backend calls this before it marks the position as completed.
pub(crate) fn record(queue: QueueId, position: Position, record: Arc<FailureRecord>) {
    table().get_or_insert_default().single.entry(queue).or_default().insert(position, record);
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Records that the device of `queue` is lost: every position past `after` has failed, including
/// future positions. The first of these positions counts as failed itself, and later ones as failed
/// because of it. Later calls for the same queue change nothing.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the embedded device is never lost"))]
pub(crate) fn record_queue_loss(queue: QueueId, after: Position, first: FailureRecord) {
    let inherited = Arc::new(FailureRecord { inherited: true, ..first.clone() });
    let loss = QueueLoss { after, first: Arc::new(first), inherited };
    table().get_or_insert_default().lost_queues.entry(queue).or_insert(loss);
    EPOCH.fetch_add(1, Ordering::Release);
}

/// The failure of the work at `position`, if it failed.
pub(crate) fn at(queue: QueueId, position: Position) -> Option<Arc<FailureRecord>> {
    if epoch() == 0 { None } else { table().as_ref()?.at(queue, position) }
}

/// The first failure in `queue` at a position past `after` and at most `upto`.
pub(crate) fn first_between(
    queue: QueueId,
    after: Position,
    upto: Position,
) -> Option<(Position, Arc<FailureRecord>)> {
    if epoch() == 0 { None } else { table().as_ref()?.first_between(queue, after, upto) }
}

static EPOCH: AtomicU64 = AtomicU64::new(0);
static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Table {
    /// Failures of single operations.
    single: HashMap<QueueId, BTreeMap<Position, Arc<FailureRecord>>>,
    /// Queues of lost devices.
    lost_queues: HashMap<QueueId, QueueLoss>,
}

/// The failures of all work past a position of a queue, whose device was lost.
struct QueueLoss {
    after: Position,
    /// The failure of the first position past `after`, which failed itself.
    first: Arc<FailureRecord>,
    /// The failure of all later positions.
    inherited: Arc<FailureRecord>,
}

impl Table {
    fn at(&self, queue: QueueId, position: Position) -> Option<Arc<FailureRecord>> {
        if let Some(record) = self.single.get(&queue).and_then(|failed| failed.get(&position)) {
            return Some(Arc::clone(record));
        }
        let loss = self.lost_queues.get(&queue)?;
        match position.0.checked_sub(loss.after.0)? {
            0 => None,
            1 => Some(Arc::clone(&loss.first)),
            _ => Some(Arc::clone(&loss.inherited)),
        }
    }

    fn first_between(
        &self,
        queue: QueueId,
        after: Position,
        upto: Position,
    ) -> Option<(Position, Arc<FailureRecord>)> {
        let behind = |failed: &BTreeMap<Position, Arc<FailureRecord>>| {
            failed.range((Bound::Excluded(after), Bound::Unbounded)).next().map(|(first, _)| *first)
        };
        let single = self.single.get(&queue).and_then(behind);
        let lost = self.lost_queues.get(&queue);
        let lost = lost.map(|loss| Position(loss.after.max(after).0 + 1));
        let first = single.into_iter().chain(lost).min().filter(|first| *first <= upto)?;
        self.at(queue, first).map(|record| (first, record))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        FailureKind, FailureRecord, Position, QueueId, at, first_between, record, record_queue_loss,
    };

    fn failed(operation: &str) -> FailureRecord {
        FailureRecord {
            kind: FailureKind::Device,
            operation: operation.to_owned(),
            site: None,
            cause: String::new(),
            inherited: false,
        }
    }

    #[test]
    fn a_lost_queue_fails_after_the_first_recorded_position() {
        let queue = QueueId::next();
        record(queue, Position(2), failed("single").into());
        record_queue_loss(queue, Position(4), failed("rest"));
        record_queue_loss(queue, Position(9), failed("again"));
        let seen = |position| {
            at(queue, Position(position)).map(|record| (record.operation.clone(), record.inherited))
        };
        assert_eq!((seen(2), seen(3), seen(4)), (Some(("single".to_owned(), false)), None, None));
        assert_eq!((seen(5), seen(6), seen(10)), {
            let rest = |inherited| Some(("rest".to_owned(), inherited));
            (rest(false), rest(true), rest(true))
        });
        assert!(at(QueueId::next(), Position(5)).is_none());
        let first = |after, upto| {
            first_between(queue, Position(after), Position(upto)).map(|(position, _)| position.0)
        };
        assert_eq!(
            (first(0, 9), first(2, 9), first(2, 4), first(5, 9)),
            (Some(2), Some(5), None, Some(6))
        );
    }
}
