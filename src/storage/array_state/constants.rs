//! The values of constants. The coherence core refers to constants by number.

use super::ArrayState;
use resident_backend::Bytes;
use resident_core::coherence::{ConstantId, Content, Region};
use resident_core::layout::MemoryOrder;

impl ArrayState {
    /// The number of a constant: the bytes of one element.
    pub(crate) fn constant_id(&mut self, value: Bytes) -> ConstantId {
        if value.iter().all(|byte| *byte == 0) {
            return ConstantId(0);
        }
        ConstantId(self.cold().constants.number(value))
    }

    /// The bytes of a constant in a region that is [unbroken](MemoryOrder::unbroken).
    pub(crate) fn constant_value(
        &self,
        id: ConstantId,
        memory_order: &MemoryOrder,
        region: &Region,
    ) -> Bytes {
        let range = memory_order.element_range(region);
        let value = self.cold.as_ref().and_then(|cold| cold.constants.value(id.0));
        match value {
            Some(element) => Bytes::from_slice(&element[range]),
            None => Bytes::from_elem(0, range.len()),
        }
    }

    /// Drops values that no element has, each time the number of values has doubled.
    pub(crate) fn drop_unused_constants(&mut self) {
        let Self { cold: Some(cold), coherence, .. } = self else { return };
        if !cold.constants.is_long() {
            return;
        }
        cold.constants.keep_used(|used| {
            coherence.visit_values(|content| {
                if let Content::Constant { value: ConstantId(number), .. } = content {
                    used(*number);
                }
            });
        });
    }
}
