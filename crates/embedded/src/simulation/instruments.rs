//! The instruments of an emulated device: they log calls, inject faults, and check the order of
//! work.

use std::sync::Arc;

use super::call_log::{CallDraft, CallLog};
use super::faults::{Fault, Faults};
use crate::race_check::{MemoryAccess, Submission, Tracker};
use resident_backend::{BackendError, BackendErrorKind, Position};
use resident_host_code::Findings;

/// The instruments of one device.
#[derive(Debug)]
pub(crate) struct Instruments {
    faults: Faults,
    pub log: Arc<CallLog>,
    pub tracker: Arc<Tracker>,
}

impl Instruments {
    /// Instruments with an empty log.
    pub(crate) fn new(faults: Vec<Fault>, findings: Findings, tracker: Arc<Tracker>) -> Self {
        let log = Arc::new(CallLog::with_findings(findings));
        Self { faults: Faults::new(faults), log, tracker }
    }

    /// Logs a call with its outcome. If an injected fault applies, the call is refused. With a late
    /// fault the call succeeds, and the function `call` gets the call's number, for the work that
    /// must fail.
    pub(crate) fn counted<T>(
        &self,
        draft: CallDraft,
        call: impl FnOnce(Option<u64>) -> Result<(T, Position), BackendError>,
    ) -> Result<T, BackendError> {
        let kind = draft.kind;
        let number = self.log.add_call(draft);
        let due = self.faults.due(kind, number);
        let outcome = if due.iter().all(|fault| fault.is_late()) {
            call(due.first().map(|_| number))
        } else {
            let detail = format!("call {number}");
            Err(BackendError { kind: BackendErrorKind::Injected, call: kind.name(), detail })
        };
        self.log.set_outcome(number, outcome.as_ref().ok().map(|(_, position)| *position));
        outcome.map(|(value, _)| value)
    }

    /// Whether one race check tracks the memory of another device and of this one.
    pub(crate) fn share_tracker(&self, other: Option<&Self>) -> bool {
        other.is_some_and(|other| Arc::ptr_eq(&other.tracker, &self.tracker))
    }

    /// Checks the accesses of an operation. It is called when the operation has a position but
    /// cannot run yet.
    pub(crate) fn check(&self, submission: &Submission<'_>, accesses: &[MemoryAccess]) {
        let hazards = self.tracker.check(submission, accesses);
        if !hazards.is_empty() {
            self.log.add_hazards(hazards);
        }
    }
}
