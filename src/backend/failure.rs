//! Failures: of calls, returned at once, and of queued work, found later under its position.
//!
//! Late failures of all backends are kept in one table. [`epoch`] rises with each, so that whoever
//! caches "all is well" compares one number. Entries are kept for the life of the process: a
//! position is never used again, and failures are cold.

use crate::call_site::CallSite;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Position, QueueId};

/// Why a backend call was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BackendErrorKind {
    /// No room: bytes asked for, bytes free.
    OutOfMemory { requested: u64, free: u64 },
    /// The call would wait, and the thread runs a kernel body.
    InsideKernel,
    /// A fault that a test asked for.
    Injected,
    /// The device is gone.
    #[allow(
        dead_code,
        reason = "the embedded device is never lost; what it means above is fixed for backends that can be"
    )]
    DeviceLost,
    /// The event has no time stamp, or none yet.
    NoTiming,
    /// Anything else that the driver says, with its code.
    Driver { code: i64 },
}

/// A backend call that was refused: nothing was queued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BackendError {
    pub(crate) kind: BackendErrorKind,
    /// The call, in the backend's own words (`allocate`, `cuMemcpyHtoDAsync`).
    pub(crate) call: &'static str,
    /// What the backend adds: values seen, limits.
    pub(crate) detail: String,
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.call)?;
        match &self.kind {
            BackendErrorKind::OutOfMemory { requested, free } => {
                write!(f, "{requested} bytes asked for, {free} free")?
            }
            BackendErrorKind::InsideKernel => write!(f, "would wait inside a kernel body")?,
            BackendErrorKind::Injected => write!(f, "a fault asked for by the emulation")?,
            BackendErrorKind::DeviceLost => write!(f, "the device is lost")?,
            BackendErrorKind::NoTiming => write!(f, "the event carries no time")?,
            BackendErrorKind::Driver { code } => write!(f, "driver error {code}")?,
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// What a failure means for the bytes that the operation was to write, the least severe first. An
/// operation that fails because of another one has the more severe of both kinds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FailureKind {
    /// A poison fill of a stale copy: nothing is lost and nothing is reported.
    Poison,
    /// A copy: its destination is invalid, its source is unchanged.
    Copy,
    /// A fill with a constant that the library still knows: its destination is invalid.
    Constant,
    /// A kernel or an assignment: the contents that it was to write are lost.
    Contents,
    /// The device is lost, with everything that was queued on it.
    Device,
}

/// One failure of queued work.
#[derive(Clone, Debug)]
pub(crate) struct FailureRecord {
    pub(crate) kind: FailureKind,
    /// What failed first: `kernel "blur"`, `copy of "photo" to cpu:0`.
    pub(crate) operation: String,
    /// The user's line that queued it.
    pub(crate) site: Option<CallSite>,
    /// Why: the panic's message, the driver's text.
    pub(crate) cause: String,
    /// True where this work did not fail itself but read what a failed piece of work was to write.
    pub(crate) inherited: bool,
}

static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Failures of single pieces of work, and of all that a queue had left.
#[derive(Default)]
struct Table {
    single: HashMap<(QueueId, Position), Arc<FailureRecord>>,
    /// From the position behind this one on: the record of the first, and of those behind it.
    rest: HashMap<QueueId, (Position, [Arc<FailureRecord>; 2])>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// How many pieces of queued work have failed so far in this process.
#[inline]
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Enters a failure. Called by a backend before it marks the position as completed.
pub(crate) fn record(queue: QueueId, position: Position, record: Arc<FailureRecord>) {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.get_or_insert_default().single.insert((queue, position), record);
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Enters the failure of everything in `queue` behind `after`, for good: its device is gone. The
/// first of it is what failed, the rest inherits. Entered again it changes nothing: what comes
/// later is part of the rest.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the embedded device is never lost"))]
pub(crate) fn record_queue_loss(queue: QueueId, after: Position, record: FailureRecord) {
    let inherited = FailureRecord { inherited: true, ..record.clone() };
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table
        .get_or_insert_default()
        .rest
        .entry(queue)
        .or_insert_with(|| (after, [Arc::new(record), Arc::new(inherited)]));
    EPOCH.fetch_add(1, Ordering::Release);
}

/// The failure of the work at `position`, if it failed.
pub(crate) fn at(queue: QueueId, position: Position) -> Option<Arc<FailureRecord>> {
    if epoch() == 0 {
        return None;
    }
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.as_ref()?.at(queue, position)
}

/// The first failure in `queue` above `after` and up to `upto`.
pub(crate) fn first_between(
    queue: QueueId,
    after: Position,
    upto: Position,
) -> Option<(Position, Arc<FailureRecord>)> {
    if epoch() == 0 {
        return None;
    }
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let table = table.as_ref()?;
    let in_range = |position: &Position| *position > after && *position <= upto;
    let single = table
        .single
        .keys()
        .filter(|(other, _)| *other == queue)
        .map(|(_, position)| *position)
        .filter(in_range)
        .min();
    let rest =
        table.rest.get(&queue).map(|(from, _)| Position(from.max(&after).0 + 1)).filter(in_range);
    let first = single.into_iter().chain(rest).min()?;
    table.at(queue, first).map(|record| (first, record))
}

impl Table {
    fn at(&self, queue: QueueId, position: Position) -> Option<Arc<FailureRecord>> {
        if let Some(record) = self.single.get(&(queue, position)) {
            return Some(Arc::clone(record));
        }
        let (after, [first, behind]) = self.rest.get(&queue)?;
        match position.0.checked_sub(after.0)? {
            0 => None,
            1 => Some(Arc::clone(first)),
            _ => Some(Arc::clone(behind)),
        }
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
    fn what_a_queue_had_left_fails_behind_the_first_time_that_its_device_was_found_dead() {
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
