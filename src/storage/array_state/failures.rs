//! Late failures: marks the copies that failed work should have written as invalid, and records
//! which failure lost contents.

use std::sync::Arc;

use super::ArrayState;
use crate::backend::{FailureRecord, failure};
use crate::coherence::{Location, LossId, Region};
use crate::layout::MemoryOrder;

impl ArrayState {
    /// Invalidates the regions whose writers have failed since the last call.
    pub(crate) fn reconcile(&mut self, memory_order: &MemoryOrder) {
        let epoch = failure::epoch();
        if epoch == self.failure_epoch {
            return;
        }
        self.failure_epoch = epoch;
        for location in self.locations() {
            for (region, record) in self.failed_at(location, memory_order) {
                if let Some(site) = record.site {
                    self.record_withdrawn(location, &region, site);
                }
                let loss = self.loss_id(record);
                self.coherence.invalidate(location, &region, loss);
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

    fn loss_id(&mut self, record: Arc<FailureRecord>) -> LossId {
        let losses = &mut self.cold().losses;
        let index =
            losses.iter().position(|known| Arc::ptr_eq(known, &record)).unwrap_or_else(|| {
                losses.push(record);
                losses.len() - 1
            });
        LossId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(crate) fn loss(&self, id: LossId) -> Option<&Arc<FailureRecord>> {
        self.cold.as_ref()?.losses.get(id.0 as usize)
    }
}
