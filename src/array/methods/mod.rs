//! The public methods that `SmartArray`, `SmartView` and `SmartViewMut` share: each is written
//! once, in a macro, which is expanded here for the types that have the method. `part.rs`
//! implements them.

mod exclusive;
mod parts;
mod parts_mut;
pub(super) mod query;
mod shared;

use std::sync::Arc;

use ndarray::{
    Array, Axis, Dimension, IntoDimension, Ix1, Ix2, Order, RemoveAxis, ShapeArg, SliceArg,
};

use self::exclusive::exclusive_methods;
use self::parts::{part_methods, rearranged_methods, row_methods};
use self::parts_mut::{part_mut_methods, row_mut_methods};
use self::query::{shape_methods, state_methods};
use self::shared::shared_methods;
use super::as_view::AsView;
use super::device_guard::{DeviceMut, DeviceRef};
use super::field::{Disjoint, Field, FieldTuple};
use super::host_guard::{HostMut, HostRef};
use super::host_kinds::PinnedArray;
use super::iter::{AxisChunksIter, AxisChunksIterMut, AxisIter, AxisIterMut};
use super::multi_slice::MultiSlice;
use super::part::Part;
use super::pending::Pending;
use super::rearrange::{chunk_size, in_range};
use super::smart::SmartArray;
use super::view::{SmartView, SmartViewMut};
use crate::audit::{Residency, Traffic};
use crate::device::Stream;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer::Target;
use resident_backend::call_site::call_site;
use resident_core::Access;

impl<T: Element, D: Dimension> SmartArray<T, D> {
    shape_methods!();
    state_methods!();
    shared_methods!('_);
    part_methods!('_);
    rearranged_methods!('_);
    exclusive_methods!();
    part_mut_methods!();
}

impl<T: Element> SmartArray<T, Ix2> {
    row_methods!('_);
    row_mut_methods!();
}

/// All methods of a [`SmartArray`], since it gives away no `&mut SmartArray`.
impl<T: Element, D: Dimension> PinnedArray<T, D> {
    shape_methods!();
    state_methods!();
    shared_methods!('_);
    part_methods!('_);
    rearranged_methods!('_);
    exclusive_methods!();
    part_mut_methods!();
}

impl<T: Element> PinnedArray<T, Ix2> {
    row_methods!('_);
    row_mut_methods!();
}

impl<'a, T: Element, D: Dimension> SmartView<'a, T, D> {
    shape_methods!();
    state_methods!();
    shared_methods!('a);
    part_methods!('a);
    rearranged_methods!('a);
}

impl<'a, T: Element> SmartView<'a, T, Ix2> {
    row_methods!('a);
}

impl<T: Element, D: Dimension> SmartViewMut<'_, T, D> {
    shape_methods!();
    state_methods!();
    shared_methods!('_);
    part_methods!('_);
    exclusive_methods!();
    part_mut_methods!();
}

impl<T: Element> SmartViewMut<'_, T, Ix2> {
    row_methods!('_);
    row_mut_methods!();
}
