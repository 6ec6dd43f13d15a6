//! Queued operations: work, copies between devices, and control operations; and the queue of a
//! stream.

use std::collections::VecDeque;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::chain::ChainRun;
use super::clock::Timestamp;
use super::description::{Description, WORK_COST};
use super::device_core::DeviceCore;
use super::execute;
use super::stream::StreamPoint;
use crate::race_check::MemoryAccess;
use crate::simulation::Link;
use resident_backend::panic_message::panic_message;
use resident_backend::sync;
use resident_backend::{
    Address, CopyWork, FailureKind, FailureRecord, LaunchWork, Memory, PageRange, Position,
    StreamId, Work,
};

/// One operation of a stream. Launches are stored by value, so that queueing one allocates nothing.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a launch is the frequent case, and is to be queued without a heap allocation"
)]
pub(crate) enum Operation {
    /// Work on memory of this device and the host.
    Work(Work),
    /// A copy from another device. It contains the other device's core rather than its handle: a
    /// queued handle would keep the simulation alive, and only the end of the simulation drops the
    /// queue.
    CopyBetween { copy: Box<CopyWork>, source: Arc<DeviceCore> },
    /// Replays of a chain. It takes a position for each of its steps, of which the last is the
    /// operation's.
    Chain(Box<ChainRun>),
    /// A control operation: it accesses no array contents.
    Control(ControlOperation),
}

/// Operations that access no array contents, never fail and run no user code. They are small, and
/// the submitting thread often runs them itself.
#[derive(Debug)]
pub(crate) enum ControlOperation {
    /// Returns memory to the pool.
    Free(Address),
    /// Returns the memory of pages to the system.
    Decommit(PageRange),
    /// Sets an event's time, if the event was recorded with timing.
    Record(Option<Timestamp>),
    /// Waits for another stream.
    Wait(StreamPoint),
}

/// An operation and its position.
#[derive(Debug)]
pub(crate) struct QueuedOperation {
    pub position: Position,
    /// The number of the call that queued the operation, if an injected late fault makes the
    /// operation fail.
    pub fault: Option<u64>,
    pub operation: Operation,
}

impl QueuedOperation {
    /// Runs work on `device`. The caller records a failure and drops the operation.
    pub(super) fn run_work(
        &self,
        device: &DeviceCore,
        stream: StreamId,
    ) -> Result<(), FailureRecord> {
        if let Operation::Chain(chain) = &self.operation {
            return chain.run(device, stream, self.position, self.fault);
        }
        let Some(description) = self.operation.description() else { return Ok(()) };
        description.check_runnable(self.fault)?;
        let outcome = match &self.operation {
            Operation::Work(Work::Launch(LaunchWork { code, grid, arguments, .. })) => {
                execute::launch(device, code, *grid, &arguments.words, &arguments.arrays)
            }
            Operation::Work(Work::Copy(work)) => execute::copy(device, device, work),
            Operation::CopyBetween { copy, source } => execute::copy(source, device, copy),
            Operation::Work(Work::Fill(work)) => execute::fill(device, work),
            Operation::Chain(_) | Operation::Control(_) => Ok(()),
        };
        outcome.map_err(|fault| description.failure(fault))
    }

    /// Drops an operation that has run, in its place: it is too large to be moved for this. The
    /// drop may run user code (the drop of values that a body captured). A panic in that code
    /// is a failure of the operation.
    pub(super) fn drop_caught(&mut self) -> Result<(), FailureRecord> {
        let description = self.operation.description();
        let (kind, site) =
            description.map_or((FailureKind::Copy, None), |it| (it.failure_kind, it.site));
        // Values that a body captured are user code's, and so are owners of memory.
        sync::assert_none_held();
        let nothing = Operation::Control(ControlOperation::Record(None));
        let drop_all = || sync::drop_with_deferred(|| self.operation = nothing);
        catch_unwind(AssertUnwindSafe(drop_all)).map_err(|payload| FailureRecord {
            kind,
            operation: "work that had run".to_owned(),
            site,
            cause: format!("dropping it panicked: {}", panic_message(payload)),
            inherited: false,
            left_out: None,
        })
    }
}

impl Operation {
    /// The time that the link needs for the operation, if it is a transfer and the device models a
    /// link. Between two devices the slower link determines the time.
    pub(super) fn link_time(&self, link: Option<Link>) -> Option<Duration> {
        match self {
            Self::Work(Work::Copy(copy)) if crosses_link(copy) => {
                link.map(|link| link.transfer_time(copy.len_bytes()))
            }
            Self::CopyBetween { copy, source } => {
                let links = link.into_iter().chain(source.link);
                links.map(|link| link.transfer_time(copy.len_bytes())).max()
            }
            _ => None,
        }
    }

    /// The operation's time on the modelled clock of a seeded stream.
    pub(super) fn modelled_time(&self, link: Option<Link>) -> Duration {
        match self {
            Self::Control(_) => Duration::ZERO,
            Self::Chain(chain) => chain.modelled_time(),
            _ => self.link_time(link).unwrap_or(WORK_COST),
        }
    }

