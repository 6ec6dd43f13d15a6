//! The public methods that `SmartArray`, `SmartView` and `SmartViewMut` share: each is written
//! once, in a macro, which is expanded here for the types that have the method. `part.rs`
//! implements them.

mod exclusive;
mod query;
mod shared;

use std::sync::Arc;

use ndarray::{Array, Axis, Dimension, IntoDimension, SliceArg};

use self::exclusive::exclusive_methods;
use self::query::query_methods;
use self::shared::shared_methods;
use super::as_view::AsView;
use super::device_guard::{DeviceMut, DeviceRef};
use super::host_guard::{HostMut, HostRef};
use super::multi_slice::MultiSlice;
use super::part::Part;
use super::pending::Pending;
use super::smart::SmartArray;
use super::view::{SmartView, SmartViewMut};
use crate::access::Access;
use crate::audit::{Residency, Traffic};
use crate::call_site::call_site;
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use crate::transfer::Target;

impl<T: Element, D: Dimension> SmartArray<T, D> {
    query_methods!();
    shared_methods!('_);
    exclusive_methods!();
}

impl<'a, T: Element, D: Dimension> SmartView<'a, T, D> {
    query_methods!();
    shared_methods!('a);
}

impl<T: Element, D: Dimension> SmartViewMut<'_, T, D> {
    query_methods!();
    shared_methods!('_);
    exclusive_methods!();
}
