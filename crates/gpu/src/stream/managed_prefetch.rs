//! Queues hints to move managed memory.

use super::gpu_stream::GpuStream;
use crate::memory::managed;
use resident_backend::{BackendError, ManagedRange, Position, PrefetchTarget};

impl GpuStream {
    /// Queues a prefetch of managed memory. The context is current.
    pub(super) fn prefetch(
        &self,
        range: ManagedRange,
        to: PrefetchTarget,
    ) -> Result<Position, BackendError> {
        let context = self.device.context();
        let to = (to == PrefetchTarget::Device).then(|| context.ordinal());
        let mut state = self.state();
        // SAFETY: the context is current. The memory lives until a free that is queued after this
        // work (contract in `backend`).
        let outcome = unsafe { managed::prefetch(context, range, to, self.raw_stream()) };
        self.record_death_locked(outcome)?;
        Ok(self.next_position(&mut state))
    }
}
