//! The in-flight list of a stream: operations on whose completion the host must act, in the order
//! of their positions. It contains only data and makes no driver call.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::copy::from_staging::PendingUnpack;
use crate::graph::Executable;
use crate::memory::external::ExternalAllocation;
use resident_backend::StagedBytes;
use resident_backend::call_site::CallSite;
use resident_backend::{
    Address, Dependencies, FailureKind, FailureRecord, HostMemory, Label, LabelText, Position,
    StreamId,
};

/// When this many operations have been added since any were removed, the next launch reaps
/// (completes) the finished ones.
const ADDED_PER_REAP: usize = 64;

/// The number of operations whose names are kept for the report of a device's loss.
const NAMES_KEPT: usize = 64;

/// One operation in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) position: Position,
    /// Work from which this operation may have read: if it failed, this operation failed too.
    pub(super) depends: Dependencies,
    pub(super) action: CompletionAction,
    pub(super) loss: FailureKind,
}

/// What the host does once the device has completed an operation.
#[derive(Debug)]
pub(super) enum CompletionAction {
    Nothing,
    /// Release host memory that the device used.
    Release {
        memory: SmallVec<[Arc<dyn HostMemory>; 2]>,
    },
    /// Return a block of staging memory, by dropping it.
    ReturnBlock(StagedBytes),
    /// Copy a download from staging memory to its destination.
    Unpack(PendingUnpack),
    /// Free device memory, on devices without pools.
    Free(Address),
    /// Unmap the memory of pages that were decommitted at this position, and free the addresses of
    /// their reservation, if it was freed there.
    Unmap {
        reservation: Address,
        at: (StreamId, Position),
    },
    /// Complete the work of another stream, for which this stream waited, up to a position. The
    /// device runs the work of the two streams in this order, and the host must run their
    /// completion actions in the same order.
    CompleteFirst {
        stream: StreamId,
        position: Position,
    },
    /// Drop external memory whose free cannot be queued.
    DropExternal {
        _external: ExternalAllocation,
    },
    /// Destroy a graph of which launches may be in flight.
    DropGraph {
        _graph: Arc<Executable>,
    },
}

impl CompletionAction {
    /// Whether a stream that waits for the operation by an event must complete this action first:
    /// because it writes host memory, or has a handle of host memory that a caller may take back.
    fn matters_to_waiters(&self) -> bool {
        match self {
            Self::Nothing
            | Self::Free(_)
            | Self::Unmap { .. }
            | Self::ReturnBlock(_)
            | Self::DropExternal { .. }
            | Self::DropGraph { .. } => false,
            Self::Release { memory } => memory.iter().any(|host| !host.is_staging()),
            Self::Unpack(_) | Self::CompleteFirst { .. } => true,
        }
    }

    fn writes_host_memory(&self) -> bool {
        matches!(self, Self::Unpack(_) | Self::CompleteFirst { .. })
    }

    /// Drops the action without running it, because the device died. Memory that the device may
    /// still write is never freed.
    pub(super) fn abandon(self) {
        match self {
            Self::Release { memory } => {
                memory.iter().for_each(|host| host.mark_leaked());
                std::mem::forget(memory);
            }
            Self::Unpack(PendingUnpack { staged, .. }) => std::mem::forget(staged),
            Self::ReturnBlock(block) => std::mem::forget(block),
            dropped @ (Self::DropExternal { .. } | Self::DropGraph { .. }) => {
                std::mem::forget(dropped);
            }
            Self::Nothing | Self::Free(_) | Self::Unmap { .. } | Self::CompleteFirst { .. } => {}
        }
    }
}

/// An operation's name in reports.
#[derive(Clone, Debug)]
pub(super) struct OperationName {
    pub(super) is_kernel: bool,
    pub(super) text: LabelText,
    pub(super) site: Option<CallSite>,
}

impl OperationName {
    pub(super) fn of_label(label: &Label) -> Self {
        Self { is_kernel: false, text: label.text.clone(), site: label.site }
    }

    fn describe(&self) -> String {
        if self.is_kernel { format!("kernel \"{}\"", self.text) } else { self.text.to_string() }
    }
}

/// Operations of one name that can fail, usually one. Between `first` and `position` there are no
/// others, but unnamed operations that cannot fail: events, waits and frees.
#[derive(Debug)]
struct NamedOperation {
    first: Position,
    /// Of the newest name, the position of its first operation: `last_named` is that of its last.
    position: Position,
    name: Named,
}

