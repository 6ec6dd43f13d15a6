//! Single recorded events, and when devices ran their work.

use rustc_hash::FxHashMap;

use crate::audit::recording::block::{Event, EventKind, RecordBlock};
use crate::audit::recording::facts::StreamSpan;
use resident_backend::timeline::{self, Runs};

/// A copy of more operations than this gets no times of its start.
const OPERATIONS_MAX: u64 = 1 << 12;

/// When devices ran operations, by the stream and the position.
#[derive(Clone, Debug, Default)]
pub(in crate::audit) struct Times(Runs);

impl Times {
    /// Those of the latest operations.
    pub(in crate::audit) fn since(started_ns: u64) -> Self {
        Self(timeline::runs_since(started_ns))
    }

    /// Those of some operations: of each stream, the first position and the last.
    pub(in crate::audit) fn of_operations(operations: FxHashMap<u64, (u64, u64)>) -> Self {
        Self(timeline::runs_of(operations))
    }

    /// When the device began and finished these operations, since the start of the log; `None` if
    /// they are not known to be over.
    pub(in crate::audit) fn of(&self, span: StreamSpan, log_started_ns: u64) -> Option<(u64, u64)> {
        let (mut started_ns, finished_ns) = self.0.get(span.stream_id, span.last)?;
        let first = span.first.max(span.last.saturating_sub(OPERATIONS_MAX));
        for position in first..span.last {
            if let Some((began_ns, _)) = self.0.get(span.stream_id, position) {
                started_ns = started_ns.min(began_ns);
            }
        }
        let since = |time_ns: u64| time_ns.saturating_sub(log_started_ns);
        Some((since(started_ns), since(finished_ns)))
    }
}

/// An event and its block.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct Recorded<'a> {
    pub(in crate::audit) block: &'a RecordBlock,
    pub(in crate::audit) event: &'a Event,
}

/// The operations of events: of each stream, the first position and the last.
pub(super) fn operations_of(events: &[Recorded<'_>]) -> FxHashMap<u64, (u64, u64)> {
    let mut ranges: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
    for Recorded { block, event } in events {
        let span = match event.kind {
            EventKind::Copy(copy) => block.span_of_copy(block.copy(copy)),
            EventKind::Launch(launch) => block.span_of_launch(block.launch(launch)),
            _ => continue,
        };
        let (first, last) = ranges.entry(span.stream_id).or_insert((span.first, span.last));
        (*first, *last) = ((*first).min(span.first), (*last).max(span.last));
    }
    ranges
}

impl Recorded<'_> {
    pub(super) fn is_end(&self) -> bool {
        matches!(self.event.kind, EventKind::End(_))
    }
}
