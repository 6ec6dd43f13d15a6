//! The table of the failures of queued work, by stream and position.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::FailureRecord;
use crate::sync::{BackendGuard, BackendLock};
use crate::{Position, StreamId};

/// The number of failures of queued work so far in this process.
#[inline]
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Records a failure. A backend calls this before it marks the position as completed.
pub fn record(stream: StreamId, position: Position, record: Arc<FailureRecord>) {
    let mut table = table();
    let known = table.get_or_insert_default();
    if known.single.entry(stream).or_default().insert(position, record).is_none() {
        known.recorded.push_back((stream, position));
    }
    if known.recorded.len() >= known.forget_at.max(KEPT_MIN) {
        FORGETTING_IS_DUE.store(true, Ordering::Relaxed);
    }
    // Within the lock: who reads the number of failures from the table also sees their epoch.
    EPOCH.fetch_add(1, Ordering::Release);
}

/// The number of records.
pub fn kept() -> usize {
    table().as_ref().map_or(0, |known| known.recorded.len())
}

/// Whether there are so many records that it is time to remove those that no one can ask for.
#[inline]
pub fn is_forgetting_due() -> bool {
    FORGETTING_IS_DUE.load(Ordering::Relaxed)
}

/// The number of failures recorded so far, without dead streams.
pub fn count() -> u64 {
    table().as_ref().map_or(0, |known| known.forgotten + known.recorded.len() as u64)
}

/// Removes the records of the first `count` failures, except those for which `is_kept` is true. The
/// next removal is due when the number of records has doubled, and is at least `next_min`.
pub fn forget(count: u64, is_kept: impl Fn(StreamId, Position) -> bool, next_min: usize) {
    if let Some(known) = table().as_mut() {
        known.forget(count, is_kept);
        known.postpone(next_min.max(2 * known.recorded.len()));
    }
}

/// Waits with the next removal until there are some more records, because one could not be made.
pub fn postpone_forgetting() {
    if let Some(known) = table().as_mut() {
        known.postpone(known.recorded.len() + KEPT_MIN);
    }
}

/// Records that the device of `stream` is dead: every position past `after` has failed, including
/// future positions. The first of these positions counts as failed itself, and later ones as failed
/// because of it. Later calls for the same stream change nothing.
pub fn record_stream_death(stream: StreamId, after: Position, first: FailureRecord) {
    let inherited = Arc::new(FailureRecord { inherited: true, ..first.clone() });
    let dead = DeadStream { after, first: Arc::new(first), inherited };
    let mut table = table();
    table.get_or_insert_default().dead_streams.entry(stream).or_insert(dead);
    EPOCH.fetch_add(1, Ordering::Release);
}

/// The failure of the work at `position`, if it failed.
pub fn at(stream: StreamId, position: Position) -> Option<Arc<FailureRecord>> {
    if epoch() == 0 { None } else { table().as_ref()?.at(stream, position) }
}

/// The first failure in `stream` at a position past `after` and at most `upto`.
pub fn first_between(
    stream: StreamId,
    after: Position,
    upto: Position,
) -> Option<(Position, Arc<FailureRecord>)> {
    if epoch() == 0 { None } else { table().as_ref()?.first_between(stream, after, upto) }
}

static EPOCH: AtomicU64 = AtomicU64::new(0);
static TABLE: BackendLock<Option<Table>> = BackendLock::new(None);
static FORGETTING_IS_DUE: AtomicBool = AtomicBool::new(false);

/// With fewer records than this, none is removed.
const KEPT_MIN: usize = 1_024;

fn table() -> BackendGuard<'static, Option<Table>> {
    TABLE.lock()
}

#[derive(Default)]
struct Table {
    /// Failures of single operations.
    single: HashMap<StreamId, BTreeMap<Position, Arc<FailureRecord>>>,
    /// The streams that had work in flight when their device was lost. Nothing adds more: a lost
    /// device accepts no work until the process ends.
    dead_streams: HashMap<StreamId, DeadStream>,
    /// The keys of `single`, in the order in which they were recorded.
    recorded: VecDeque<(StreamId, Position)>,
    /// The number of records that were removed.
    forgotten: u64,
    /// With this many records, the next removal is due.
    forget_at: usize,
}

/// The failures of all work past a position of a stream, whose device was lost.
struct DeadStream {
    after: Position,
    /// The failure of the first position past `after`, which failed itself.
    first: Arc<FailureRecord>,
    /// The failure of all later positions.
    inherited: Arc<FailureRecord>,
}