#[derive(Debug)]
enum Named {
    All(OperationName),
    /// The steps of a chain, of which the last has the position of the entry.
    Steps(Arc<[OperationName]>),
}

impl NamedOperation {
    /// The name of the first operation after `completed`.
    fn name_after(&self, completed: Position) -> Option<&OperationName> {
        match &self.name {
            Named::All(name) => Some(name),
            Named::Steps(steps) => {
                let left = self.position.0.saturating_sub(completed.0) as usize;
                steps.get(steps.len().saturating_sub(left))
            }
        }
    }
}

/// The names of the last operations, the oldest first.
#[derive(Debug, Default)]
struct OperationNames {
    /// A ring once it is full.
    ring: Vec<NamedOperation>,
    /// The index of the oldest name, once the ring is full.
    oldest: usize,
    /// The index of the newest name.
    newest: usize,
    /// The newest name, if it is that of a launch: the addresses of the kernel's name, which the
    /// ring keeps alive, and of the call site.
    newest_launch: Option<(usize, usize)>,
}

impl OperationNames {
    /// Whether the newest name is that of this launch.
    #[inline]
    fn ends_with(&self, kernel: &Arc<str>, site: CallSite) -> bool {
        self.newest_launch == Some(launch_name(kernel, site))
    }

    /// Stores the position of the last operation of the newest name, before another name is added.
    fn end_newest(&mut self, position: Position) {
        if let Some(newest) = self.ring.get_mut(self.newest) {
            newest.position = position;
        }
    }

    /// Adds a name. If there is no room, removes the oldest.
    fn push(&mut self, named: NamedOperation) {
        self.newest_launch = None;
        if self.ring.len() < NAMES_KEPT {
            // All at once: other threads add names at any time, and growth would allocate then.
            self.ring.reserve_exact(NAMES_KEPT - self.ring.len());
            self.newest = self.ring.len();
            self.ring.push(named);
        } else {
            self.newest = self.oldest;
            self.ring[self.oldest] = named;
            self.oldest = (self.oldest + 1) % NAMES_KEPT;
        }
    }

    /// Adds a kernel's name, as [`push`](Self::push). Programs repeat kernels, so that the name
    /// that is removed is often the same, and then its text is used again.
    #[inline(never)]
    fn push_kernel(
        &mut self,
        first: Position,
        position: Position,
        name: &Arc<str>,
        site: CallSite,
    ) {
        let is_full = self.ring.len() == NAMES_KEPT;
        match self.ring.get_mut(self.oldest) {
            Some(NamedOperation { first: known_first, position: known, name: Named::All(all) })
                if is_full && all.text.is(name) =>
            {
                (*known_first, *known) = (first, position);
                (all.is_kernel, all.site) = (true, Some(site));
                self.newest = self.oldest;
                self.oldest = (self.oldest + 1) % NAMES_KEPT;
            }
            _ => {
                let text = LabelText::Text(Arc::clone(name));
                let name = OperationName { is_kernel: true, text, site: Some(site) };
                self.push(NamedOperation { first, position, name: Named::All(name) });
            }
        }
        self.newest_launch = Some(launch_name(name, site));
    }

    fn iter(&self) -> impl Iterator<Item = &NamedOperation> {
        let (newer, older) = self.ring.split_at(self.oldest);
        older.iter().chain(newer)
    }
}

/// What identifies the name of a launch.
#[inline]
fn launch_name(kernel: &Arc<str>, site: CallSite) -> (usize, usize) {
    (kernel.as_ptr().addr(), std::ptr::from_ref(site).addr())
}

/// The operations of one stream that are in flight, and the names of the last operations.
#[derive(Debug, Default)]
pub(super) struct InFlightList {
    operations: VecDeque<InFlight>,
    /// The positions of those whose action a waiting stream must complete first. A stream that
    /// waits looks only at the first.
    mattering: VecDeque<Position>,
    /// The number of those that write host memory.
    host_writers: usize,
    /// The number of operations added since any were removed, or since a reap was due.
    added: usize,
    names: OperationNames,
    last_named: Position,
    completing: Completing,
    /// Memory for the operations that are being completed.
    spare: Vec<InFlight>,
}

