//! What an emulated device has and the plain one has not: it counts calls, lets some fail, and
//! checks the order of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;

use super::device::DeviceCore;
use super::emulation::Fault;
use super::hazard::{HazardOperation, Touch};
use super::lane::Lane;
use super::log::{CallKind, Draft, Log};
use super::operation::Operation;
use super::order::Order;
use super::time;
use super::tracker::{Submission, Tracker};
use super::usage::{self, Place, Usage};
use crate::backend::{
    Address, BackendError, BackendErrorKind, FailureKind, Label, Memory, Position, QueueId, Work,
};
use crate::call_site::CallSite;

/// The instruments of one device.
#[derive(Debug)]
pub(super) struct Instruments {
    /// With the calls that each one has counted, if it counts calls of one kind alone.
    faults: Vec<(Fault, AtomicU64)>,
    log: Arc<Log>,
    tracker: Arc<Tracker>,
}

impl Instruments {
    /// Instruments with an empty log.
    pub(super) fn new(faults: Vec<Fault>, tracker: Arc<Tracker>) -> Self {
        let faults = faults.into_iter().map(|fault| (fault, AtomicU64::new(0))).collect();
        Self { faults, log: Arc::default(), tracker }
    }

    /// The log, for whoever wants to read it.
    pub(super) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The check of ordering.
    pub(super) fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// Counts a call and refuses it if a fault says so; else makes it, handing in its number if its
    /// work is to fail late. Enters how it went.
    pub(super) fn counted<T>(
        &self,
        draft: Draft,
        call: impl FnOnce(Option<u64>) -> Result<(T, Position), BackendError>,
    ) -> Result<T, BackendError> {
        let kind = draft.kind;
        let number = self.log.begin(draft);
        let due = self.due(kind, number);
        let is_refused = due.iter().any(|fault| !fault.late);
        let outcome = if is_refused {
            Err(injected(kind, number))
        } else {
            call(due.first().map(|_| number))
        };
        self.log.settle(number, outcome.as_ref().ok().map(|(_, position)| *position));
        outcome.map(|(value, _)| value)
    }

    /// The faults whose turn it is at this call.
    fn due(&self, kind: CallKind, number: u64) -> SmallVec<[Fault; 1]> {
        let is_due = |(fault, counted): &&(Fault, AtomicU64)| match fault.kind {
            None => fault.call == number,
            Some(other) => {
                other == kind && counted.fetch_add(1, Ordering::Relaxed) + 1 == fault.call
            }
        };
        self.faults.iter().filter(is_due).map(|(fault, _)| *fault).collect()
    }

    /// A fresh block.
    pub(super) fn allocated(
        &self,
        device: &DeviceCore,
        address: Address,
        len_bytes: u64,
        label: &Label,
    ) {
        self.tracker.allocated(device.ordinal, address, len_bytes, &label.text);
    }

    /// Looks at work that has drawn its position and cannot run yet.
    pub(super) fn observe(&self, lane: &Lane, position: Position, operation: &Operation) {
        let mut usages = usage::of_operation(lane.device().ordinal, operation);
        if let Operation::Between { source, .. } = operation {
            usages.retain(|usage| self.watches(source) || !is_of(usage, source.ordinal));
        }
        let submission = Self::submission(
            lane,
            position,
            operation.name().into(),
            operation.site(),
            operation.depends(),
        );
        self.track(&submission, &usages);
    }

    /// As `observe`, for a free of a block of `len_bytes`.
    pub(super) fn observe_free(
        &self,
        lane: &Lane,
        position: Position,
        address: Address,
        len_bytes: u64,
    ) {
        let usage = usage::of_free(lane.device().ordinal, address, len_bytes);
        self.track(&Self::submission(lane, position, "free".into(), None, &[]), &[usage]);
    }

