//! The values of constants. The coherence core refers to constants by number.

use super::ArrayState;
use super::cold_state::Constants;
use crate::backend::Bytes;
use crate::coherence::{ConstantId, Content};
use crate::layout::MemoryOrder;

/// Unused values are dropped once there are more values than this.
const CONSTANTS_KEPT: usize = 64;

impl ArrayState {
    /// The number of a constant.
    pub(crate) fn constant_id(&mut self, value: Bytes) -> ConstantId {
        if value.iter().all(|byte| *byte == 0) {
            return ConstantId(0);
        }
        let constants = &mut self.cold().constants;
        let index = constants.iter().position(|known| *known == value).unwrap_or_else(|| {
            constants.push(value);
            constants.len() - 1
        });
        ConstantId(u32::try_from(index + 1).unwrap_or(u32::MAX))
    }

    /// The bytes of a constant, for elements of `element_bytes`.
    pub(crate) fn constant_value(&self, id: ConstantId, element_bytes: usize) -> Bytes {
        let index = id.0.checked_sub(1);
        let value = index.and_then(|index| self.cold.as_ref()?.constants.get(index as usize));
        value.cloned().unwrap_or_else(|| Bytes::from_elem(0, element_bytes))
    }

    /// Drops values at the end of the list that no element has, if there are many values.
    pub(crate) fn drop_unused_constants(&mut self, memory_order: &MemoryOrder) {
        let is_long = |constants: &Constants| constants.len() > CONSTANTS_KEPT;
        let Some(cold) = self.cold.as_mut().filter(|cold| is_long(&cold.constants)) else {
            return;
        };
        let mut last = 0;
        self.coherence.visit_contents(&memory_order.whole(), |_, content| {
            if let Content::Constant { value: ConstantId(number), .. } = content {
                last = last.max(number as usize);
            }
        });
        cold.constants.truncate(last);
    }
}