/// Data about operations that were removed from the list, but whose actions are still running.
#[derive(Clone, Copy, Debug, Default)]
struct Completing {
    /// The first of these operations whose action a waiting stream must complete first.
    matters_from: Option<Position>,
    writes_host_memory: bool,
}

impl InFlightList {
    /// Stores an operation's name. If the store is full, removes the oldest name.
    pub(super) fn record_name(&mut self, position: Position, name: OperationName) {
        self.record(position, Named::All(name));
    }

    /// Stores the names of a chain's steps, of which the last has this position.
    pub(super) fn record_steps(&mut self, last: Position, steps: &Arc<[OperationName]>) {
        self.record(last, Named::Steps(Arc::clone(steps)));
    }

    fn record(&mut self, position: Position, name: Named) {
        let first = Position(self.last_named.0 + 1);
        self.names.end_newest(self.last_named);
        self.names.push(NamedOperation { first, position, name });
        self.last_named = position;
    }

    /// Stores the name of a launch, as [`record_name`](Self::record_name). A launch that repeats
    /// the one before it has the same name, which is then extended.
    #[inline]
    pub(super) fn record_kernel(&mut self, position: Position, kernel: &Arc<str>, site: CallSite) {
        let last = std::mem::replace(&mut self.last_named, position);
        if !self.names.ends_with(kernel, site) {
            self.names.end_newest(last);
            self.names.push_kernel(Position(last.0 + 1), position, kernel, site);
        }
    }

    /// Adds an operation if it has a completion action or may fail. Returns whether it did.
    pub(super) fn push(&mut self, operation: InFlight) -> bool {
        let is_needed =
            !operation.depends.is_empty() || !matches!(operation.action, CompletionAction::Nothing);
        if is_needed {
            if operation.action.matters_to_waiters() {
                self.mattering.push_back(operation.position);
            }
            self.host_writers += usize::from(operation.action.writes_host_memory());
            self.operations.push_back(operation);
            self.added += 1;
        }
        is_needed
    }

    /// Counts a wait that needs no completion. Returns whether it is time to complete operations.
    pub(super) fn count_wait(&mut self) -> bool {
        self.added += 1;
        self.is_reap_due()
    }

