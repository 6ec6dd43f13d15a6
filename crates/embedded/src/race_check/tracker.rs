//! The tracker of the race check: the accesses of pending operations.
//!
//! The tracker checks each operation when it is submitted, under its stream's lock. All earlier
//! operations of its stream happen before it, and so do all operations that its stream waited for
//! (the stream's vector clock) and all that have run by then. An operation that has run therefore
//! happens before all later submissions, so the histories hold only pending accesses.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::access::{AccessKind, AccessedMemory, MemoryAccess};
use super::hazard::{Hazard, HazardKind, HazardOperation, Touch};
use super::overlap;
use super::vector_clock::VectorClock;
use super::written::ByteSet;
use crate::engine::StreamProgress;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{Address, Dependencies, Footprint, Position, StreamId, failure};

/// The number of freed blocks whose labels are kept, so that a hazard can name the block if it is
/// used after its free.
const FREED_MAX: usize = 1 << 10;

/// The histories of all devices that may share work: those of one simulation, or all emulated
/// devices without a seed.
#[derive(Debug, Default)]
pub(crate) struct Tracker(BackendLock<Histories>);

#[derive(Debug)]
struct Histories {
    blocks: BTreeMap<BlockKey, BlockHistory>,
    /// Freed blocks, oldest first.
    freed: VecDeque<BlockKey>,
    /// All host memory is treated as one block that starts at address 0, so that overlapping views
    /// of one allocation can be compared.
    host: BlockHistory,
}

/// Where a block of device memory starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct BlockKey {
    device: usize,
    address: Address,
}

/// The history of one block.
#[derive(Debug)]
struct BlockHistory {
    label: Arc<str>,
    len_bytes: u64,
    freed_by: Option<HazardOperation>,
    pending: Vec<PendingAccess>,
    /// The bytes that were ever written. Host memory is always initialised, so it has no such set.
    written: Option<ByteSet>,
    /// The address for the host, of memory that the host accesses too.
    host_start: Option<u64>,
}

/// One access by a pending operation.
#[derive(Debug)]
struct PendingAccess {
    stream: Arc<StreamProgress>,
    position: Position,
    operation: HazardOperation,
    footprint: Footprint,
    depends: Dependencies,
}

/// An operation that is submitted. It can access its arrays in different ways.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    pub stream: &'a Arc<StreamProgress>,
    pub position: Position,
    pub operation: HazardOperation,
    pub depends: &'a [(StreamId, Position)],
    /// What happens before the operation.
    pub clock: &'a VectorClock,
}

impl Tracker {
    /// The tracker of all emulated devices without a seed.
    pub(crate) fn of_process() -> Arc<Self> {
        static PROCESS: OnceLock<Arc<Tracker>> = OnceLock::new();
        Arc::clone(PROCESS.get_or_init(Arc::default))
    }

    /// Adds a new block, none of whose bytes is written.
    pub(crate) fn add_block(
        &self,
        device: usize,
        address: Address,
        len_bytes: u64,
        label: &Arc<str>,
    ) {
        let block = BlockHistory::new(label, len_bytes, Some(ByteSet::default()));
        self.lock().blocks.insert(BlockKey { device, address }, block);
    }

    /// Adds a new block that is initialised, and that other code writes too, which the check does
    /// not see.
    pub(crate) fn add_foreign_block(&self, device: usize, address: Address, len_bytes: u64) {
        let block = BlockHistory::new(&Arc::from("memory of other code"), len_bytes, None);
        self.lock().blocks.insert(BlockKey { device, address }, block);
    }

    /// Adds a new block of host memory that starts at `host_start`. Its uses are checked against
    /// those of the same host memory by other devices.
    pub(crate) fn add_mapped_block(
        &self,
        device: usize,
        address: Address,
        len_bytes: u64,
        host_start: u64,
    ) {
        let block = BlockHistory::new(&Arc::from("mapped memory"), len_bytes, None);
        let block = BlockHistory { host_start: Some(host_start), ..block };
        self.lock().blocks.insert(BlockKey { device, address }, block);
    }

