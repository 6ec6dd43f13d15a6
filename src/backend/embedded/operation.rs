//! What stands in a lane's line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::device::DeviceCore;
use super::lane::Lane;
use crate::backend::{
    Address, BackendError, CopyWork, FailureKind, Label, Position, QueueId, Work,
};
use crate::call_site::CallSite;

/// One piece of the line. Launches stand in it by value, so that queueing one allocates nothing.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a launch is the frequent case, and is to be queued without a heap allocation"
)]
pub(super) enum Operation {
    /// Work of this device, and of the host.
    Work(Work),
    /// A copy from another device. It holds the other device's core rather than its handle: a
    /// handle in a line would keep alive what drops the line.
    Between { copy: Box<CopyWork>, source: Arc<DeviceCore> },
    /// What touches no contents.
    Upkeep(Upkeep),
}

/// Operations that touch no contents, never fail and run no user code. Kept apart from work since
/// they are small, and often done on the spot.
#[derive(Debug)]
pub(super) enum Upkeep {
    /// Gives memory back.
    Free(Address),
    /// Sets an event's time, if it has one.
    Record(Option<Stamp>),
    /// Waits for another lane.
    Wait(Point),
}

/// An operation with its place.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) position: Position,
    /// The number of the call that a late fault makes fail.
    pub(super) fault: Option<u64>,
    pub(super) operation: Operation,
}

/// A time in nanoseconds, 0 until it is set.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamp(Arc<AtomicU64>);

impl Stamp {
    /// Sets the time. Read by whoever saw the event's position completed, which is published after
    /// this.
    pub(super) fn set(&self, time_ns: u64) {
        self.0.store(time_ns, Ordering::Relaxed);
    }

    /// The time, or 0.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A position of a lane, to be waited for.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) lane: Arc<Lane>,
    pub(super) position: Position,
    /// When it was reached, in modelled time if the lane is seeded.
    pub(super) stamp: Option<Stamp>,
}

impl Point {
    /// Whether the lane is past it.
    pub(super) fn is_complete(&self) -> bool {
        self.lane.progress().is_complete(self.position)
    }

    /// Has it completed, whatever that takes; for threads that run work, and such as may wait.
    pub(super) fn wait(&self) -> Result<(), BackendError> {
        self.lane.wait_until(self.position)
    }
}

impl Operation {
    /// What failures call it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Work(Work::Launch(launch)) => format!("kernel \"{}\"", launch.code.name()),
            _ => self
                .label()
                .map_or_else(|| "upkeep".to_owned(), |label| label.text.as_ref().to_owned()),
        }
    }

    /// The line that queued it.
    pub(super) fn site(&self) -> Option<CallSite> {
        match self {
            Self::Work(Work::Launch(launch)) => Some(launch.site),
            _ => self.label().and_then(|label| label.site),
        }
    }

    /// The label that came with it; launches have a body's name instead.
    pub(super) fn label(&self) -> Option<&Label> {
        match self {
            Self::Work(Work::Copy(copy)) | Self::Between { copy, .. } => Some(&copy.label),
            Self::Work(Work::Fill(fill)) => Some(&fill.label),
            Self::Work(Work::Launch(_)) | Self::Upkeep(_) => None,
        }
    }

    /// The work whose failure keeps it from running.
    pub(super) fn depends(&self) -> &[(QueueId, Position)] {
        match self {
            Self::Work(Work::Copy(copy)) | Self::Between { copy, .. } => &copy.depends,
            Self::Work(Work::Fill(fill)) => &fill.depends,
            Self::Work(Work::Launch(launch)) => &launch.depends,
            Self::Upkeep(_) => &[],
        }
    }

    /// What its failure means.
    pub(super) fn failure_kind(&self) -> FailureKind {
        match self {
            Self::Work(Work::Launch(_)) => FailureKind::Contents,
            Self::Work(Work::Copy(copy)) | Self::Between { copy, .. } => copy.loss,
            Self::Work(Work::Fill(fill)) => fill.loss,
            Self::Upkeep(_) => FailureKind::Copy,
        }
    }
}
