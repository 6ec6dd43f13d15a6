//! The latest records of a capture, and exact totals of all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use rustc_hash::FxHashMap;

use super::steps::{SiteTexts, StepContext};
use super::timed::{Recorded, Times, operations_of};
use crate::audit::recording::block::{Event, EventKind, RecordBlock};
use crate::audit::recording::facts::{MemoryChange, StreamSpan};
use crate::device;
use crate::traffic::Flow;
use resident_backend::timeline;
use resident_documents::findings::Analysis;
use resident_documents::{DocumentFinding, Waits};

/// How many of the latest records are kept.
const RECORDS_KEPT: usize = 1 << 16;

/// So many events may be of the same moment.
const SAME_MOMENT: usize = 1 << 6;

/// So many more are there before the oldest are dropped, together.
const RECORDS_DROPPED: usize = 3 << 10;

/// The latest records, and the totals of what no record is needed for.
#[derive(Clone, Debug)]
pub(in crate::audit) struct Records {
    blocks: VecDeque<KeptBlock>,
    /// The number of events that were not dropped, without the ends of arrays. The oldest ones
    /// beyond [`RECORDS_KEPT`] do not count.
    len: usize,
    /// The number of events that were dropped, without the ends of arrays.
    dropped: u64,
    /// What could be saved, as far as dropped events say.
    analysis: Analysis,
    sites: SiteTexts,
    pub(in crate::audit) launches: u64,
    pub(in crate::audit) waits: Waits,
    /// For other processes.
    pub(in crate::audit) peer_waits: Waits,
    pub(in crate::audit) allocations: Flow,
    pub(in crate::audit) evictions: Flow,
    pub(in crate::audit) started_ns: u64,
    /// The same moment by the system's clock, since 1970.
    pub(in crate::audit) started_unix_ns: u64,
    pub(in crate::audit) duration_ns: u64,
    times: Times,
    /// By the latest launches and their arguments, how many bytes the launch has changed.
    compared: BTreeMap<(u64, usize), u64>,
}

/// A block, whose first events may have been dropped.
#[derive(Clone, Debug)]
struct KeptBlock {
    block: Arc<RecordBlock>,
    /// How many of its events were dropped.
    dropped: usize,
}

impl KeptBlock {
    fn recorded(&self) -> impl Iterator<Item = Recorded<'_>> {
        let events = self.block.events[self.dropped..].iter();
        events.map(|event| Recorded { block: &self.block, event })
    }

    /// Those that were queued until then.
    fn recorded_until(&self, newest_ns: u64) -> impl Iterator<Item = Recorded<'_>> {
        // Of events of the same moment some more may be dropped.
        self.recorded().take_while(move |recorded| recorded.event.queued_ns <= newest_ns)
    }

    /// When its last event was queued, and the least number of events without the ends of arrays.
    fn end(&self) -> (u64, usize) {
        let last_ns = self.block.events.last().map_or(0, |event| event.queued_ns);
        let len = self.block.events.len() - self.dropped;
        (last_ns, len.saturating_sub(self.block.ends()))
    }
}

impl Default for Records {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            len: 0,
            dropped: 0,
            analysis: Analysis::default(),
            sites: SiteTexts::default(),
            launches: 0,
            waits: Waits::default(),
            peer_waits: Waits::default(),
            allocations: Flow::default(),
            evictions: Flow::default(),
            started_ns: timeline::now_ns(),
            started_unix_ns: 0,
            duration_ns: 0,
            times: Times::default(),
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
    pub(in crate::audit) fn add(&mut self, block: &Arc<RecordBlock>) {
        self.launches += block.launches().len() as u64;
        block.events.iter().for_each(|event| self.count(block, event));
        self.len += block.events.len() - block.ends();
        self.blocks.push_back(KeptBlock { block: Arc::clone(block), dropped: 0 });
    }

    /// Whether there are so many events that the oldest are due to be dropped.
    pub(in crate::audit) fn are_too_many(&self) -> bool {
        self.len >= RECORDS_KEPT + RECORDS_DROPPED
    }

    /// The operations of the events that [`drop_oldest`](Self::drop_oldest) would drop.
    pub(in crate::audit) fn oldest_operations(&self) -> FxHashMap<u64, (u64, u64)> {
        let newest_ns = self.newest_to_drop_ns();
        let oldest: Vec<_> =
            self.blocks.iter().flat_map(|kept| kept.recorded_until(newest_ns)).collect();
        operations_of(&oldest)
    }

