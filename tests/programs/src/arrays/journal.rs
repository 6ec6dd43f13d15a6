//! Checks the results of calls: a call must be refused exactly when a reason exists, and at most as
//! many calls may fail as the program injected failures.

use resident::emulation::{Call, CallKind};
use resident::{Device, Error, Result};
use resident_core::Access;

use super::parts::Cells;
use super::reference::Reference;
use super::value::Value;
use super::{Failing, World};

/// A reason for which a call must be refused before it reads any contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    Shapes,
    Gaps,
    Orders,
}

/// How a call uses elements of one array.
pub(super) struct Use {
    pub(super) array: usize,
    pub(super) cells: Cells,
    pub(super) access: Access,
}

impl Use {
    pub(super) fn read(array: usize, cells: Cells) -> Self {
        Self { array, cells, access: Access::Read }
    }

    pub(super) fn change(array: usize, cells: Cells) -> Self {
        Self { array, cells, access: Access::ReadWrite }
    }

    pub(super) fn overwrite(array: usize, cells: Cells) -> Self {
        Self { array, cells, access: Access::Overwrite }
    }

    pub(super) fn reads(&self) -> bool {
        self.access != Access::Overwrite
    }
}

/// The failures that may still occur, and those that have occurred.
pub(super) struct Journal {
    devices: Vec<Device>,
    late: Vec<Failing>,
    /// The number of failures that calls may still return.
    failures_left: usize,
    /// The memory of each device, if it is limited.
    pub(super) limit: Option<u64>,
    /// Whether a call may be refused only if what it uses does not fit.
    is_strict: bool,
    /// The elements of the new array that the call under way makes.
    pub(super) made_elements: usize,
    /// The number of calls that each device had received at the last search for failures.
    seen: Vec<u64>,
    /// The failures that were noted: operations and causes, which name the failed call.
    noted: Vec<[String; 2]>,
    /// Those of them that waits for copies returned, and no `synchronize` yet.
    waited: Vec<[String; 2]>,
}

impl Journal {
    pub(super) fn new(devices: Vec<Device>, world: &World) -> Self {
        let failures_left = world.faults().count();
        let late = world.faults().filter(|fault| fault.late).copied().collect();
        let (limit, is_strict, made_elements) = (world.limit(), failures_left == 0, 0);
        let seen = vec![0; devices.len()];
        let (noted, waited) = (Vec::new(), Vec::new());
        Self { devices, late, failures_left, limit, is_strict, made_elements, seen, noted, waited }
    }

    /// Allows one more failure, for work that will fail.
    pub(super) fn expect_failure(&mut self) {
        self.failures_left += 1;
    }

    /// The number of failures that calls may still return.
    pub(super) fn failures_left(&self) -> usize {
        self.failures_left + self.waited.len()
    }

    /// Counts a failure that a backend reported: a refused call or failed work. Each is reported
    /// once, apart from those that [`note_of_wait`](Self::note_of_wait) describes.
    pub(super) fn note(&mut self, error: &Error) {
        match error {
            Error::OutOfMemory { .. } if self.limit.is_some() => {}
            Error::Backend { operation, cause, .. } => {
                let failure = [operation.clone(), cause.clone()];
                if let Some(at) = self.waited.iter().position(|waited| *waited == failure) {
                    self.waited.swap_remove(at);
                    return;
                }
                assert!(self.failures_left > 0, "more failures than were injected: {error}");
                self.failures_left -= 1;
                self.noted.push(failure);
            }
            other => panic!("an unexpected error: {other}"),
        }
    }

    /// Counts what a wait for a copy to the host returned instead of the elements: a failure that a
    /// `synchronize` may have returned before, or may return once more if it is one of work that
    /// the copy followed.
    pub(super) fn note_of_wait(&mut self, error: &Error) {
        let Error::Backend { operation, cause, .. } = error else { return self.note(error) };
        let failure = [operation.clone(), cause.clone()];
        if !self.noted.contains(&failure) {
            self.note(error);
            self.waited.push(failure);
        }
    }

    /// Checks the result of a call that uses no contents.
    pub(super) fn judge_plain<R>(&mut self, outcome: Result<R>) -> Option<R> {
        outcome.map_err(|error| self.note(&error)).ok()
    }

    /// Checks the result of a call that makes these uses. Returns `None` if the call failed for a
    /// permitted reason; such a call changes nothing.
    pub(super) fn judge<T: Value, R>(
        &mut self,
        outcome: Result<R>,
        references: &mut [Reference<T>],
        uses: &[Use],
        misfits: &[Misfit],
    ) -> Option<R> {
        self.judge_by(Self::note, outcome, references, (uses, misfits))
    }