    /// The operation's memory accesses on the device with number `device`, on which it is queued.
    /// Frees are not included, which the queue passes to the tracker itself, nor chains, whose
    /// steps it passes one by one.
    pub(crate) fn accesses(&self, device: usize) -> Vec<MemoryAccess> {
        match self {
            Self::Control(_) | Self::Chain(_) => Vec::new(),
            Self::CopyBetween { copy, source } => {
                MemoryAccess::of_copy(source.ordinal, device, copy)
            }
            Self::Work(work) => MemoryAccess::of_work(device, work),
        }
    }

    /// The operation's description in failures and hazards. Control operations have no description:
    /// they never fail.
    pub(crate) fn description(&self) -> Option<Description<'_>> {
        let (label, site, depends, failure_kind): (&dyn Display, _, _, _) = match self {
            Self::Work(Work::Copy(copy)) | Self::CopyBetween { copy, .. } => {
                (&copy.label.text, copy.label.site, &copy.depends, copy.loss)
            }
            Self::Work(Work::Fill(fill)) => {
                (&fill.label.text, fill.label.site, &fill.depends, fill.loss)
            }
            Self::Work(Work::Launch(launch)) => {
                (launch.code.name(), Some(launch.site), &launch.depends, FailureKind::Contents)
            }
            Self::Chain(chain) => return Some(chain.description()),
            Self::Control(_) => return None,
        };
        let is_kernel = matches!(self, Self::Work(Work::Launch(_)));
        Some(Description { label, is_kernel, site, depends, failure_kind })
    }
}

/// Whether an end of a copy (its source or destination) is host memory.
fn crosses_link(copy: &CopyWork) -> bool {
    matches!(copy.source, Memory::Host(_)) || matches!(copy.destination, Memory::Host(_))
}

/// Queued operations, in order. Launches are large and stored by value, so that queueing one
/// allocates nothing. They have a list of their own, so that the others take little memory.
#[derive(Debug, Default)]
pub(crate) struct OperationQueue {
    entries: VecDeque<Entry>,
    /// The launches among the entries, in order.
    launches: VecDeque<LaunchWork>,
}

#[derive(Debug)]
struct Entry {
    position: Position,
    fault: Option<u64>,
    kind: EntryKind,
}

#[derive(Debug)]
enum EntryKind {
    /// The next of the launches.
    Launch,
    Control(ControlOperation),
    Chain(Box<ChainRun>),
    /// A copy or a fill.
    Other(Box<Operation>),
}

impl OperationQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first position of the next operation; and the operation, if it is a control operation.
    pub(crate) fn front(&self) -> Option<(Position, Option<&ControlOperation>)> {
        let Entry { position, kind, .. } = self.entries.front()?;
        match kind {
            EntryKind::Control(control) => Some((*position, Some(control))),
            EntryKind::Chain(chain) => Some((Position(position.0 + 1 - chain.len()), None)),
            EntryKind::Launch | EntryKind::Other(_) => Some((*position, None)),
        }
    }

    /// Whether the next operation is a launch or a chain.
    pub(super) fn begins_with_launch(&self) -> bool {
        let is_launch =
            |entry: &Entry| matches!(entry.kind, EntryKind::Launch | EntryKind::Chain(_));
        self.entries.front().is_some_and(is_launch)
    }

    pub(super) fn push(&mut self, position: Position, fault: Option<u64>, operation: Operation) {
        let kind = match operation {
            Operation::Control(control) => EntryKind::Control(control),
            Operation::Work(Work::Launch(launch)) => {
                self.launches.push_back(launch);
                EntryKind::Launch
            }
            Operation::Chain(chain) => EntryKind::Chain(chain),
            other => EntryKind::Other(Box::new(other)),
        };
        self.entries.push_back(Entry { position, fault, kind });
    }

    /// As [`push`](Self::push), for a launch that `make` makes in its place.
    #[inline]
    pub(super) fn push_launch(&mut self, position: Position, make: impl FnOnce() -> LaunchWork) {
        self.launches.push_back(make());
        self.entries.push_back(Entry { position, fault: None, kind: EntryKind::Launch });
    }

    #[inline]
    pub(super) fn push_control(&mut self, position: Position, control: ControlOperation) {
        let kind = EntryKind::Control(control);
        self.entries.push_back(Entry { position, fault: None, kind });
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<QueuedOperation> {
        let Entry { position, fault, kind } = self.entries.pop_front()?;
        let operation = match kind {
            EntryKind::Launch => Operation::Work(Work::Launch(self.launches.pop_front()?)),
            EntryKind::Control(control) => Operation::Control(control),
            EntryKind::Chain(chain) => Operation::Chain(chain),
            EntryKind::Other(other) => *other,
        };
        Some(QueuedOperation { position, fault, operation })
    }
}