impl Table {
    fn forget(&mut self, count: u64, is_kept: impl Fn(StreamId, Position) -> bool) {
        let old = usize::try_from(count.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let newer = self.recorded.split_off(old.min(self.recorded.len()));
        for (stream, position) in std::mem::replace(&mut self.recorded, newer) {
            if is_kept(stream, position) {
                // As if it had just been recorded: the next removal examines it again.
                self.recorded.push_back((stream, position));
            } else {
                self.remove(stream, position);
            }
        }
    }

    fn remove(&mut self, stream: StreamId, position: Position) {
        self.forgotten += 1;
        if let Entry::Occupied(mut failed) = self.single.entry(stream) {
            failed.get_mut().remove(&position);
            if failed.get().is_empty() {
                failed.remove();
            }
        }
    }

    fn postpone(&mut self, forget_at: usize) {
        self.forget_at = forget_at;
        FORGETTING_IS_DUE.store(false, Ordering::Relaxed);
    }

    fn at(&self, stream: StreamId, position: Position) -> Option<Arc<FailureRecord>> {
        if let Some(record) = self.single.get(&stream).and_then(|failed| failed.get(&position)) {
            return Some(Arc::clone(record));
        }
        let dead = self.dead_streams.get(&stream)?;
        match position.0.checked_sub(dead.after.0)? {
            0 => None,
            1 => Some(Arc::clone(&dead.first)),
            _ => Some(Arc::clone(&dead.inherited)),
        }
    }

    fn first_between(
        &self,
        stream: StreamId,
        after: Position,
        upto: Position,
    ) -> Option<(Position, Arc<FailureRecord>)> {
        let behind = |failed: &BTreeMap<Position, Arc<FailureRecord>>| {
            failed.range((Bound::Excluded(after), Bound::Unbounded)).next().map(|(first, _)| *first)
        };
        let single = self.single.get(&stream).and_then(behind);
        let dead = self.dead_streams.get(&stream);
        let dead = dead.map(|dead| Position(dead.after.max(after).0 + 1));
        let first = single.into_iter().chain(dead).min().filter(|first| *first <= upto)?;
        self.at(stream, first).map(|record| (first, record))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FailureKind;
    use super::{
        FailureRecord, Position, StreamId, Table, at, first_between, record, record_stream_death,
    };

    fn failed(operation: &str) -> FailureRecord {
        FailureRecord {
            kind: FailureKind::Device,
            operation: operation.to_owned(),
            site: None,
            cause: String::new(),
            inherited: false,
            left_out: None,
        }
    }

    #[test]
    fn old_records_are_removed_unless_they_are_kept() {
        let (mut table, stream) = (Table::default(), StreamId::next());
        for position in 1..=6 {
            let positions = table.single.entry(stream).or_default();
            positions.insert(Position(position), failed("single").into());
            table.recorded.push_back((stream, Position(position)));
        }
        table.forget(4, |_, position| position == Position(2));
        let left = |table: &Table| {
            (1..=6).filter(|at| table.at(stream, Position(*at)).is_some()).collect::<Vec<_>>()
        };
        assert_eq!((left(&table), table.forgotten), (vec![2, 5, 6], 3));
        // 5 is the fourth of the failures so far; 2 now counts as the sixth.
        table.forget(4, |_, _| false);
        assert_eq!(left(&table), [2, 6]);
        table.forget(6, |_, _| false);
        assert!(table.single.is_empty() && table.recorded.is_empty());
    }

    #[test]
    fn a_dead_stream_fails_after_the_first_recorded_position() {
        let stream = StreamId::next();
        record(stream, Position(2), failed("single").into());
        record_stream_death(stream, Position(4), failed("rest"));
        record_stream_death(stream, Position(9), failed("again"));
        let seen = |position| {
            at(stream, Position(position))
                .map(|record| (record.operation.clone(), record.inherited))
        };
        assert_eq!((seen(2), seen(3), seen(4)), (Some(("single".to_owned(), false)), None, None));
        assert_eq!((seen(5), seen(6), seen(10)), {
            let rest = |inherited| Some(("rest".to_owned(), inherited));
            (rest(false), rest(true), rest(true))
        });
        assert!(at(StreamId::next(), Position(5)).is_none());
        let first = |after, upto| {
            first_between(stream, Position(after), Position(upto)).map(|(position, _)| position.0)
        };
        assert_eq!(
            (first(0, 9), first(2, 9), first(2, 4), first(5, 9)),
            (Some(2), Some(5), None, Some(6))
        );
    }
}