    /// As [`judge`](Self::judge), for a call that waits for a copy to the host.
    pub(super) fn judge_wait<T: Value, R>(
        &mut self,
        outcome: Result<R>,
        references: &mut [Reference<T>],
        uses: &[Use],
    ) -> Option<R> {
        self.judge_by(Self::note_of_wait, outcome, references, (uses, &[]))
    }

    fn judge_by<T: Value, R>(
        &mut self,
        note: impl FnOnce(&mut Self, &Error),
        outcome: Result<R>,
        references: &mut [Reference<T>],
        (uses, misfits): (&[Use], &[Misfit]),
    ) -> Option<R> {
        for failing in self.late_failures() {
            if failing.label.starts_with("write-back of ") {
                // It may be of any array, which loses what only the device had.
                references.iter_mut().for_each(Reference::doubt);
            }
            uses.iter().for_each(|used| references[used.array].is_doubtful = true);
        }
        let read = || uses.iter().filter(|used| used.reads());
        let has_unwritten = read().any(|used| references[used.array].has_unwritten(&used.cells));
        match outcome {
            Ok(value) => {
                assert!(misfits.is_empty(), "the call was not refused despite {misfits:?}");
                assert!(!has_unwritten, "elements that were never written were read");
                return Some(value);
            }
            Err(Error::Uninitialised { .. })
                if misfits.is_empty()
                    && read().any(|used| references[used.array].may_be_unwritten(&used.cells)) => {}
            Err(Error::Lost { .. })
                if read().any(|used| references[used.array].may_be_lost(&used.cells)) => {}
            Err(Error::Shape { .. } | Error::Requirement { .. })
                if misfits.contains(&Misfit::Shapes) => {}
            Err(Error::NotContiguous { .. }) if misfits.contains(&Misfit::Gaps) => {}
            Err(Error::LayoutMismatch { .. }) if misfits.contains(&Misfit::Orders) => {}
            Err(error) => {
                if matches!(error, Error::OutOfMemory { .. }) && self.is_strict {
                    self.expect_too_much(&error, references, uses);
                }
                note(self, &error);
            }
        }
        None
    }

    /// Panics if the arrays of a call, and those that have guards, fit on a device.
    fn expect_too_much<T: Value>(&self, error: &Error, references: &[Reference<T>], uses: &[Use]) {
        let is_used = |array: usize| uses.iter().any(|used| used.array == array);
        let used = references.iter().enumerate();
        let used = used.filter(|(array, reference)| reference.is_guarded || is_used(*array));
        let elements: usize = used.map(|(_, reference)| reference.elements.len()).sum();
        // Elements are copied by way of others to elements that overlap them.
        let between = match uses {
            [to, from] if to.array == from.array => from.cells.len(),
            _ => 0,
        };
        let needed = ((elements + between + self.made_elements) * size_of::<T>()) as u64;
        assert!(self.limit.is_some_and(|limit| needed > limit), "{needed} bytes fit: {error}");
    }

    /// Panics if a device holds more than its limit.
    pub(super) fn check_memory(&self) {
        for device in &self.devices {
            let in_use = device.memory().in_use;
            assert!(self.limit.is_none_or(|limit| in_use <= limit), "{in_use} bytes on {device}");
        }
    }

    /// The work that was queued since the last call and will fail when it runs. A failed fill of a
    /// stale copy with poison bytes loses no contents.
    fn late_failures(&mut self) -> Vec<Call> {
        if self.late.is_empty() {
            return Vec::new();
        }
        let log = |device: &Device| device.emulation().expect("an emulated device").calls();
        let logs: Vec<_> = self.devices.iter().map(log).collect();
        let find = |fault: &Failing| {
            let device = fault.device();
            let is_new = |call: &&Call| {
                call.number == u64::from(fault.call)
                    && call.number > self.seen[device]
                    && call.kind != CallKind::Poison
            };
            logs[device].iter().find(is_new).cloned()
        };
        let found = self.late.iter().filter_map(find).collect();
        self.seen = logs.iter().map(|log| log.len() as u64).collect();
        found
    }
}

/// Whether device work that makes these uses may lose the elements that it should write.
pub(super) fn may_be_lost<T: Value>(references: &[Reference<T>], uses: &[Use]) -> bool {
    let doubtful = |used: &Use| references[used.array].is_doubtful;
    let lost = |used: &Use| used.reads() && references[used.array].may_be_lost(&used.cells);
    uses.iter().any(|used| doubtful(used) || lost(used))
}
