//! Coherent arrays, views of their parts, and the guards that an access returns.

// In front of the others, since the documentation of `SmartArray` has its methods in this order.
mod smart;

mod adopt;
mod as_view;
mod convert;
mod device_array;
mod device_guard;
mod field;
mod host_guard;
mod host_kinds;
mod iter;
mod layout;
mod methods;
mod multi_slice;
mod operand;
#[cfg(any(feature = "cublas", feature = "nccl"))]
mod operand_guard;
mod part;
mod pending;
mod rearrange;
mod reinterpret;
mod slicing;
mod view;
mod watch;

pub use as_view::{AnyView, AnyViewMut, AsView, AsViewMut, WithDimension};
pub(crate) use device_array::HandedOut;
#[cfg(feature = "dlpack")]
pub use device_array::ReadOnlyDeviceArray;
pub use device_array::{AsDeviceView, DeviceArray};
#[cfg(feature = "dlpack")]
pub(crate) use device_array::{layout_without_gaps, lowest_address};
#[cfg(feature = "cuda")]
pub(crate) use device_guard::DevicePart;
pub use device_guard::{DeviceMut, DeviceRef};
#[doc(hidden)]
pub use field::{Disjoint, Field, FieldTuple};
pub use host_guard::{HostMut, HostRef};
pub use host_kinds::{
    Advice, ManagedArray, MappedArray, MemoryLocation, PinnedArray, with_mapped, with_pinned,
};
pub use iter::{AxisChunks, AxisChunksIter, AxisChunksIterMut, AxisIter, AxisIterMut, AxisParts};
pub(crate) use layout::Layout;
pub use multi_slice::MultiSlice;
pub(crate) use operand::{Axes, Operand, OperandMut};
#[cfg(feature = "cublas")]
pub(crate) use operand_guard::may_be_on;
pub use pending::Pending;
pub use smart::SmartArray;
pub use view::{Coherent, DeviceView, DeviceViewMut, SmartView, SmartViewMut, View};
pub use watch::{Changed, Watch, WatchState};
