//! Guards of operands, for libraries that compute in place of the library's own kernels.

use ndarray::IxDyn;

use super::as_view::AnyView;
use super::device_guard::{DeviceMut, DeviceRef};
use super::layout::Layout;
use super::operand::{Operand, OperandMut};
use super::part::Part;
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::Result;
use crate::transfer::StoredView;
use resident_backend::call_site::CallSite;
use resident_core::Access;

/// Whether a call on this device may use the operand: explicit arrays stay where they are.
pub(crate) fn may_be_on<T: Element>(operand: &impl AnyView<T>, device: &Device) -> bool {
    operand.home().is_none_or(|home| home == device)
}

fn layout_of(StoredView { view, .. }: &StoredView<'_>) -> Layout<IxDyn> {
    Layout::new(IxDyn(view.shape), view.strides, view.offset)
}

impl<T: Element> Operand<'_, T> {
    /// A guard for a library that reads the elements.
    pub(crate) fn gpu_on(
        &self,
        stream: &Stream,
        site: CallSite,
    ) -> Result<DeviceRef<'_, T, IxDyn>> {
        let stored = self.erased();
        Part::of(stored.storage, &layout_of(&stored)).gpu_on(stream, site)
    }
}

impl<T: Element> OperandMut<'_, T> {
    /// A guard for a library that overwrites the elements.
    pub(crate) fn gpu_overwrite_on(
        &mut self,
        stream: &Stream,
        site: CallSite,
    ) -> Result<DeviceMut<'_, T, IxDyn>> {
        let stored = self.erased();
        Part::of(stored.storage, &layout_of(&stored)).gpu_mut_on(Access::Overwrite, stream, site)
    }
}