    /// Drops the oldest events beyond those that are kept, if there are too many, once findings
    /// have taken from them what they need: so a finding does not depend on how long a program runs
    /// afterwards. `times` are those of their operations.
    pub(in crate::audit) fn drop_oldest(&mut self, times: &Times) {
        // Another thread may have dropped them.
        if !self.are_too_many() {
            return;
        }
        let newest_ns = self.newest_to_drop_ns();
        let mut oldest: Vec<Recorded<'_>> = Vec::new();
        let mut drops = Vec::with_capacity(self.blocks.len());
        for kept in &self.blocks {
            let before = oldest.len();
            oldest.extend(kept.recorded_until(newest_ns));
            drops.push(oldest.len() - before);
        }
        oldest.sort_by_key(|recorded| recorded.event.queued_ns);
        let dropped = oldest.iter().filter(|recorded| !recorded.is_end()).count();
        let compared = &self.compared;
        analyse(&mut self.analysis, &mut self.sites, &oldest, times, self.started_ns, compared);
        self.len -= dropped;
        self.dropped += dropped as u64;
        for (kept, count) in self.blocks.iter_mut().zip(drops) {
            kept.dropped += count;
        }
        self.blocks.retain(|kept| kept.dropped < kept.block.events.len());
    }

    /// When the newest event was queued that is dropped next.
    fn newest_to_drop_ns(&self) -> u64 {
        let count = self.len.saturating_sub(RECORDS_KEPT + SAME_MOMENT).max(1);
        // No event that is dropped is newer than the last one of blocks that have enough events.
        let mut ends: Vec<(u64, usize)> = self.blocks.iter().map(KeptBlock::end).collect();
        ends.sort_unstable();
        let mut so_far = 0;
        let last = ends.iter().find(|(_, len)| {
            so_far += len;
            so_far >= count
        });
        let last_ns = last.map_or(u64::MAX, |(last_ns, _)| *last_ns);
        let recorded = self.blocks.iter().flat_map(|kept| kept.recorded_until(last_ns));
        let mut queued: Vec<u64> = recorded
            .filter(|recorded| !recorded.is_end())
            .map(|recorded| recorded.event.queued_ns)
            .collect();
        let index = (count - 1).min(queued.len().saturating_sub(1));
        if queued.is_empty() { 0 } else { *queued.select_nth_unstable(index).1 }
    }

    /// What could be saved, by all events.
    pub(in crate::audit) fn findings(&self) -> Vec<DocumentFinding> {
        let (mut analysis, mut sites) = (self.analysis.clone(), self.sites.clone());
        let mut all: Vec<_> = self.blocks.iter().flat_map(KeptBlock::recorded).collect();
        all.sort_by_key(|recorded| recorded.event.queued_ns);
        let (times, compared) = (&self.times, &self.compared);
        analyse(&mut analysis, &mut sites, &all, times, self.started_ns, compared);
        analysis.findings(self.duration_ns)
    }

    fn count(&mut self, block: &RecordBlock, event: &Event) {
        match event.kind {
            EventKind::Copy(_)
            | EventKind::Launch(_)
            | EventKind::Access(_)
            | EventKind::End(_) => {}
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
    pub(in crate::audit) fn forgotten(&self) -> u64 {
        self.dropped + self.len.saturating_sub(RECORDS_KEPT) as u64
    }

    /// Takes over when devices ran what is recorded. Work that has not run has no times.
    pub(in crate::audit) fn close(&mut self) {
        device::take_times();
        self.duration_ns = timeline::now_ns().saturating_sub(self.started_ns);
        self.started_unix_ns = unix_ns().saturating_sub(self.duration_ns);
        self.times = Times::since(self.started_ns);
    }

    /// The records, in the order in which their work was queued or their wait began.
    pub(in crate::audit) fn in_order(&self) -> Vec<Recorded<'_>> {
        let recorded = self.blocks.iter().flat_map(KeptBlock::recorded);
        let mut records: Vec<_> = recorded.filter(|recorded| !recorded.is_end()).collect();
        records.sort_by_key(|record| record.event.queued_ns);
        records.split_off(records.len().saturating_sub(RECORDS_KEPT))
    }

    /// When the device began and finished these operations, since the start of the log; `None` if
    /// they are not known to be over.
    pub(in crate::audit) fn times(&self, span: StreamSpan) -> Option<(u64, u64)> {
        self.times.of(span, self.started_ns)
    }

    /// Adds how many bytes of an argument a launch has changed.
    pub(in crate::audit) fn add_compared(
        &mut self,
        launch: u64,
        argument: usize,
        changed_bytes: u64,
    ) {
        if self.compared.len() == RECORDS_KEPT {
            self.compared.pop_first();
        }
        self.compared.insert((launch, argument), changed_bytes);
    }

    /// How many bytes of an argument a launch has changed, if that is known.
    pub(in crate::audit) fn changed_bytes(&self, launch: u64, argument: usize) -> Option<u64> {
        self.compared.get(&(launch, argument)).copied()
    }

    pub(in crate::audit) fn since_start(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.started_ns)
    }
}

/// Lets findings look at events.
fn analyse(
    analysis: &mut Analysis,
    sites: &mut SiteTexts,
    events: &[Recorded<'_>],
    times: &Times,
    started_ns: u64,
    compared: &BTreeMap<(u64, usize), u64>,
) {
    events.iter().for_each(|recorded| sites.make_all(*recorded));
    let changed_bytes = |launch: u64, argument: usize| compared.get(&(launch, argument)).copied();
    let context = StepContext { sites, times, started_ns, changed_bytes: &changed_bytes };
    for step in events.iter().filter_map(|recorded| recorded.step(context)) {
        analysis.add(&step);
    }
}
