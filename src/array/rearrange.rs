//! Layouts of views that reorder, remove, add or repeat axes, as ndarray's methods of the same
//! names do. Errors are the texts of panics: the caller adds the array's name.

use ndarray::{Axis, Dimension, IxDyn, Order, RemoveAxis};

use super::layout::{AxisLayout, Layout, fits};
use crate::error::{CalledAt, Error, Result};
use crate::storage::Storage;
use resident_core::layout::is_repeated;

/// Why ndarray would panic.
pub(super) type OutOfRange = String;

/// # Panics
///
/// At the caller's line, with the array's name, if something is out of range.
#[track_caller]
#[inline]
pub(super) fn in_range<L>(storage: &Storage, made: Result<L, OutOfRange>) -> L {
    match made {
        Ok(layout) => layout,
        Err(why) => out_of_range(storage, &why),
    }
}

/// The size of chunks, which ndarray does not allow to be 0.
#[track_caller]
pub(super) fn chunk_size(storage: &Storage, size: usize) -> usize {
    match size {
        0 => out_of_range(storage, "chunks of 0 indices"),
        _ => size,
    }
}

#[cold]
#[track_caller]
fn out_of_range(storage: &Storage, why: &str) -> ! {
    panic!("resident: out of range in {}: {why}", storage.named())
}

/// The elements in another shape, or the error that says that no strides reach them so.
pub(super) fn reshape_to<D: Dimension, E: Dimension>(
    storage: &Storage,
    layout: &Layout<D>,
    shape: &E,
    order: Order,
) -> Result<Layout<E>> {
    layout.reshaped(shape, order).ok_or_else(|| {
        let instead = match order {
            Order::RowMajor => "reshape the copy that `to_contiguous()` makes",
            _ => "reshape the copy that `to_contiguous_in(Order::F)` makes",
        };
        let (shape, len, own) = (shape.slice(), layout.len(), layout.strided());
        let elements = shape.iter().try_fold(1, |len: usize, axis| len.checked_mul(*axis));
        let array = storage.named();
        if elements == Some(len) {
            return Error::Shape {
                call: CalledAt::UNKNOWN,
                operation: format!("reshape of {array} to {shape:?}"),
                expected: String::from("elements in that order in memory"),
                seen: format!("shape {:?} with strides {:?}", own.shape, own.strides),
                instead: instead.into(),
            };
        }
        let elements = elements.map_or_else(|| String::from("too many"), |len| len.to_string());
        Error::Shape {
            call: CalledAt::UNKNOWN,
            operation: format!("reshape of {array}"),
            expected: format!("a shape of {len} elements, as its own {:?} has,", own.shape),
            seen: format!("{shape:?}, which has {elements}"),
            instead: "pass a shape of as many elements, or reshape a part (`slice`)".into(),
        }
    })
}

/// The elements repeated, or the error that says why they cannot be.
pub(super) fn broadcast_to<D: Dimension, E: Dimension>(
    storage: &Storage,
    layout: &Layout<D>,
    shape: &E,
) -> Result<Layout<E>> {
    layout.broadcast(shape).ok_or_else(|| Error::Shape {
        call: CalledAt::UNKNOWN,
        operation: format!("broadcast of {}", storage.named()),
        expected: if fits::<u8>(shape.slice()) {
            format!("a shape that ends in {:?}, or is longer where that is 1,", layout.shape())
        } else {
            format!("a shape of at most {} elements", isize::MAX)
        },
        seen: format!("{:?}", shape.slice()),
        instead: "keep the lengths of its axes, or broadcast a part (`slice`)".into(),
    })
}

impl<D: Dimension> Layout<D> {
    /// With this order of the axes.
    pub(super) fn permuted(&self, axes: &D) -> Result<Self, OutOfRange> {
        let (axes, ndim) = (axes.slice(), self.shape().len());
        let is_new = |(at, axis): (usize, &usize)| *axis < ndim && !axes[..at].contains(axis);
        if axes.len() != ndim || !axes.iter().enumerate().all(is_new) {
            return Err(format!("axes {axes:?} are no order of its {ndim} axes"));
        }
        Ok(self.reordered(axes.iter().copied()))
    }

    /// With the axes in reverse order.
    pub(super) fn transposed(&self) -> Self {
        self.reordered((0..self.shape().len()).rev())
    }

    /// The axes in this order, in which each occurs once.
    fn reordered(&self, order: impl Iterator<Item = usize>) -> Self {
        let mut new = self.clone();
        for (to, from) in order.enumerate() {
            new.set_axis(to, self.axis(from));
        }
        new
    }

    pub(super) fn checked_axis(&self, axis: Axis) -> Result<usize, OutOfRange> {
        let ndim = self.shape().len();
        if axis.index() >= ndim {
            return Err(format!("there is no axis {} of {ndim}", axis.index()));
        }
        Ok(axis.index())
    }

    /// Without an axis, at one index of it.
    pub(super) fn index_axis(
        &self,
        axis: Axis,
        index: usize,
    ) -> Result<Layout<D::Smaller>, OutOfRange>
    where
        D: RemoveAxis,
    {
        let at = self.checked_axis(axis)?;
        let len = self.shape()[at];
        if index >= len {
            return Err(format!("index {index} of axis {at}, whose length is {len}"));
        }
        Ok(self.at_index(at, index))
    }

