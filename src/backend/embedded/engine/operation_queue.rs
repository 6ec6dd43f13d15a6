//! The operations that are queued on one stream. Launches are large and stored by value, so that
//! queueing one allocates nothing. They have a list of their own, so that the other operations take
//! little memory.

use std::collections::VecDeque;

use super::operation::{ControlOperation, Operation, QueuedOperation};
use crate::backend::{LaunchWork, Position, Work};

/// Queued operations, in order.
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
