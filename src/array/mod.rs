//! What users hold: arrays that are coherent, their parts, and the guards of their accesses.

mod convert;
mod guard;
mod host_guard;
mod layout;
mod methods;
mod multi_slice;
mod owned;
mod part;
mod pending;
mod questions;
mod smart;
mod view;

#[cfg(feature = "cuda")]
pub(crate) use guard::HandedOut;
pub use guard::{DeviceMut, DeviceRef};
pub use host_guard::{HostMut, HostRef};
pub(crate) use layout::Layout;
pub use multi_slice::MultiSlice;
pub use pending::Pending;
pub use smart::SmartArray;
pub(crate) use view::Erased;
pub use view::{AnyView, AnyViewMut, AsView, AsViewMut, SmartView, SmartViewMut};
