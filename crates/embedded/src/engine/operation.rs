//! Queued operations: work, copies between devices, and control operations; and the queue of a
//! stream.

use std::collections::VecDeque;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::clock::Timestamp;
use super::device_core::DeviceCore;
use super::execute::{self, Fault};
use super::stream::StreamPoint;
use crate::race_check::MemoryAccess;
use crate::simulation::Link;
use resident_backend::call_site::CallSite;
use resident_backend::panic_message::panic_message;
use resident_backend::sync;
use resident_backend::{
    Address, CopyWork, FailureKind, FailureRecord, KernelCode, LaunchWork, Memory, PageRange,
    Position, StreamId, Work, failure,
};

/// The modelled time of a launch, a fill or a copy inside one device, regardless of its size.
const WORK_COST: Duration = Duration::from_micros(1);

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
    pub(super) fn run_work(&self, device: &DeviceCore) -> Result<(), FailureRecord> {
        let Some(description) = self.operation.description() else { return Ok(()) };
        description.check_runnable(self.fault)?;
        let outcome = match &self.operation {
            Operation::Work(Work::Launch(LaunchWork { code, grid, arguments, .. })) => {
                execute::launch(device, code, *grid, &arguments.words, &arguments.arrays)
            }
            Operation::Work(Work::Copy(work)) => execute::copy(device, device, work),
            Operation::CopyBetween { copy, source } => execute::copy(source, device, copy),
            Operation::Work(Work::Fill(work)) => execute::fill(device, work),
            Operation::Control(_) => Ok(()),
        };
        outcome.map_err(|fault| description.failure(fault))
    }

    /// Drops an operation that has run. The drop may run user code (the drop of values that a body
    /// captured). A panic in that code is a failure of the operation.
    pub(super) fn drop_caught(self) -> Result<(), FailureRecord> {
        let description = self.operation.description();
        let (kind, site) =
            description.map_or((FailureKind::Copy, None), |it| (it.failure_kind, it.site));
        // Values that a body captured are user code's, and so are owners of memory.
        sync::assert_none_held();
        let drop_all = || sync::drop_with_deferred(self);
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
            _ => self.link_time(link).unwrap_or(WORK_COST),
        }
    }

    /// The operation's memory accesses on the device with number `device`, on which it is queued.
    /// Frees are not included: the queue passes them to the tracker itself.
    pub(crate) fn accesses(&self, device: usize) -> Vec<MemoryAccess> {
        match self {
            Self::Control(_) => Vec::new(),
            Self::CopyBetween { copy, source } => {
                MemoryAccess::of_copy(source.ordinal, device, copy)
            }
            Self::Work(Work::Copy(copy)) => MemoryAccess::of_copy(device, device, copy),
            Self::Work(Work::Fill(fill)) => MemoryAccess::of_fill(device, fill),
            Self::Work(Work::Launch(launch)) => MemoryAccess::of_launch(device, launch),
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
            Self::Control(_) => return None,
        };
        let is_kernel = matches!(self, Self::Work(Work::Launch(_)));
        Some(Description { label, is_kernel, site, depends, failure_kind })
    }
}

/// The description of an operation in failures and hazards.
pub(crate) struct Description<'a> {
    label: &'a dyn Display,
    is_kernel: bool,
    /// The source line that queued the operation.
    pub site: Option<CallSite>,
    /// The work that this operation depends on. If any of it failed, the operation does not run.
    pub depends: &'a [(StreamId, Position)],
    failure_kind: FailureKind,
}

impl<'a> Description<'a> {
    pub(super) fn of_launch(
        code: &'a KernelCode,
        site: CallSite,
        depends: &'a [(StreamId, Position)],
    ) -> Self {
        let failure_kind = FailureKind::Contents;
        Self { label: code.name(), is_kernel: true, site: Some(site), depends, failure_kind }
    }
}

impl Description<'_> {
    /// The operation's name: `kernel "blur"`, `upload of "photo"`.
    pub(crate) fn name(&self) -> String {
        if self.is_kernel { format!("kernel \"{}\"", self.label) } else { self.label.to_string() }
    }

    pub(super) fn failure(&self, fault: Fault) -> FailureRecord {
        let Fault { cause, left_out } = fault;
        FailureRecord {
            kind: self.failure_kind,
            operation: self.name(),
            site: self.site,
            cause,
            inherited: false,
            left_out,
        }
    }

    /// Returns a failure if a dependency of this operation failed, or if a test injected a failure.
    pub(super) fn check_runnable(&self, fault: Option<u64>) -> Result<(), FailureRecord> {
        if failure::epoch() != 0 {
            let mut roots = self.depends.iter();
            if let Some(root) = roots.find_map(|(stream, position)| failure::at(*stream, *position))
            {
                let kind = root.kind.max(self.failure_kind);
                return Err(FailureRecord { kind, inherited: true, ..root.as_ref().clone() });
            }
        }
        let cause = |call| format!("a fault injected by the emulation, at call {call}");
        fault.map_or(Ok(()), |call| Err(self.failure(cause(call).into())))
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
    /// A copy or a fill.
    Other(Box<Operation>),
}

impl OperationQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The position of the next operation; and the operation, if it is a control operation.
    pub(crate) fn front(&self) -> Option<(Position, Option<&ControlOperation>)> {
        let Entry { position, kind, .. } = self.entries.front()?;
        let control = match kind {
            EntryKind::Control(control) => Some(control),
            EntryKind::Launch | EntryKind::Other(_) => None,
        };
        Some((*position, control))
    }

    /// Whether the next operation is a launch.
    pub(super) fn begins_with_launch(&self) -> bool {
        self.entries.front().is_some_and(|entry| matches!(entry.kind, EntryKind::Launch))
    }

    pub(super) fn push(&mut self, position: Position, fault: Option<u64>, operation: Operation) {
        let kind = match operation {
            Operation::Control(control) => EntryKind::Control(control),
            Operation::Work(Work::Launch(launch)) => {
                self.launches.push_back(launch);
                EntryKind::Launch
            }
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

    pub(crate) fn pop(&mut self) -> Option<QueuedOperation> {
        let Entry { position, fault, kind } = self.entries.pop_front()?;
        let operation = match kind {
            EntryKind::Launch => Operation::Work(Work::Launch(self.launches.pop_front()?)),
            EntryKind::Control(control) => Operation::Control(control),
            EntryKind::Other(other) => *other,
        };
        Some(QueuedOperation { position, fault, operation })
    }
}
