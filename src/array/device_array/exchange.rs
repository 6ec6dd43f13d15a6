//! Device memory that is handed to other code, and taken over from it.

use ndarray::Dimension;

use super::super::adopt;
use super::super::layout::Layout;
use super::super::smart::SmartArray;
use super::DeviceArray;
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use resident_backend::Address;
use resident_backend::call_site::CallSite;
use resident_core::Access;

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    /// The address of the array's memory, for other code that reads and writes it in the order of
    /// `stream`; and the offset in bytes of the element with index 0, 0, ... The other code's use
    /// ends when it calls [`take_back`](Self::take_back). 0 if the array has no bytes.
    pub(crate) fn hand_out(&self, stream: &Stream, site: CallSite) -> Result<(Address, u64)> {
        let part = self.part();
        part.expect_home(&self.device, stream, "into_dlpack", site)?;
        let guard = part.gpu_mut_on(Access::ReadWrite, stream, site)?;
        let offset_bytes = (part.layout.offset() * size_of::<T>()) as u64;
        Ok((Address(guard.address() - offset_bytes), offset_bytes))
    }

    /// Marks the work that other code has queued on `stream` as a use of the array.
    pub(crate) fn take_back(&self, stream: &Stream, site: CallSite) {
        // Refused only if the device died or the contents are lost; the memory is freed all the
        // same.
        let _refused = self.part().gpu_changed_on(stream, site);
    }

    /// An array over memory of `stream`'s device, whose contents are complete once the work queued
    /// on the stream so far is complete. The layout has no gaps.
    pub(crate) fn over_memory(
        layout: Layout<D>,
        stream: &Stream,
        address: Address,
        site: CallSite,
    ) -> Self {
        Self::over(SmartArray::over_memory(layout, stream.clone(), address, site), stream)
    }
}

/// The offset of the element with index 0, 0, ... from the lowest one, in elements. `None` if the
/// layout has gaps.
pub(crate) fn offset_without_gaps<T: Element>(shape: &[usize], strides: &[isize]) -> Option<usize> {
    adopt::memory_order::<T>(shape, strides).map(|(_, offset)| offset)
}