    /// Forgets a block that is no memory of the device any more.
    pub(crate) fn forget_block(&self, device: usize, address: Address) {
        self.lock().blocks.remove(&BlockKey { device, address });
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
        // All accesses are checked before any is added: an operation does not conflict with itself.
        for access in accesses.iter().filter(|_| will_run) {
            let on_host = histories.on_host(access);
            hazards.extend(histories.check(submission, on_host.as_ref().unwrap_or(access)));
        }
        // Uses of mapped memory are added to both histories: a free is an access of the device's
        // block alone, since the host keeps its memory.
        let on_host: Vec<_> =
            accesses.iter().filter_map(|access| histories.on_host(access)).collect();
        for access in accesses.iter().chain(&on_host) {
            let accessed = histories.change(submission, access);
            if let Some((block, footprint)) = accessed.filter(|_| will_run) {
                block.add_pending(submission, access.kind, footprint);
            }
        }
        hazards
    }

    fn lock(&self) -> BackendGuard<'_, Histories> {
        self.0.lock()
    }
}

impl Histories {
    /// The hazards of one access.
    fn check(&mut self, submission: &Submission<'_>, access: &MemoryAccess) -> Vec<Hazard> {
        let located = self.block_of(access);
        let label = located.as_ref().map(|(block, _)| Arc::clone(&block.label));
        let hazard = |kind, earlier, bytes| Hazard {
            kind,
            operation: submission.operation_that(access.kind.touch()),
            earlier,
            memory: access.memory.name(label.as_deref()),
            bytes,
        };
        let Some((block, offset_bytes)) = located else {
            return vec![hazard(HazardKind::UseAfterFree, None, bounds(&access.footprint))];
        };
        let Some(footprint) = block.footprint_of(access, offset_bytes) else {
            return vec![hazard(HazardKind::OutOfRange, None, bounds(&access.footprint))];
        };
        let Some(footprint) = overlap::normalised(&footprint) else { return Vec::new() };
        if let Some(freed_by) = block.freed_by.clone() {
            let bytes = overlap::bounds(&footprint);
            return vec![hazard(HazardKind::UseAfterFree, Some(freed_by), bytes)];
        }
        let conflicts = block.conflicts(submission, access.kind, &footprint);
        let unordered = conflicts.into_iter().map(|(earlier, bytes)| {
            hazard(HazardKind::Unordered, Some(earlier), access.memory.relative(bytes))
        });
        let written = block.written.as_ref().filter(|_| access.kind.reads());
        let missing = written.and_then(|written| written.first_missing(&footprint));
        let unwritten = missing.map(|bytes| hazard(HazardKind::NeverWritten, None, bytes));
        unordered.chain(unwritten).collect()
    }

    /// An access of mapped memory as one of host memory. `None` for other memory, and for accesses
    /// that concern the block as such: frees, those after a free, and those out of range.
    fn on_host(&self, access: &MemoryAccess) -> Option<MemoryAccess> {
        let AccessedMemory::Device { device, address } = access.memory else { return None };
        let (key, block) = self.blocks.range(..=BlockKey { device, address }).next_back()?;
        let host_start = block.host_start.filter(|_| key.device == device)?;
        let offset_bytes = address.0 - key.address.0;
        block.footprint_of(access, offset_bytes).filter(|_| access.kind != AccessKind::Free)?;
        let (base, len_bytes) = (host_start + offset_bytes, block.len_bytes - offset_bytes);
        let memory = AccessedMemory::Host { base, len_bytes };
        Some(MemoryAccess { memory, ..access.clone() })
    }

    /// The block that contains the memory of an access, and the offset of that memory in it.
    fn block_of(&mut self, access: &MemoryAccess) -> Option<(&mut BlockHistory, u64)> {
        let (device, address) = match access.memory {
            AccessedMemory::Host { base, .. } => return Some((&mut self.host, base)),
            AccessedMemory::Device { device, address } => (device, address),
        };
        let (key, block) = self.blocks.range_mut(..=BlockKey { device, address }).next_back()?;
        if key.device != device {
            return None;
        }
        let offset_bytes = address.0 - key.address.0;
        (offset_bytes <= block.len_bytes).then_some((block, offset_bytes))
    }