    /// As [`index_axis`](Self::index_axis), within bounds.
    pub(super) fn at_index(&self, axis: usize, index: usize) -> Layout<D::Smaller> {
        let mut new = Layout::of_zeros(self.shape().len() - 1);
        let others = (0..self.shape().len()).filter(|other| *other != axis);
        for (to, from) in others.enumerate() {
            new.set_axis(to, self.axis(from));
        }
        new.with_offset_unless_empty(self.offset_along(axis, index))
    }

    /// With another axis, of length 1.
    pub(super) fn with_axis(&self, axis: Axis) -> Result<Layout<D::Larger>, OutOfRange> {
        let (at, ndim) = (axis.index(), self.shape().len());
        if at > ndim {
            return Err(format!("no axis {at} can be inserted into {ndim}"));
        }
        let mut new = Layout::of_zeros(ndim + 1);
        new.set_axis(at, AxisLayout::SINGLE);
        for from in 0..ndim {
            new.set_axis(from + usize::from(from >= at), self.axis(from));
        }
        Ok(new.with_offset(self.offset()))
    }

    /// Some of the indices of an axis, within bounds.
    pub(super) fn along(&self, axis: usize, start: usize, len: usize) -> Self {
        let mut new = self.clone();
        new.set_axis(axis, AxisLayout { len, ..self.axis(axis) });
        new.with_offset_unless_empty(self.offset_along(axis, start))
    }

    /// The offset of the element at `index` along one axis, and at 0 along the others.
    fn offset_along(&self, axis: usize, index: usize) -> usize {
        self.offset().wrapping_add_signed(self.strides()[axis] * index as isize)
    }

    /// One field of each element, in fields: `per_element` of them would fill an element, and the
    /// field is the one at `index`.
    pub(super) fn field(&self, per_element: usize, index: usize) -> Self {
        let mut new = self.clone();
        for axis in 0..self.shape().len() {
            let AxisLayout { len, stride } = self.axis(axis);
            // The stride of a single index has no meaning, and the product may overflow.
            let stride = if len > 1 { stride * per_element as isize } else { stride };
            new.set_axis(axis, AxisLayout { len, stride });
        }
        let offset = self.offset() * per_element + index;
        new.with_offset_unless_empty(offset)
    }

    pub(super) fn with_any_dim(&self) -> Layout<IxDyn> {
        Layout::new(IxDyn(self.shape()), self.strides(), self.offset())
    }

    /// Two parts along an axis; the second starts at `index`.
    pub(super) fn split_at(&self, axis: Axis, index: usize) -> Result<(Self, Self), OutOfRange> {
        let at = self.checked_axis(axis)?;
        let len = self.shape()[at];
        if index > len {
            return Err(format!("a split at {index} of axis {at}, whose length is {len}"));
        }
        Ok((self.along(at, 0, index), self.along(at, index, len - index)))
    }

    /// In another shape, if no element has to move.
    pub(super) fn reshaped<E: Dimension>(&self, shape: &E, order: Order) -> Option<Layout<E>> {
        if !fits::<u8>(shape.slice()) || shape.size() != self.len() {
            return None;
        }
        let mut new = Layout::of_dim(shape.clone());
        let strides = new.strides_mut();
        let has_strides = match order {
            Order::RowMajor => self.strided().reshape(shape.slice(), strides),
            // Column-major order is row-major order of the reversed axes.
            _ => {
                let reversed: Vec<usize> = shape.slice().iter().rev().copied().collect();
                let has_strides = self.transposed().strided().reshape(&reversed, strides);
                strides.reverse();
                has_strides
            }
        };
        has_strides.then(|| new.with_offset_unless_empty(self.offset()))
    }

    /// Repeated along axes of length 1 and new first axes.
    pub(super) fn broadcast<E: Dimension>(&self, shape: &E) -> Option<Layout<E>> {
        if !fits::<u8>(shape.slice()) {
            return None;
        }
        let mut new = Layout::of_dim(shape.clone());
        let fits = self.strided().broadcast(shape.slice(), new.strides_mut());
        fits.then(|| new.with_offset(self.offset()))
    }

    /// Whether some elements stand for several.
    pub(super) fn is_broadcast(&self) -> bool {
        self.repeated_axis().is_some()
    }

    /// The first axis along which one element stands for all.
    pub(super) fn repeated_axis(&self) -> Option<usize> {
        let mut axes = self.shape().iter().zip(self.strides());
        let first = axes.position(|(len, stride)| is_repeated(*len, *stride));
        // ndarray's strides of an empty array are 0.
        first.filter(|_| self.len() > 0)
    }

    /// Whether another layout of this shape has its axes in the same order and directions, so that
    /// what is contiguous in one is in long runs in the other.
    pub(super) fn is_aligned_with(&self, other: &Self) -> bool {
        let (one, other) = (self.strided(), other.strided());
        let is_reversed = |axis| one.is_reversed(axis) == other.is_reversed(axis);
        one.axes_by_stride() == other.axes_by_stride() && (0..one.shape.len()).all(is_reversed)
    }

    /// The elements in memory: repeated axes have length 1.
    pub(super) fn distinct(&self) -> Self {
        let mut new = self.clone();
        while let Some(axis) = new.repeated_axis() {
            new.set_axis(axis, AxisLayout::SINGLE);
        }
        new
    }
}
