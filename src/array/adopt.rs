//! Conversions between ndarray's owned arrays and host memory.

use std::mem::ManuallyDrop;

use ndarray::{Array, Array1, Axis, Dimension, IxDyn, ShapeBuilder, s};

use super::layout::{Layout, element_bytes};
use crate::element::{Element, is_number};
use crate::storage::{HostBuffer, Origin, zeroed_vec};
use resident_core::layout::MemoryOrder;

/// The memory order of an array with these strides, and the offset of its first element; `None` if
/// it has gaps.
pub(super) fn memory_order<T: Element>(
    shape: &[usize],
    strides: &[isize],
) -> Option<(MemoryOrder, usize)> {
    let (memory_order, offset) = MemoryOrder::of(shape, strides, element_bytes::<T>())?;
    let memory_order = if is_number::<T>() { memory_order } else { memory_order.divided() };
    Some((memory_order, offset))
}

/// Takes over an array's memory if it has no gaps; else copies the elements into new memory without
/// gaps.
pub(super) fn adopt<T: Element, D: Dimension>(
    array: Array<T, D>,
) -> (Layout<D>, MemoryOrder, Origin) {
    let Some((memory_order, offset)) = memory_order::<T>(array.shape(), array.strides()) else {
        return adopt(packed(&array));
    };
    let layout = Layout::new(array.raw_dim(), array.strides(), offset);
    let len = array.len();
    let (vector, start) = array.into_raw_vec_and_offset();
    // ndarray's offset leads to the first element by index; this crate counts from the element with
    // the lowest address.
    let start = start.unwrap_or(0).saturating_sub(offset);
    (layout, memory_order, Origin::Host(HostBuffer::from_vec(vector, start, len)))
}

fn packed<T: Element, D: Dimension>(array: &Array<T, D>) -> Array<T, D> {
    let elements: Vec<T> = array.iter().copied().collect();
    Array::from_shape_vec(array.raw_dim(), elements)
        .unwrap_or_else(|fault| unreachable!("as many elements as the shape has: {fault}"))
}

/// An array with this layout in the vector from which `buffer` was made, without a copy. The
/// layout's offset is ignored: its element with the lowest address is the buffer's first.
pub(super) fn array_over<T: Element, D: Dimension>(
    buffer: HostBuffer,
    layout: &Layout<D>,
) -> Array<T, D> {
    // SAFETY: the callers pass the buffer of an array of `T`, and own it: no queued work has a
    // handle of it.
    let (vector, start) = unsafe { buffer.into_vec::<T>() };
    array_in(vector, start, layout)
}

/// As [`array_over`], while the buffer owns the memory. `None` if the memory is not that of a
/// vector.
///
/// # Safety
///
/// The buffer is that of an array of `T` with this layout. While the array is used, nothing writes
/// the memory, and the buffer is not dropped.
pub(super) unsafe fn array_beside<T: Element, D: Dimension>(
    buffer: &HostBuffer,
    layout: &Layout<D>,
) -> Option<ManuallyDrop<Array<T, D>>> {
    // SAFETY: as the caller promises; `array_in` keeps the vector, and the array is never dropped.
    let (vector, start) = unsafe { buffer.vector::<T>() }?;
    Some(ManuallyDrop::new(array_in(vector, start, layout)))
}

/// An array with this layout in a vector, from `start` on. Keeps the vector's memory.
fn array_in<T: Element, D: Dimension>(
    vector: Vec<T>,
    start: usize,
    layout: &Layout<D>,
) -> Array<T, D> {
    if start == 0 {
        return array_from_start(vector, layout);
    }
    let line = Array1::from_vec(vector).slice_move(s![start..start + layout.len()]);
    let mut order: Vec<usize> = (0..layout.shape().len()).collect();
    order.sort_by_key(|axis| {
        // The stride of an axis of length 1 has no meaning; such axes go last.
        let (len, stride) = (layout.shape()[*axis], layout.strides()[*axis].unsigned_abs());
        (len == 1, std::cmp::Reverse(stride))
    });
    let memory: Vec<usize> = order.iter().map(|axis| layout.shape()[*axis]).collect();
    let mut back = vec![0; order.len()];
    for (position, axis) in order.iter().enumerate() {
        back[*axis] = position;
    }
    let shaped =
        line.into_shape_with_order(IxDyn(&memory)).map(|array| array.permuted_axes(IxDyn(&back)));
    let mut array = shaped
        .and_then(Array::into_dimensionality::<D>)
        .unwrap_or_else(|fault| unreachable!("a layout fits its own memory: {fault}"));
    reverse(&mut array, &reversed_axes(layout));
    array
}

/// An array that has no elements, or whose elements have no bytes.
pub(super) fn array_without_bytes<T: Element, D: Dimension>(dim: D) -> Array<T, D> {
    let elements = zeroed_vec::<T>(dim.size());
    let array = elements.and_then(|elements| Array::from_shape_vec(dim, elements).ok());
    array.unwrap_or_else(|| unreachable!("nothing fits anywhere"))
}

/// Which axes run backwards.
fn reversed_axes<D: Dimension>(layout: &Layout<D>) -> Vec<bool> {
    let axes = layout.strides().iter().zip(layout.shape());
    axes.map(|(stride, len)| *stride < 0 && *len > 1).collect()
}

/// An array with this layout; its element with the lowest address is the vector's first. Keeps all
/// strides, those of axes of length 1 included.
fn array_from_start<T: Element, D: Dimension>(vector: Vec<T>, layout: &Layout<D>) -> Array<T, D> {
    let array = Array::from_shape_vec(layout.dim().clone().strides(layout.upwards()), vector);
    let mut array =
        array.unwrap_or_else(|fault| unreachable!("a layout fits its own memory: {fault}"));
    let reversed: Vec<bool> = layout.strides().iter().map(|stride| *stride < 0).collect();
    reverse(&mut array, &reversed);
    array
}

fn reverse<T, D: Dimension>(array: &mut Array<T, D>, reversed: &[bool]) {
    for (axis, reversed) in reversed.iter().enumerate() {
        if *reversed {
            array.invert_axis(Axis(axis));
        }
    }
}