    /// Adds what an access frees or writes, even if the operation will not run. Returns the bytes
    /// of the access, unless it is a free or out of range.
    fn change(
        &mut self,
        submission: &Submission<'_>,
        access: &MemoryAccess,
    ) -> Option<(&mut BlockHistory, Footprint)> {
        if let (AccessKind::Free, AccessedMemory::Device { device, address }) =
            (access.kind, access.memory)
        {
            self.add_free(submission, BlockKey { device, address });
            return None;
        }
        let (block, offset_bytes) = self.block_of(access)?;
        let footprint = overlap::normalised(&block.footprint_of(access, offset_bytes)?)?;
        match (&mut block.written, access.kind) {
            (Some(written), AccessKind::Write | AccessKind::ReadWrite) => {
                written.insert(&footprint);
            }
            (Some(written), AccessKind::Poison) => written.remove(&footprint),
            _ => {}
        }
        Some((block, footprint))
    }

    /// Marks a block as freed, and keeps its label until `FREED_MAX` later frees.
    fn add_free(&mut self, submission: &Submission<'_>, key: BlockKey) {
        let Some(block) = self.blocks.get_mut(&key) else { return };
        *block = BlockHistory::new(&block.label, block.len_bytes, None);
        block.freed_by = Some(submission.operation_that(Touch::Frees));
        self.freed.push_back(key);
        if self.freed.len() > FREED_MAX {
            self.freed.pop_front().and_then(|oldest| self.blocks.remove(&oldest));
        }
    }
}

impl Default for Histories {
    fn default() -> Self {
        let host = BlockHistory::new(&"host memory".into(), u64::MAX, None);
        Self { blocks: BTreeMap::new(), freed: VecDeque::new(), host }
    }
}

impl BlockHistory {
    fn new(label: &Arc<str>, len_bytes: u64, written: Option<ByteSet>) -> Self {
        let (label, pending) = (Arc::clone(label), Vec::new());
        Self { label, len_bytes, freed_by: None, pending, written, host_start: None }
    }

    /// Adds an access of an operation that will run.
    fn add_pending(&mut self, submission: &Submission<'_>, kind: AccessKind, footprint: Footprint) {
        self.pending.push(PendingAccess {
            stream: Arc::clone(submission.stream),
            position: submission.position,
            operation: submission.operation_that(kind.touch()),
            footprint,
            depends: Dependencies::from_slice(submission.depends),
        });
    }

    /// The footprint of an access relative to the start of the block, if it is in range.
    /// `offset_bytes` is where the memory of the access starts in the block.
    fn footprint_of(&self, access: &MemoryAccess, offset_bytes: u64) -> Option<Footprint> {
        let offset_bytes = offset_bytes.checked_add(access.footprint.offset_bytes)?;
        let footprint = Footprint { offset_bytes, ..access.footprint.clone() };
        (footprint.end_bytes()? <= self.len_bytes).then_some(footprint)
    }

    /// The pending accesses that conflict with an access and do not happen before it, with the
    /// first bytes that they share. Two reads do not conflict.
    fn conflicts(
        &mut self,
        submission: &Submission<'_>,
        kind: AccessKind,
        footprint: &Footprint,
    ) -> Vec<(HazardOperation, Range<u64>)> {
        self.pending.retain(|earlier| {
            !earlier.stream.has_run(earlier.position) && !has_failed_dependency(&earlier.depends)
        });
        let happens_before = |earlier: &PendingAccess| {
            let stream = earlier.stream.id();
            stream == submission.stream.id() || submission.clock.includes(stream, earlier.position)
        };
        let both_read = |earlier: &PendingAccess| {
            earlier.operation.touch == Touch::Reads && kind.touch() == Touch::Reads
        };
        let shared = |earlier: &PendingAccess| {
            let bytes = overlap::first_overlap(&earlier.footprint, footprint)?;
            Some((earlier.operation.clone(), bytes))
        };
        let earlier = self.pending.iter();
        earlier
            .filter(|earlier| !both_read(earlier) && !happens_before(earlier))
            .filter_map(shared)
            .collect()
    }
}

impl Submission<'_> {
    fn operation_that(&self, touch: Touch) -> HazardOperation {
        HazardOperation { touch, ..self.operation.clone() }
    }
}

/// Whether the operation will not run because work that it depends on failed. Such an operation is
/// not checked for conflicts, because the library may have reused its bytes already.
fn has_failed_dependency(depends: &[(StreamId, Position)]) -> bool {
    depends.iter().any(|(stream, position)| failure::at(*stream, *position).is_some())
}

/// The range from the first to the last byte, saturating at 64 bits.
fn bounds(footprint: &Footprint) -> Range<u64> {
    footprint.offset_bytes..footprint.end_bytes().unwrap_or(u64::MAX)
}
