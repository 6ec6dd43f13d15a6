//! The tracker: which pending operations access which bytes, and what happens before what.
//!
//! The tracker checks each operation when it is submitted, under its stream's lock. Before it
//! happen all earlier operations of its stream, everything that its stream waited for (vector
//! clocks), and every operation that has run by then. An operation that has run therefore happens
//! before all later submissions, so the histories hold only pending accesses.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::access::{AccessKind, AccessedMemory, MemoryAccess};
use super::hazard::{Hazard, HazardKind, HazardOperation, Touch};
use super::overlap;
use super::vector_clock::VectorClock;
use super::written::ByteSet;
use crate::backend::embedded::engine::Progress;
use crate::backend::{Address, Dependencies, Footprint, Position, QueueId, extent, failure};

/// Freed blocks that are remembered, so that a hazard names the block of a use after its free.
const FREED_MAX: usize = 1 << 10;

/// The histories of all devices that may share work: those of one simulation, or all emulated
/// devices without a seed.
#[derive(Debug, Default)]
pub(crate) struct Tracker(Mutex<Histories>);

#[derive(Debug, Default)]
struct Histories {
    clocks: HashMap<QueueId, VectorClock>,
    /// By device number and start address.
    blocks: BTreeMap<(usize, u64), BlockHistory>,
    /// Keys of freed blocks, oldest first.
    freed: VecDeque<(usize, u64)>,
    host: Vec<PendingAccess>,
}

/// The history of one block.
#[derive(Debug)]
struct BlockHistory {
    label: Arc<str>,
    len_bytes: u64,
    freed_by: Option<HazardOperation>,
    pending: Vec<PendingAccess>,
    written: ByteSet,
}

/// One access by a pending operation.
#[derive(Debug)]
struct PendingAccess {
    queue: Arc<Progress>,
    position: Position,
    operation: HazardOperation,
    footprint: Footprint,
    depends: Dependencies,
}

/// An operation that is submitted. Its touch differs from access to access.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) queue: &'a Arc<Progress>,
    pub(crate) position: Position,
    pub(crate) operation: HazardOperation,
    pub(crate) depends: &'a [(QueueId, Position)],
}

impl Tracker {
    /// The tracker of all emulated devices without a seed.
    pub(crate) fn of_process() -> Arc<Self> {
        static PROCESS: OnceLock<Arc<Tracker>> = OnceLock::new();
        Arc::clone(PROCESS.get_or_init(Arc::default))
    }

    /// Adds a new block, of which nothing is written.
    pub(crate) fn add_block(
        &self,
        device: usize,
        address: Address,
        len_bytes: u64,
        label: &Arc<str>,
    ) {
        let block = BlockHistory {
            label: Arc::clone(label),
            len_bytes,
            freed_by: None,
            pending: Vec::new(),
            written: ByteSet::default(),
        };
        self.lock().blocks.insert((device, address.0), block);
    }

    /// The clock of an event that `queue` recorded at `position`.
    pub(crate) fn event_clock(&self, queue: &Arc<Progress>, position: Position) -> VectorClock {
        let mut clock = self.lock().clocks.get(&queue.id()).cloned().unwrap_or_default();
        clock.add(queue, position);
        clock
    }

    /// Orders later work of `queue` after an event with this clock.
    pub(crate) fn wait_for_event(&self, queue: &Arc<Progress>, event: &VectorClock) {
        self.lock().clocks.entry(queue.id()).or_default().join(event);
    }

    /// Removes a queue that gets no more work.
    pub(crate) fn remove_queue(&self, queue: QueueId) {
        self.lock().clocks.remove(&queue);
    }

    /// Checks the accesses of an operation against the histories, then adds them.
    pub(crate) fn check(
        &self,
        submission: &Submission<'_>,
        accesses: &[MemoryAccess],
    ) -> Vec<Hazard> {
        let histories = &mut *self.lock();
        let will_run = !has_failed_dependency(submission.depends);
        let mut hazards = Vec::new();
        // All are checked before any is added: an operation does not conflict with itself.
        for access in accesses.iter().filter(|_| will_run) {
            hazards.extend(histories.check(submission, access));
        }
        for access in accesses {
            histories.add(submission, access, will_run);
        }
        hazards
    }

