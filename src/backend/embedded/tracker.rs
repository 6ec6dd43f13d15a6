//! The check of ordering: who uses which bytes, and what comes before what.
//!
//! Each operation is looked at when it is submitted, under its lane's lock. Before it come all
//! earlier operations of its queue, whatever its queue waited for (vector clocks, `order`), and
//! whatever has run by then. So an operation that has run comes before everything submitted later
//! and is forgotten: histories hold pending work alone.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::hazard::{Hazard, HazardKind, HazardOperation, Touch};
use super::order::Order;
use super::overlap;
use super::progress::Progress;
use super::usage::{Effect, Place, Usage};
use super::written::ByteSet;
use crate::backend::{Address, Dependencies, Footprint, Position, QueueId, failure};

/// Freed blocks remembered, so that a use after the free is told by the block's name.
const FREED_MAX: usize = 1 << 10;

/// The histories of all devices that may share work: those of one world, or all emulated devices
/// without a seed.
#[derive(Debug, Default)]
pub(super) struct Tracker(Mutex<Histories>);

#[derive(Debug, Default)]
struct Histories {
    orders: HashMap<QueueId, Order>,
    blocks: BTreeMap<(usize, u64), BlockHistory>,
    freed: VecDeque<(usize, u64)>,
    host: Vec<Past>,
}

/// What is known of one block.
#[derive(Debug)]
struct BlockHistory {
    label: Arc<str>,
    len_bytes: u64,
    freed_by: Option<HazardOperation>,
    past: Vec<Past>,
    written: ByteSet,
}

/// One use by pending work.
#[derive(Debug)]
struct Past {
    queue: Arc<Progress>,
    position: Position,
    operation: HazardOperation,
    footprint: Footprint,
    depends: Dependencies,
}

/// Who submits: the queue and the operation, whose touch differs from use to use.
#[derive(Debug)]
pub(super) struct Submission<'a> {
    pub(super) queue: &'a Arc<Progress>,
    pub(super) position: Position,
    pub(super) operation: HazardOperation,
    pub(super) depends: &'a [(QueueId, Position)],
}

impl Tracker {
    /// The tracker of all emulated devices without a seed.
    pub(super) fn of_process() -> Arc<Self> {
        static PROCESS: OnceLock<Arc<Tracker>> = OnceLock::new();
        Arc::clone(PROCESS.get_or_init(Arc::default))
    }

    /// A fresh block: nothing of it is written.
    pub(super) fn allocated(
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
            past: Vec::new(),
            written: ByteSet::default(),
        };
        self.lock().blocks.insert((device, address.0), block);
    }

    /// What comes before everything submitted to `queue` after `position`.
    pub(super) fn recorded(&self, queue: &Arc<Progress>, position: Position) -> Order {
        let mut order = self.lock().orders.get(&queue.id()).cloned().unwrap_or_default();
        order.add(queue, position);
        order
    }

    /// From now on work of `queue` comes after `order`.
    pub(super) fn waited(&self, queue: &Arc<Progress>, order: &Order) {
        self.lock().orders.entry(queue.id()).or_default().join(order);
    }

    /// No more work comes to `queue`.
    pub(super) fn forget(&self, queue: QueueId) {
        self.lock().orders.remove(&queue);
    }

    /// Looks at an operation: what is wrong with its uses, which are remembered.
    pub(super) fn submitted(&self, submission: &Submission<'_>, usages: &[Usage]) -> Vec<Hazard> {
        let mut histories = self.lock();
        let Histories { orders, blocks, host, .. } = &mut *histories;
        let order = orders.get(&submission.queue.id());
        let mut hazards = Vec::new();
        // All uses are compared with the past before any joins it: an operation is in no conflict
        // with itself.
        let is_doomed = is_doomed(submission.depends);
        for usage in usages.iter().filter(|_| !is_doomed) {
            hazards.extend(check(submission, order, blocks, host, usage));
        }
        for usage in usages {
            remember(submission, blocks, host, usage);
        }
        for usage in usages.iter().filter(|usage| usage.effect == Effect::Free) {
            histories.remember_freed(submission, usage);
        }
        hazards
    }

    fn lock(&self) -> MutexGuard<'_, Histories> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Blocks = BTreeMap<(usize, u64), BlockHistory>;

/// What is wrong with one use.
fn check(
    submission: &Submission<'_>,
    order: Option<&Order>,
    blocks: &mut Blocks,
    host: &mut Vec<Past>,
    usage: &Usage,
) -> Vec<Hazard> {
    let report = |kind, earlier: Option<HazardOperation>, memory: String, bytes| {
        let operation =
            HazardOperation { touch: usage.effect.touch(), ..submission.operation.clone() };
        Hazard { kind, operation, earlier, memory, bytes }
    };
    match usage.place {
        Place::Host { base, len_bytes } => {
            let Some(footprint) = absolute(usage, base) else { return Vec::new() };
            let conflicts = conflicts(submission, order, host, usage.effect, &footprint);
            let relative = |bytes: Range<u64>| {
                bytes.start.saturating_sub(base)..bytes.end.saturating_sub(base)
            };
            let memory = || format!("host memory of {len_bytes} bytes");
            conflicts
                .into_iter()
                .map(|(earlier, bytes)| {
                    report(HazardKind::Unordered, Some(earlier), memory(), relative(bytes))
                })
                .collect()
        }
        Place::Device { device, address } => {
            let Some((start, block)) = around(blocks, device, address) else {
                let memory = format!("unknown memory at {:#x} of cpu:{device}", address.0);
                return vec![report(
                    HazardKind::UseAfterFree,
                    None,
                    memory,
                    bounds(&usage.footprint),
                )];
            };
            let memory = format!("{} on cpu:{device}", block.label);
            let Some(footprint) = in_block(usage, address.0 - start, block.len_bytes) else {
                return vec![report(
                    HazardKind::OutOfRange,
                    None,
                    memory,
                    bounds(&usage.footprint),
                )];
            };
            let Some(footprint) = overlap::normalised(&footprint) else { return Vec::new() };
            if let Some(freed_by) = &block.freed_by {
                return vec![report(
                    HazardKind::UseAfterFree,
                    Some(freed_by.clone()),
                    memory,
                    overlap::bounds(&footprint),
                )];
            }
            let missing =
                usage.effect.reads().then(|| block.written.first_missing(&footprint)).flatten();
            let conflicts = conflicts(submission, order, &mut block.past, usage.effect, &footprint);
            let unordered = conflicts.into_iter().map(|(earlier, bytes)| {
                report(HazardKind::Unordered, Some(earlier), memory.clone(), bytes)
            });
            let unwritten =
                missing.map(|bytes| report(HazardKind::NeverWritten, None, memory.clone(), bytes));
            unordered.chain(unwritten).collect()
        }
    }
}

