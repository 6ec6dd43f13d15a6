//! The values of constants. The coherence core refers to constants by number.

use super::ArrayState;
use crate::backend::Bytes;
use crate::coherence::{ConstantId, Content};

impl ArrayState {
    /// The number of a constant.
    pub(crate) fn constant_id(&mut self, value: Bytes) -> ConstantId {
        if value.iter().all(|byte| *byte == 0) {
            return ConstantId(0);
        }
        ConstantId(self.cold().constants.number(value))
    }

    /// The bytes of a constant, for elements of `element_bytes`.
    pub(crate) fn constant_value(&self, id: ConstantId, element_bytes: usize) -> Bytes {
        let value = self.cold.as_ref().and_then(|cold| cold.constants.value(id.0));
        value.cloned().unwrap_or_else(|| Bytes::from_elem(0, element_bytes))
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
