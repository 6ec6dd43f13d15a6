//! Copies of staging memory to the device, without a list of parts.

use super::gpu_stream::GpuStream;
use super::in_flight::{CompletionAction, OperationName};
use resident_backend::{
    Address, BackendError, Dependencies, FailureKind, HostMemory, Label, Position, StagedBytes,
};

impl GpuStream {
    /// As [`RawStream::write`](resident_backend::RawStream::write). The context is current.
    pub(super) fn write(
        &self,
        staged: StagedBytes,
        to: Address,
        label: &Label,
    ) -> Result<Position, BackendError> {
        let mut state = self.state();
        let copy = &self.driver().copy_to_device;
        // SAFETY: the context is current. The completion action keeps the block until the copy
        // completes. The array's copy has at least this number of bytes, and lives until a free
        // that is queued after this work; the modules that use the backend order other uses of it
        // (contract in `backend`).
        let outcome = unsafe {
            (copy.function)(to.0, staged.base().cast(), staged.len_bytes(), self.raw_stream())
        };
        self.record_death_locked(copy.check(outcome))?;
        let action = CompletionAction::ReturnBlock(staged);
        let position =
            self.enter_queued(&mut state, Dependencies::new(), action, FailureKind::Copy);
        state.in_flight.record_name(position, OperationName::of_label(label));
        Ok(position)
    }
}