/// Pending uses of the same bytes, one of the two not only reading, that nothing orders before the
/// submission.
fn conflicts(
    submission: &Submission<'_>,
    order: Option<&Order>,
    past: &mut Vec<Past>,
    effect: Effect,
    footprint: &Footprint,
) -> Vec<(HazardOperation, Range<u64>)> {
    past.retain(|past| !past.queue.has_run(past.position) && !is_doomed(&past.depends));
    let is_before = |past: &Past| {
        past.queue.id() == submission.queue.id()
            || order.is_some_and(|order| order.includes(past.queue.id(), past.position))
    };
    let only_read =
        |past: &Past| past.operation.touch == Touch::Reads && effect.touch() == Touch::Reads;
    let unordered = past.iter().filter(|past| !only_read(past) && !is_before(past));
    unordered
        .filter_map(|past| {
            Some((past.operation.clone(), overlap::first_overlap(&past.footprint, footprint)?))
        })
        .collect()
}

/// Work that will not run, because what it depends on has failed, is nobody's rival: the layers
/// above may have handed its bytes on by now.
fn is_doomed(depends: &[(QueueId, Position)]) -> bool {
    depends.iter().any(|(queue, position)| failure::at(*queue, *position).is_some())
}

/// Enters one use, if it is in range.
fn remember(submission: &Submission<'_>, blocks: &mut Blocks, host: &mut Vec<Past>, usage: &Usage) {
    let past = |footprint| Past {
        queue: Arc::clone(submission.queue),
        position: submission.position,
        operation: HazardOperation { touch: usage.effect.touch(), ..submission.operation.clone() },
        footprint,
        depends: Dependencies::from_slice(submission.depends),
    };
    match usage.place {
        Place::Host { .. } if is_doomed(submission.depends) => {}
        Place::Host { base, .. } => host.extend(absolute(usage, base).map(past)),
        Place::Device { device, address } => {
            let Some((start, block)) = around(blocks, device, address) else { return };
            let footprint = in_block(usage, address.0 - start, block.len_bytes)
                .as_ref()
                .and_then(overlap::normalised);
            let Some(footprint) = footprint else { return };
            match usage.effect {
                Effect::Write | Effect::ReadWrite => block.written.insert(&footprint),
                Effect::Poison => block.written.remove(&footprint),
                Effect::Read | Effect::Free => {}
            }
            if !is_doomed(submission.depends) {
                block.past.push(past(footprint));
            }
        }
    }
}

impl Histories {
    /// Keeps a freed block's name for a while.
    fn remember_freed(&mut self, submission: &Submission<'_>, usage: &Usage) {
        let Place::Device { device, address } = usage.place else { return };
        let Some(block) = self.blocks.get_mut(&(device, address.0)) else { return };
        block.freed_by =
            Some(HazardOperation { touch: Touch::Frees, ..submission.operation.clone() });
        block.written = ByteSet::default();
        block.past = Vec::new();
        self.freed.push_back((device, address.0));
        if self.freed.len() > FREED_MAX {
            self.freed.pop_front().and_then(|oldest| self.blocks.remove(&oldest));
        }
    }
}

/// The block around an address, and where it starts.
fn around(
    blocks: &mut Blocks,
    device: usize,
    address: Address,
) -> Option<(u64, &mut BlockHistory)> {
    let (key, block) = blocks.range_mut(..=(device, address.0)).next_back()?;
    (key.0 == device && address.0 - key.1 <= block.len_bytes).then_some((key.1, block))
}

/// A use of host memory by absolute address, so that overlapping views of one allocation meet.
fn absolute(usage: &Usage, base: u64) -> Option<Footprint> {
    let offset_bytes = base.checked_add(usage.footprint.offset_bytes)?;
    let footprint = Footprint { offset_bytes, ..usage.footprint.clone() };
    footprint.end_bytes()?;
    overlap::normalised(&footprint)
}

/// A use relative to its block's start, if it stays inside.
fn in_block(usage: &Usage, start_bytes: u64, len_bytes: u64) -> Option<Footprint> {
    let offset_bytes = start_bytes.checked_add(usage.footprint.offset_bytes)?;
    let footprint = Footprint { offset_bytes, ..usage.footprint.clone() };
    (footprint.end_bytes()? <= len_bytes).then_some(footprint)
}

/// From first to last byte, as far as 64 bits tell.
fn bounds(footprint: &Footprint) -> Range<u64> {
    footprint.offset_bytes..footprint.end_bytes().unwrap_or(u64::MAX)
}