    /// Whether it is time to complete finished operations. Then it is not again until as many have
    /// been added.
    pub(super) fn is_reap_due(&mut self) -> bool {
        let is_due = self.added >= ADDED_PER_REAP;
        if is_due {
            self.added = 0;
        }
        is_due
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether there is no operation to complete. Then waits are counted anew.
    pub(super) fn complete_if_empty(&mut self) -> bool {
        if self.is_empty() {
            self.added = 0;
        }
        self.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    /// The position of the oldest operation.
    pub(super) fn front(&self) -> Option<Position> {
        self.operations.front().map(|operation| operation.position)
    }

    fn upto(&self, upto: Position) -> impl Iterator<Item = &InFlight> {
        self.operations.iter().take_while(move |operation| operation.position <= upto)
    }

    /// Whether an action up to `upto` remains that a waiting stream must complete first.
    pub(super) fn matters_to_waiters(&self, upto: Position) -> bool {
        self.completing.matters_from.is_some_and(|from| from <= upto)
            || self.mattering.front().is_some_and(|first| *first <= upto)
    }

    /// Whether a download must still be unpacked to its destination.
    pub(super) fn writes_host_memory(&self) -> bool {
        self.completing.writes_host_memory || self.host_writers > 0
    }

    /// Whether the operation at `position` may still fail because of other work.
    pub(super) fn has_dependencies(&self, position: Position) -> bool {
        self.operations
            .binary_search_by_key(&position, |operation| operation.position)
            .is_ok_and(|index| !self.operations[index].depends.is_empty())
    }

    /// The first operation after `after` and up to `upto` that has prerequisites which are not
    /// known to be complete, and these: of its dependencies, and of the position that it must
    /// complete first.
    pub(super) fn prerequisites_after(
        &self,
        after: Position,
        upto: Position,
        is_complete: impl Fn(StreamId, Position) -> bool,
    ) -> Option<(Position, Dependencies)> {
        let start = self.operations.partition_point(|operation| operation.position <= after);
        let mut operations =
            self.operations.range(start..).take_while(|operation| operation.position <= upto);
        operations.find_map(|operation| {
            let first = match operation.action {
                CompletionAction::CompleteFirst { stream, position } => Some((stream, position)),
                _ => None,
            };
            let all = operation.depends.iter().copied().chain(first);
            let prerequisites: Dependencies =
                all.filter(|(it, at)| !is_complete(*it, *at)).collect();
            (!prerequisites.is_empty()).then_some((operation.position, prerequisites))
        })
    }

    /// All operations up to `upto` that depend on other work, with what is lost if they fail.
    pub(super) fn dependents(
        &self,
        upto: Position,
    ) -> SmallVec<[(Position, Dependencies, FailureKind); 1]> {
        self.upto(upto)
            .filter(|operation| !operation.depends.is_empty())
            .map(|operation| (operation.position, operation.depends.clone(), operation.loss))
            .collect()
    }

    /// Removes the operations up to `upto`, for the caller to run their actions. Until the caller
    /// calls [`end_completion`](Self::end_completion), waiting streams still treat these operations
    /// as in flight.
    pub(super) fn begin_completion(&mut self, upto: Position) -> Vec<InFlight> {
        let mut completing = std::mem::take(&mut self.spare);
        let matters_from = self.mattering.front().copied().filter(|first| *first <= upto);
        let writers_before = self.host_writers;
        completing.extend(self.remove_upto(upto));
        let writes_host_memory = self.host_writers < writers_before;
        self.completing = Completing { matters_from, writes_host_memory };
        completing
    }

    /// Called after the actions of the removed operations have run. Keeps the list's memory.
    pub(super) fn end_completion(&mut self, completed: Vec<InFlight>) {
        self.completing = Completing::default();
        self.spare = completed;
    }

    /// Removes and returns the operations up to `upto`.
    pub(super) fn retire_upto(&mut self, upto: Position) -> SmallVec<[InFlight; 4]> {
        self.remove_upto(upto).collect()
    }

    fn remove_upto(&mut self, upto: Position) -> impl Iterator<Item = InFlight> + '_ {
        let mattering = self.mattering.partition_point(|position| *position <= upto);
        self.mattering.drain(..mattering);
        let count = self.operations.partition_point(|operation| operation.position <= upto);
        let writers = self
            .operations
            .range(..count)
            .filter(|operation| operation.action.writes_host_memory());
        self.host_writers -= writers.count();
        self.added = 0;
        self.operations.drain(..count)
    }

    /// The failure of all work after `completed` on a dead device. The failure names the first
    /// operation that is not known to have completed.
    pub(super) fn device_loss_record(&self, completed: Position, cause: String) -> FailureRecord {
        let newest = self.names.ring.get(self.names.newest);
        let is_newest = |named: &NamedOperation| newest.is_some_and(|it| std::ptr::eq(it, named));
        let last = |named: &NamedOperation| {
            if is_newest(named) { self.last_named } else { named.position }
        };
        let first = self.names.iter().find(|named| last(named) > completed);
        let first = first.and_then(|named| {
            Some((named.first.0 <= completed.0 + 1, named.name_after(completed)?))
        });
        let (operation, site) = match first {
            Some((is_exact, name)) if is_exact => (name.describe(), name.site),
            Some((_, name)) => {
                (format!("{} or work queued shortly before it", name.describe()), name.site)
            }
            None => ("work queued on this device".to_owned(), None),
        };
        let (kind, inherited) = (FailureKind::Device, false);
        FailureRecord { kind, operation, site, cause, inherited, left_out: None }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smallvec::smallvec;

    use super::{CompletionAction, InFlight, InFlightList, OperationName};
    use resident_backend::call_site::{CallSite, call_site};
    use resident_backend::{Dependencies, FailureKind, LabelText, Position, StreamId};

    fn operation(position: u64, depends: Dependencies) -> InFlight {
        InFlight {
            position: Position(position),
            depends,
            action: CompletionAction::Nothing,
            loss: FailureKind::Contents,
        }
    }

    fn kernel(name: &str) -> OperationName {
        OperationName { is_kernel: true, text: LabelText::Text(name.into()), site: None }
    }

    #[test]
    fn an_operation_without_action_and_dependencies_is_not_kept() {
        let mut list = InFlightList::default();
        list.push(operation(1, Dependencies::new()));
        list.push(operation(2, smallvec![(StreamId(9), Position(4))]));
        list.push(operation(3, smallvec![(StreamId(9), Position(5))]));
        assert!(list.has_dependencies(Position(2)) && !list.has_dependencies(Position(1)));
        let retired: Vec<Position> =
            list.retire_upto(Position(2)).iter().map(|operation| operation.position).collect();
        assert_eq!(retired, [Position(2)]);
        assert_eq!(list.retire_upto(Position(9)).len(), 1);
    }

    #[test]
    fn finished_operations_are_looked_for_after_as_many_have_been_added() {
        let mut list = InFlightList::default();
        let add = |list: &mut InFlightList, position| {
            list.push(operation(position, smallvec![(StreamId(9), Position(1))]));
            list.is_reap_due()
        };
        let due: Vec<u64> = (1..=200).filter(|at| add(&mut list, *at)).collect();
        assert_eq!(due, [64, 128, 192]);
        list.retire_upto(Position(150));
        assert!((201..264).all(|at| !add(&mut list, at)), "some were removed meanwhile");
        assert!(add(&mut list, 264));
    }

    #[test]
    fn an_operation_matters_to_waiters_until_its_completion_ends() {
        let mut list = InFlightList::default();
        let action = CompletionAction::CompleteFirst { stream: StreamId(7), position: Position(1) };
        list.push(InFlight { action, ..operation(2, Dependencies::new()) });
        assert!(!list.matters_to_waiters(Position(1)) && list.matters_to_waiters(Position(2)));
        assert_eq!(list.begin_completion(Position(5)).len(), 1);
        assert!(!list.matters_to_waiters(Position(1)) && list.matters_to_waiters(Position(2)));
        list.end_completion(Vec::new());
        assert!(!list.matters_to_waiters(Position(2)));
    }

    #[test]
    fn the_record_of_a_device_loss_names_the_first_operation_that_has_not_completed() {
        let mut list = InFlightList::default();
        let named = |list: &InFlightList, completed: u64| {
            list.device_loss_record(Position(completed), String::new()).operation
        };
        (1..=100).for_each(|at| list.record_name(Position(at), kernel(&format!("k{at}"))));
        assert_eq!(named(&list, 49), "kernel \"k50\"");
        assert_eq!(named(&list, 3), "kernel \"k37\" or work queued shortly before it");
        assert_eq!(named(&list, 100), "work queued on this device");
        // An event and a wait have the positions 101 and 102.
        list.record_name(Position(103), kernel("late"));
        assert_eq!(named(&list, 100), "kernel \"late\"");
    }

    #[test]
    fn the_steps_of_a_chain_have_names_of_their_own() {
        let mut list = InFlightList::default();
        let named = |list: &InFlightList, completed: u64| {
            list.device_loss_record(Position(completed), String::new()).operation
        };
        let steps: Arc<[OperationName]> = ["one", "two", "three"].map(kernel).into();
        list.record_name(Position(1), kernel("before"));
        // An event has the position 2, and later chains follow at once.
        list.record_steps(Position(5), &steps);
        list.record_steps(Position(8), &steps);
        list.record_name(Position(9), kernel("after"));
        let names = (0..9).map(|completed| named(&list, completed));
        let expected = ["before", "one", "one", "two", "three", "one", "two", "three", "after"];
        assert!(names.eq(expected.map(|name| format!("kernel \"{name}\""))));
    }

    #[test]
    fn repeated_launches_share_a_name() {
        let mut list = InFlightList::default();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let here = call_site();
        let there = call_site();
        let named = |list: &InFlightList, completed: u64| {
            let record = list.device_loss_record(Position(completed), String::new());
            (record.operation, record.site.map(|site| site.line()))
        };
        let seen = |name: &str, site: CallSite| (format!("kernel \"{name}\""), Some(site.line()));
        (1..=200).for_each(|at| list.record_kernel(Position(at), &one, here));
        list.record_kernel(Position(202), &one, there);
        assert_eq!((named(&list, 0), named(&list, 199)), (seen("one", here), seen("one", here)));
        assert_eq!(named(&list, 200), seen("one", there), "201 is an event");
        for at in (203..603).step_by(2) {
            list.record_kernel(Position(at), &two, here);
            list.record_kernel(Position(at + 1), &one, here);
        }
        assert_eq!(named(&list, 600), seen("two", here));
        assert_eq!(named(&list, 601), seen("one", here));
        assert_eq!(named(&list, 538), seen("two", here), "the oldest name that is kept");
        assert!(named(&list, 537).0.ends_with("or work queued shortly before it"));
    }
}
