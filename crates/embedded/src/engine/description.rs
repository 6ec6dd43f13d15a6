//! What failures and hazards say of an operation.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::execute::Fault;
use resident_backend::call_site::CallSite;
use resident_backend::{FailureKind, FailureRecord, KernelCode, Position, StreamId, failure};

/// The modelled time of a launch, a fill or a copy inside one device, regardless of its size.
pub(super) const WORK_COST: Duration = Duration::from_micros(1);

/// The description of an operation in failures and hazards.
pub(crate) struct Description<'a> {
    pub(super) label: &'a dyn Display,
    pub(super) is_kernel: bool,
    /// The source line that queued the operation.
    pub site: Option<CallSite>,
    /// The work that this operation depends on. If any of it failed, the operation does not run.
    pub depends: &'a [(StreamId, Position)],
    pub(super) failure_kind: FailureKind,
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

    pub(super) fn of_chain(
        title: &'a Arc<str>,
        site: CallSite,
        depends: &'a [(StreamId, Position)],
    ) -> Self {
        let failure_kind = FailureKind::Contents;
        Self { label: title, is_kernel: false, site: Some(site), depends, failure_kind }
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
        fault.map_or(Ok(()), |call| Err(self.failure(Fault::injected(call))))
    }
}
