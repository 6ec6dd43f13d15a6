//! Reads of a few bytes, for which the caller waits: one copy to pinned memory, and no operation in
//! flight.

use super::completion::IfBusy;
use super::gpu_stream::GpuStream;
use super::in_flight::OperationName;
use crate::capture_mode::Relaxed;
use resident_backend::StagedBytes;
use resident_backend::{Address, BackendError, HostMemory, Label, Position, scope};

/// Longer reads take the ordinary way.
const LEN_BYTES_MAX: usize = 4 << 10;

impl GpuStream {
    /// As [`RawStream::read`](resident_backend::RawStream::read).
    pub(super) fn read(&self, from: Address, to: &mut [u8], label: &dyn Fn() -> Label) -> bool {
        let is_refused = to.len() > LEN_BYTES_MAX
            || scope::is_in_body()
            || self.is_shared()
            || self.prepare_to_queue().is_err();
        if is_refused {
            return false;
        }
        let Some(staged) = self.device.staging().take(to.len() as u64) else { return false };
        let Ok(position) = self.record_death(self.queue_read(from, &staged, to.len())) else {
            return false;
        };
        if self.wait_for_read(position, label).is_err() {
            // The device may still write the block, so the block is never used again.
            std::mem::forget(staged);
            return false;
        }
        // SAFETY: the block has at least `to.len()` initialised bytes, and the device has completed
        // the only copy that writes them.
        unsafe { std::ptr::copy_nonoverlapping(staged.base(), to.as_mut_ptr(), to.len()) };
        true
    }

    /// Queues a copy of `len` bytes to a block. The context is current.
    fn queue_read(
        &self,
        from: Address,
        staged: &StagedBytes,
        len: usize,
    ) -> Result<Position, BackendError> {
        let mut state = self.state();
        let copy = &self.driver().copy_to_host;
        // SAFETY: the context is current. The array's copy lives until a free that is queued after
        // this call, since the caller has pinned it, and the caller lets the bytes lie within it.
        // The block has at least `len` bytes, and is kept until the copy completes, or forever.
        let outcome =
            unsafe { (copy.function)(staged.base().cast(), from.0, len, self.raw_stream()) };
        self.record_death_locked(copy.check(outcome))?;
        Ok(self.next_position(&mut state))
    }

    /// Waits for the read at `position`. If the device died, names the read in its report.
    fn wait_for_read(
        &self,
        position: Position,
        label: &dyn Fn() -> Label,
    ) -> Result<(), BackendError> {
        self.make_current()?;
        let _relaxed = Relaxed::enter(self.driver());
        let wait = &self.driver().stream_synchronize;
        // SAFETY: the stream lives as long as `self`.
        let outcome = wait.check(unsafe { (wait.function)(self.raw_stream()) });
        if outcome.is_err() {
            let name = OperationName::of_label(&label());
            self.state().in_flight.record_name(position, name);
        }
        self.record_death(outcome)?;
        self.complete_upto(position, IfBusy::Wait);
        Ok(())
    }
}
