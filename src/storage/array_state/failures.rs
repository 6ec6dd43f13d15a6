//! Late failures: marks the copies that failed work should have written as invalid, and records
//! which failure lost contents.

use std::sync::Arc;

use super::ArrayState;
use resident_backend::{FailureRecord, failure};
use resident_core::coherence::{Location, LossId, Region};
use resident_core::layout::MemoryOrder;

/// Fewer losses than this are kept although no element of them is left.
const LOSSES_MIN: usize = 16;

/// What `attempt` returns if no other test of this process records a failure meanwhile, which keeps
/// all arrays from fast paths until their states are reconciled.
#[cfg(test)]
pub(crate) fn undisturbed<R>(mut attempt: impl FnMut() -> R) -> R {
    loop {
        let epoch = failure::epoch();
        let outcome = attempt();
        if failure::epoch() == epoch {
            return outcome;
        }
    }
}

impl ArrayState {
    /// Invalidates the regions whose writers have failed since the last call.
    pub(crate) fn reconcile(&mut self, memory_order: &MemoryOrder) {
        let epoch = failure::epoch();
        if epoch == self.failure_epoch {
            return;
        }
        self.failure_epoch = epoch;
        let mut unused = self.unused_losses();
        for location in self.locations() {
            for (region, record) in self.failed_at(location, memory_order) {
                if let Some(site) = record.site {
                    self.record_withdrawn(memory_order, location, &region, site);
                }
                let loss = self.loss_id(record, &mut unused);
                self.coherence.invalidate(memory_order.extents(), location, &region, loss);
                self.uses_mut(location).forget_write_failure(memory_order.extents(), &region);
            }
        }
    }

    /// Whether work has failed since the last [`reconcile`](Self::reconcile).
    #[inline]
    pub(crate) fn has_new_failures(&self) -> bool {
        failure::epoch() != self.failure_epoch
    }

    /// The epoch of failures up to which this state takes failures into account.
    pub(crate) fn failure_epoch(&self) -> u64 {
        self.failure_epoch
    }

    fn failed_at(
        &self,
        location: Location,
        memory_order: &MemoryOrder,
    ) -> Vec<(Region, Arc<FailureRecord>)> {
        let mut failed = Vec::new();
        self.uses(location).visit_written_regions(memory_order.extents(), |region, mark| {
            if let (Some(stream), Some(position)) = (self.stream(mark.stream), mark.written_by())
                && let Some(record) = failure::at(stream.id(), position)
            {
                failed.push((*region, record));
            }
        });
        failed
    }

    /// The number under which the array keeps a failure; one of `unused`, if there are any.
    fn loss_id(&mut self, record: Arc<FailureRecord>, unused: &mut Vec<usize>) -> LossId {
        let losses = &mut self.cold().losses;
        // The regions of one operation follow each other.
        let known = losses.iter().rev().take(8).position(|known| Arc::ptr_eq(known, &record));
        let index = if let Some(from_end) = known {
            let index = losses.len() - 1 - from_end;
            unused.retain(|unused| *unused != index);
            index
        } else if let Some(index) = unused.pop() {
            losses[index] = record;
            index
        } else {
            losses.push(record);
            losses.len() - 1
        };
        LossId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The numbers of losses of which no element is left. Not searched for if there are few.
    fn unused_losses(&mut self) -> Vec<usize> {
        let Some(cold) = self.cold.as_ref().filter(|cold| cold.losses.len() >= LOSSES_MIN) else {
            return Vec::new();
        };
        let mut is_used = vec![false; cold.losses.len()];
        self.coherence.visit_losses(|LossId(loss)| {
            if let Some(is_used) = is_used.get_mut(loss as usize) {
                *is_used = true;
            }
        });
        (0..is_used.len()).filter(|index| !is_used[*index]).collect()
    }

    pub(crate) fn loss(&self, id: LossId) -> Option<&Arc<FailureRecord>> {
        self.cold.as_ref()?.losses.get(id.0 as usize)
    }
}
