//! The latest records of a capture, and exact totals of all.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use super::record::{MemoryChange, QueueSpan};
use super::record_block::{Event, EventKind, RecordBlock};
use crate::device;
use crate::traffic::Flow;
use resident_backend::timeline;
use resident_documents::Waits;

/// How many of the latest records are kept.
const RECORDS_KEPT: usize = 1 << 16;

/// A copy of more operations than this gets no times of its start.
const OPERATIONS_MAX: u64 = 1 << 12;

/// The latest records, and the totals of what no record is needed for.
#[derive(Clone, Debug)]
pub(super) struct Records {
    blocks: VecDeque<Arc<RecordBlock>>,
    /// The number of events in the blocks. The oldest ones beyond [`RECORDS_KEPT`] do not count.
    len: usize,
    /// The number of events in blocks that were dropped.
    dropped: u64,
    pub(super) launches: u64,
    pub(super) waits: Waits,
    /// For other processes.
    pub(super) peer_waits: Waits,
    pub(super) allocations: Flow,
    pub(super) evictions: Flow,
    pub(super) started_ns: u64,
    /// The same moment by the system's clock, since 1970.
    pub(super) started_unix_ns: u64,
    pub(super) duration_ns: u64,
    times: HashMap<(u64, u64), (u64, u64)>,
    /// By the latest launches and their arguments, how many bytes the launch has changed.
    compared: BTreeMap<(u64, usize), u64>,
}

/// An event and its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded<'a> {
    pub(super) block: &'a RecordBlock,
    pub(super) event: &'a Event,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            len: 0,
            dropped: 0,
            launches: 0,
            waits: Waits::default(),
            peer_waits: Waits::default(),
            allocations: Flow::default(),
            evictions: Flow::default(),
            started_ns: timeline::now_ns(),
            started_unix_ns: 0,
            duration_ns: 0,
            times: HashMap::new(),
            compared: BTreeMap::new(),
        }
    }
}

/// The time by the system's clock, in nanoseconds since 1970.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Records {
    pub(super) fn add(&mut self, block: &Arc<RecordBlock>) {
        self.launches += block.launches().len() as u64;
        block.events.iter().for_each(|event| self.count(block, event));
        self.len += block.events.len();
        self.blocks.push_back(Arc::clone(block));
        while let Some(oldest) = self.blocks.front().map(|block| block.events.len())
            && self.len - oldest >= RECORDS_KEPT
        {
            self.blocks.pop_front();
            self.len -= oldest;
            self.dropped += oldest as u64;
        }
    }

    fn count(&mut self, block: &RecordBlock, event: &Event) {
        match event.kind {
            EventKind::Copy(_) | EventKind::Launch(_) | EventKind::Access(_) => {}
            EventKind::Message(message) => self.add_peer_wait(block.message(message).waited_ns),
            EventKind::Barrier(barrier) => self.add_peer_wait(block.barrier(barrier).waited_ns),
            EventKind::Wait(wait) => {
                let began_ns = event.queued_ns.max(self.started_ns);
                self.waits.count += 1;
                self.waits.nanoseconds += block.wait(wait).finished_ns.saturating_sub(began_ns);
            }
            EventKind::Memory(memory) => {
                let memory = block.memory(memory);
                let total = match memory.kind {
                    MemoryChange::Allocation => &mut self.allocations,
                    MemoryChange::Eviction => &mut self.evictions,
                    MemoryChange::Discard => return,
                };
                *total += Flow::of(memory.bytes);
            }
        }
    }

    /// Adds a wait for other processes, unless there was none.
    fn add_peer_wait(&mut self, waited_ns: u64) {
        if waited_ns > 0 {
            self.peer_waits.count += 1;
            self.peer_waits.nanoseconds += waited_ns;
        }
    }

    /// The number of events that are not kept.
    pub(super) fn forgotten(&self) -> u64 {
        self.dropped + self.len.saturating_sub(RECORDS_KEPT) as u64
    }

    /// Takes over when devices ran what is recorded. Work that has not run has no times.
    pub(super) fn close(&mut self) {
        device::take_times();
        self.duration_ns = timeline::now_ns().saturating_sub(self.started_ns);
        self.started_unix_ns = unix_ns().saturating_sub(self.duration_ns);
        let runs = timeline::runs_since(self.started_ns).into_iter();
        self.times
            .extend(runs.map(|run| ((run.queue, run.position), (run.started_ns, run.finished_ns))));
    }

    /// The records, in the order in which their work was queued or their wait began.
    pub(super) fn in_order(&self) -> Vec<Recorded<'_>> {
        let blocks = self.blocks.iter().map(|block| &**block);
        let records = blocks
            .flat_map(|block| block.events.iter().map(move |event| Recorded { block, event }));
        let mut records: Vec<_> = records.skip(self.len.saturating_sub(RECORDS_KEPT)).collect();
        records.sort_by_key(|record| record.event.queued_ns);
        records
    }

    /// When the device began and finished these operations, since the start of the log; `None` if
    /// they are not known to be over.
    pub(super) fn times(&self, span: QueueSpan) -> Option<(u64, u64)> {
        let (mut started_ns, finished_ns) = *self.times.get(&(span.queue, span.last))?;
        let first = span.first.max(span.last.saturating_sub(OPERATIONS_MAX));
        for position in first..span.last {
            if let Some((began_ns, _)) = self.times.get(&(span.queue, position)) {
                started_ns = started_ns.min(*began_ns);
            }
        }
        Some((self.since_start(started_ns), self.since_start(finished_ns)))
    }

    /// Adds how many bytes of an argument a launch has changed.
    pub(super) fn add_compared(&mut self, launch: u64, argument: usize, changed_bytes: u64) {
        if self.compared.len() == RECORDS_KEPT {
            self.compared.pop_first();
        }
        self.compared.insert((launch, argument), changed_bytes);
    }

    /// How many bytes of an argument a launch has changed, if that is known.
    pub(super) fn changed_bytes(&self, launch: u64, argument: usize) -> Option<u64> {
        self.compared.get(&(launch, argument)).copied()
    }

    pub(super) fn since_start(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.started_ns)
    }
}
