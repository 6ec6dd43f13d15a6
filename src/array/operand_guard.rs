//! Guards of operands, for libraries that compute in place of the library's own kernels.

use ndarray::IxDyn;

use super::as_view::AnyView;
use super::device_guard::{DeviceMut, DeviceRef};
use super::layout::Layout;
use super::operand::{Operand, OperandMut};
use super::part::Part;
#[cfg(feature = "cublas")]
use crate::device::Device;
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use crate::transfer::StoredView;
use resident_backend::call_site::CallSite;
use resident_core::Access;

/// Whether a call on this device may use the operand: explicit arrays stay where they are.
#[cfg(feature = "cublas")]
pub(crate) fn may_be_on<T: Element>(operand: &impl AnyView<T>, device: &Device) -> bool {
    operand.home().is_none_or(|home| home == device)
}

fn layout_of(StoredView { view, .. }: &StoredView<'_>) -> Layout<IxDyn> {
    Layout::new(IxDyn(view.shape), view.strides, view.offset)
}

impl<'a, T: Element> Operand<'a, T> {
    /// A guard for a library that reads the elements, which lives as long as the operand's borrow.
    /// An explicit array must be one of the stream's device.
    pub(crate) fn guard(
        &self,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<DeviceRef<'a, T, IxDyn>> {
        let layout = layout_of(&self.erased());
        let part = Part::of(self.storage(), &layout);
        if let Some(home) = self.home() {
            part.expect_home(home, stream, operation, site)?;
        }
        part.gpu_on(stream, site)
    }
}

impl<'a, T: Element> OperandMut<'a, T> {
    /// A guard for a library that writes the elements, which lives as long as the operand's
    /// exclusive borrow.
    pub(crate) fn into_guard(
        self,
        access: Access,
        stream: &Stream,
        operation: &str,
        site: CallSite,
    ) -> Result<DeviceMut<'a, T, IxDyn>> {
        let layout = layout_of(&self.erased());
        let part = Part::of(self.storage(), &layout);
        if let Some(home) = self.home() {
            part.expect_home(home, stream, operation, site)?;
        }
        part.gpu_mut_on(access, stream, site)
    }
}