    fn lock(&self) -> MutexGuard<'_, Histories> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Histories {
    /// The hazards of one access.
    fn check(&mut self, submission: &Submission<'_>, access: &MemoryAccess) -> Vec<Hazard> {
        match access.memory {
            AccessedMemory::Host { base, len_bytes } => {
                self.check_host(submission, access, base, len_bytes)
            }
            AccessedMemory::Device { device, address } => {
                self.check_device(submission, access, device, address)
            }
        }
    }

    fn check_host(
        &mut self,
        submission: &Submission<'_>,
        access: &MemoryAccess,
        base: u64,
        len_bytes: u64,
    ) -> Vec<Hazard> {
        let Some(footprint) = at_absolute_address(access, base) else { return Vec::new() };
        let clock = self.clocks.get(&submission.queue.id());
        let conflicts = conflicts(submission, clock, &mut self.host, access.kind, &footprint);
        let hazard = |(earlier, bytes): (_, Range<u64>)| {
            let bytes = bytes.start.saturating_sub(base)..bytes.end.saturating_sub(base);
            let memory = format!("host memory of {len_bytes} bytes");
            submission.hazard(access, HazardKind::Unordered, Some(earlier), memory, bytes)
        };
        conflicts.into_iter().map(hazard).collect()
    }

    fn check_device(
        &mut self,
        submission: &Submission<'_>,
        access: &MemoryAccess,
        device: usize,
        address: Address,
    ) -> Vec<Hazard> {
        let hazard =
            |kind, earlier, memory, bytes| submission.hazard(access, kind, earlier, memory, bytes);
        let Some((start, block)) = block_around(&mut self.blocks, device, address) else {
            let memory = format!("unknown memory at {:#x} of cpu:{device}", address.0);
            return vec![hazard(HazardKind::UseAfterFree, None, memory, bounds(&access.footprint))];
        };
        let memory = format!("{} on cpu:{device}", block.label);
        let Some(footprint) = in_block(access, address.0 - start, block.len_bytes) else {
            return vec![hazard(HazardKind::OutOfRange, None, memory, bounds(&access.footprint))];
        };
        let Some(footprint) = overlap::normalised(&footprint) else { return Vec::new() };
        if let Some(freed_by) = &block.freed_by {
            let (freed_by, bytes) = (Some(freed_by.clone()), overlap::bounds(&footprint));
            return vec![hazard(HazardKind::UseAfterFree, freed_by, memory, bytes)];
        }
        let clock = self.clocks.get(&submission.queue.id());
        let conflicts = conflicts(submission, clock, &mut block.pending, access.kind, &footprint);
        let unordered = conflicts.into_iter().map(|(earlier, bytes)| {
            hazard(HazardKind::Unordered, Some(earlier), memory.clone(), bytes)
        });
        let missing = access.kind.reads().then(|| block.written.first_missing(&footprint));
        let unwritten = missing
            .flatten()
            .map(|bytes| hazard(HazardKind::NeverWritten, None, memory.clone(), bytes));
        unordered.chain(unwritten).collect()
    }

    /// Adds one access, if it is in range. Of an operation that will not run only the written bytes
    /// are added.
    fn add(&mut self, submission: &Submission<'_>, access: &MemoryAccess, will_run: bool) {
        let (device, address) = match access.memory {
            AccessedMemory::Host { base, .. } => {
                let footprint = at_absolute_address(access, base).filter(|_| will_run);
                self.host.extend(footprint.map(|it| submission.pending(access, it)));
                return;
            }
            AccessedMemory::Device { device, address } => (device, address),
        };
        if access.kind == AccessKind::Free {
            return self.add_free(submission, device, address);
        }
        let Some((start, block)) = block_around(&mut self.blocks, device, address) else { return };
        let footprint = in_block(access, address.0 - start, block.len_bytes);
        let Some(footprint) = footprint.as_ref().and_then(overlap::normalised) else { return };
        match access.kind {
            AccessKind::Write | AccessKind::ReadWrite => block.written.insert(&footprint),
            AccessKind::Poison => block.written.remove(&footprint),
            AccessKind::Read | AccessKind::Free => {}
        }
        if will_run {
            block.pending.push(submission.pending(access, footprint));
        }
    }