    fn submission<'a>(
        lane: &'a Lane,
        position: Position,
        name: Arc<str>,
        site: Option<CallSite>,
        depends: &'a [(QueueId, Position)],
    ) -> Submission<'a> {
        let (device, stream) = (lane.device().ordinal, lane.number());
        let operation = HazardOperation {
            name,
            device,
            stream,
            position: position.0,
            site,
            touch: Touch::Reads,
        };
        Submission { queue: lane.progress(), position, operation, depends }
    }

    fn track(&self, submission: &Submission<'_>, usages: &[Usage]) {
        let hazards = self.tracker.submitted(submission, usages);
        if !hazards.is_empty() {
            self.log.add_hazards(hazards);
        }
    }

    /// What comes before everything submitted after an event.
    pub(super) fn recorded(&self, lane: &Lane, position: Position) -> Order {
        self.tracker.recorded(lane.progress(), position)
    }

    /// Later work of `lane` comes after `order`.
    pub(super) fn waited(&self, lane: &Lane, order: &Order) {
        self.tracker.waited(lane.progress(), order);
    }

    /// Queued work failed.
    pub(super) fn failed(&self, lane: &Lane, position: Position) {
        self.log.failed(lane.number(), position);
    }

    /// Whether another device's memory is known to this one's tracker.
    fn watches(&self, other: &DeviceCore) -> bool {
        other.instruments.as_ref().is_some_and(|other| Arc::ptr_eq(&other.tracker, &self.tracker))
    }
}

/// What is known of a call on a lane before it is made.
pub(super) fn draft(lane: &Lane, kind: CallKind, len_bytes: u64, label: &Arc<str>) -> Draft {
    Draft { kind, label: Arc::clone(label), len_bytes, stream: Some(lane.number()) }
}

/// A call with nothing to say beyond its kind.
pub(super) fn bare_draft(stream: Option<u32>, kind: CallKind) -> Draft {
    Draft { kind, label: Arc::from(""), len_bytes: 0, stream }
}

/// What is known of work.
pub(super) fn work_draft(lane: &Lane, work: &Work) -> Draft {
    match work {
        Work::Fill(fill) => {
            let kind =
                if fill.loss == FailureKind::Poison { CallKind::Poison } else { CallKind::Fill };
            let bytes = fill
                .parts
                .iter()
                .fold(0, |bytes: u64, part| bytes.saturating_add(part.len_bytes()));
            draft(lane, kind, bytes, &fill.label.text)
        }
        Work::Launch(launch) => {
            let arrays = launch.arguments.arrays.iter();
            let bytes = arrays.fold(0, |bytes: u64, array| {
                bytes.saturating_add(launch.arguments.footprint(array).len_bytes())
            });
            draft(lane, CallKind::Launch, bytes, launch.code.name())
        }
        Work::Copy(copy) => {
            let kind = match (&copy.source, &copy.destination) {
                (Memory::Host(_), Memory::Device(_)) => CallKind::Upload,
                (Memory::Device(_), Memory::Host(_)) => CallKind::Download,
                _ if copy.source_device.is_some() => CallKind::CopyBetween,
                _ => CallKind::CopyWithin,
            };
            draft(lane, kind, time::copy_bytes(copy), &copy.label.text)
        }
    }
}

fn is_of(usage: &Usage, ordinal: usize) -> bool {
    matches!(usage.place, Place::Device { device, .. } if device == ordinal)
}

fn injected(kind: CallKind, number: u64) -> BackendError {
    let call = match kind {
        CallKind::NewStream => "new_queue",
        CallKind::Allocate => "allocate",
        CallKind::Free => "free",
        CallKind::RecordEvent => "record",
        CallKind::WaitEvent => "wait",
        CallKind::Synchronize => "synchronize",
        CallKind::Notify => "notify",
        CallKind::Trim => "trim",
        CallKind::PinnedRegistration => "page_lock",
        CallKind::Upload | CallKind::Download | CallKind::CopyWithin | CallKind::CopyBetween => {
            "copy"
        }
        CallKind::Fill | CallKind::Poison => "fill",
        CallKind::Launch => "launch",
    };
    BackendError { kind: BackendErrorKind::Injected, call, detail: format!("call {number}") }
}
