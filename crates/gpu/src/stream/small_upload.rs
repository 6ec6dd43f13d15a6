//! Uploads of a few bytes through staging memory, without a list of parts.

use super::gpu_stream::GpuStream;
use super::in_flight::{CompletionAction, OperationName};
use crate::memory::staging::SMALL_BYTES_MAX;
use resident_backend::StagedBytes;
use resident_backend::{
    Address, BackendError, Dependencies, FailureKind, HostMemory, Label, Position,
};

impl GpuStream {
    pub(super) fn may_stage(&self, len_bytes: u64) -> bool {
        len_bytes <= SMALL_BYTES_MAX
    }

    /// A block for these bytes. If none is unused, completes the oldest operation first, whose
    /// block is then unused. Asking all streams takes longer than copying a few bytes.
    pub(super) fn block_for(&self, len: usize) -> Option<StagedBytes> {
        let staging = self.device.staging();
        let len_bytes = len as u64;
        if !staging.has_unused(len_bytes) {
            self.reap_oldest();
            if !staging.has_unused(len_bytes) && !staging.is_ready_for(len_bytes) {
                return None;
            }
        }
        staging.take(len_bytes)
    }

    /// Queues the copy of a block. The context is current.
    pub(super) fn upload(
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