    /// Marks a block as freed, and keeps its name for a while.
    fn add_free(&mut self, submission: &Submission<'_>, device: usize, address: Address) {
        let Some(block) = self.blocks.get_mut(&(device, address.0)) else { return };
        block.freed_by = Some(submission.operation_that(Touch::Frees));
        block.written = ByteSet::default();
        block.pending = Vec::new();
        self.freed.push_back((device, address.0));
        if self.freed.len() > FREED_MAX {
            self.freed.pop_front().and_then(|oldest| self.blocks.remove(&oldest));
        }
    }
}

impl Submission<'_> {
    fn operation_that(&self, touch: Touch) -> HazardOperation {
        HazardOperation { touch, ..self.operation.clone() }
    }

    fn hazard(
        &self,
        access: &MemoryAccess,
        kind: HazardKind,
        earlier: Option<HazardOperation>,
        memory: String,
        bytes: Range<u64>,
    ) -> Hazard {
        let operation = self.operation_that(access.kind.touch());
        Hazard { kind, operation, earlier, memory, bytes }
    }

    fn pending(&self, access: &MemoryAccess, footprint: Footprint) -> PendingAccess {
        PendingAccess {
            queue: Arc::clone(self.queue),
            position: self.position,
            operation: self.operation_that(access.kind.touch()),
            footprint,
            depends: Dependencies::from_slice(self.depends),
        }
    }
}

/// The pending accesses that conflict with a submission and do not happen before it, with the first
/// bytes that they share. Two reads do not conflict.
fn conflicts(
    submission: &Submission<'_>,
    clock: Option<&VectorClock>,
    pending: &mut Vec<PendingAccess>,
    kind: AccessKind,
    footprint: &Footprint,
) -> Vec<(HazardOperation, Range<u64>)> {
    pending.retain(|earlier| {
        !earlier.queue.has_run(earlier.position) && !has_failed_dependency(&earlier.depends)
    });
    let happens_before = |earlier: &PendingAccess| {
        let queue = earlier.queue.id();
        queue == submission.queue.id()
            || clock.is_some_and(|clock| clock.includes(queue, earlier.position))
    };
    let both_read = |earlier: &PendingAccess| {
        earlier.operation.touch == Touch::Reads && kind.touch() == Touch::Reads
    };
    let unordered =
        pending.iter().filter(|earlier| !both_read(earlier) && !happens_before(earlier));
    let shared = |earlier: &PendingAccess| {
        let bytes = overlap::first_overlap(&earlier.footprint, footprint)?;
        Some((earlier.operation.clone(), bytes))
    };
    unordered.filter_map(shared).collect()
}

/// Whether work does not run because work that it depends on failed. Such work conflicts with
/// nothing: the layers above may have reused its bytes already.
fn has_failed_dependency(depends: &[(QueueId, Position)]) -> bool {
    depends.iter().any(|(queue, position)| failure::of(*queue, *position).is_some())
}

/// The block that contains an address, and its start.
fn block_around(
    blocks: &mut BTreeMap<(usize, u64), BlockHistory>,
    device: usize,
    address: Address,
) -> Option<(u64, &mut BlockHistory)> {
    let (key, block) = blocks.range_mut(..=(device, address.0)).next_back()?;
    (key.0 == device && address.0 - key.1 <= block.len_bytes).then_some((key.1, block))
}

/// An access of host memory by absolute address, so that overlapping views of one allocation are
/// comparable.
fn at_absolute_address(access: &MemoryAccess, base: u64) -> Option<Footprint> {
    overlap::normalised(&in_block(access, base, u64::MAX)?)
}

/// The footprint of an access relative to its block's start, if it is in range.
fn in_block(access: &MemoryAccess, start_bytes: u64, len_bytes: u64) -> Option<Footprint> {
    let offset_bytes = start_bytes.checked_add(access.footprint.offset_bytes)?;
    let footprint = Footprint { offset_bytes, ..access.footprint.clone() };
    (extent::footprint_end_bytes(&footprint)? <= len_bytes).then_some(footprint)
}

/// From the first to the last byte, as far as 64 bits reach.
fn bounds(footprint: &Footprint) -> Range<u64> {
    footprint.offset_bytes..extent::footprint_end_bytes(footprint).unwrap_or(u64::MAX)
}
