//! The public methods that arrays and views share: each is written once, in a macro, which is
//! expanded for the types that have the method: here for coherent ones, in `device_array/views.rs`
//! for device arrays. `view.rs` implements those that make views, and `part.rs` those that use
//! elements.

mod exclusive;
pub(super) mod parts;
pub(super) mod parts_mut;
pub(super) mod query;
mod shared;

use std::ops::Deref;
use std::sync::Arc;

use ndarray::{
    Array, Axis, AxisDescription, Dimension, IntoDimension, Ix1, Ix2, Order, RemoveAxis, ShapeArg,
    Slice, SliceArg,
};

use self::exclusive::exclusive_methods;
use self::parts::{part_methods, rearranged_methods, reshape_method, row_methods};
use self::parts_mut::{multi_slice_method, part_mut_methods, row_mut_methods};
use self::query::{get_method, shape_methods, state_methods, traffic_methods};
use self::shared::{copy_methods, guard_methods};
use super::as_view::{AsView, AsViewMut};
use super::device_guard::{DeviceMut, DeviceRef};
use super::field::{Disjoint, Field, FieldTuple};
use super::host_guard::{HostMut, HostRef};
use super::host_kinds::PinnedArray;
use super::iter::{
    AxisChunks, AxisChunksIter, AxisChunksIterMut, AxisIter, AxisIterMut, AxisParts,
};
use super::multi_slice::MultiSlice;
use super::part::Part;
use super::pending::Pending;
use super::smart::SmartArray;
use super::view::{Coherent, SmartView, SmartViewMut, View};
use crate::audit::{Residency, Traffic};
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use crate::transfer::Target;
use resident_backend::call_site::call_site;
use resident_core::Access;

/// # Shape, length, name
impl<T: Element, D: Dimension> SmartArray<T, D> {
    shape_methods!();
}

/// # Read the contents, on the host or on a device
///
/// Each copies what is stale at the place of the access, and nothing else. Copies of the array at
/// other places stay valid.
impl<T: Element, D: Dimension> SmartArray<T, D> {
    guard_methods!('_, part);
    get_method!();
    copy_methods!();
}

/// # Write the contents, on the host or on a device
///
/// Each makes the other copies stale, in the part that it writes.
impl<T: Element, D: Dimension> SmartArray<T, D> {
    exclusive_methods!();
}

/// # Parts and other shapes, to be read
///
/// Views copy nothing. An access through a view copies only what is stale of its elements.
impl<T: Element, D: Dimension> SmartArray<T, D> {
    part_methods!(SmartView<'_>, Coherent);
    rearranged_methods!(SmartView<'_>);
    reshape_method!('_);
}

/// # Parts, to be written
impl<T: Element, D: Dimension> SmartArray<T, D> {
    part_mut_methods!(SmartViewMut, Coherent);
    multi_slice_method!(views -> Output);
}

/// # Rows and columns
impl<T: Element> SmartArray<T, Ix2> {
    row_methods!(SmartView<'_>);
    row_mut_methods!(SmartViewMut);
}

/// # Where the contents are, and what was copied
impl<T: Element, D: Dimension> SmartArray<T, D> {
    state_methods!();
    traffic_methods!();
}

/// The methods of a [`SmartArray`] that need exclusive access, since it gives away no
/// `&mut SmartArray`.
impl<T: Element, D: Dimension> PinnedArray<T, D> {
    exclusive_methods!();
    part_mut_methods!(SmartViewMut, Coherent);
    multi_slice_method!(views -> Output);
}

impl<T: Element> PinnedArray<T, Ix2> {
    row_mut_methods!(SmartViewMut);
}

/// A shared view, of elements in any home.
type SharedView<'a, H, T, D> = View<'a, H, &'a T, D>;

/// An exclusive view, of elements in any home.
type ExclusiveView<'a, H, T, D> = View<'a, H, &'a mut T, D>;

impl<H, T: Element, R: Deref<Target = T>, D: Dimension> View<'_, H, R, D> {
    shape_methods!();
    traffic_methods!();
    get_method!();
}

impl<'a, H: Copy, T: Element, D: Dimension> View<'a, H, &'a T, D> {
    part_methods!(SharedView<'a, H>, H);
    rearranged_methods!(SharedView<'a, H>);
}

impl<'a, H: Copy, T: Element> View<'a, H, &'a T, Ix2> {
    row_methods!(SharedView<'a, H>);
}

impl<'a, H: Copy, T: Element, D: Dimension> View<'a, H, &'a mut T, D> {
    part_methods!(SharedView<'_, H>, H);
    part_mut_methods!(ExclusiveView<H>, H);
}

impl<'a, H: Copy, T: Element> View<'a, H, &'a mut T, Ix2> {
    row_methods!(SharedView<'_, H>);
    row_mut_methods!(ExclusiveView<H>);
}

impl<T: Element, R: Deref<Target = T>, D: Dimension> View<'_, Coherent, R, D> {
    state_methods!();
    copy_methods!();
}

impl<'a, T: Element, D: Dimension> SmartView<'a, T, D> {
    guard_methods!('a, long_part);
    reshape_method!('a);
}

impl<T: Element, D: Dimension> SmartViewMut<'_, T, D> {
    guard_methods!('_, part);
    exclusive_methods!();
    multi_slice_method!(views -> Output);
}
