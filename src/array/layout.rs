//! Shape, strides and offset of a view, in elements, with ndarray's dimension types.

use std::ptr::NonNull;

use ndarray::{
    ArrayView, ArrayViewMut, Axis, Dimension, RawArrayView, RawArrayViewMut, ShapeBuilder,
    StrideShape,
};

use crate::storage::Storage;
use crate::transfer::StoredView;
use resident_core::layout::Strided;

/// A view of an array's memory. Strides are ndarray's: an `isize` kept in a `usize`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout<D> {
    dim: D,
    strides: D,
    /// The offset of the element with index 0, 0, ... from the start of memory.
    offset: usize,
}

/// One axis of a view.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisLayout {
    pub(super) len: usize,
    pub(super) stride: isize,
}

impl AxisLayout {
    /// An axis of one index, whose stride has no meaning.
    pub(super) const SINGLE: Self = Self { len: 1, stride: 1 };
}

impl<D: Dimension> Layout<D> {
    /// The layout that ndarray gives this shape: row-major, or column-major with `.f()`.
    ///
    /// # Panics
    ///
    /// As ndarray's constructors, if the shape has more than `isize::MAX` elements.
    #[inline]
    #[track_caller]
    pub(crate) fn of_shape<T>(shape: impl ShapeBuilder<Dim = D>) -> Self {
        let shape: StrideShape<D> = shape.into_shape_with_order().into();
        assert_fits::<T>(shape.raw_dim().slice());
        // SAFETY: elements of type `()` have no bytes, so any pointer is valid for them.
        // `assert_fits` checked the lengths, and ndarray computed the strides.
        let view =
            unsafe { RawArrayView::<(), D>::from_shape_ptr(shape, NonNull::dangling().as_ptr()) };
        Self::new(view.raw_dim(), view.strides(), 0)
    }

    pub(crate) fn new(dim: D, strides: &[isize], offset: usize) -> Self {
        let mut own = dim.clone();
        own.slice_mut().copy_from_slice(bytemuck::cast_slice(strides));
        Self { dim, strides: own, offset }
    }

    /// A layout of this many axes, to be set with [`set_axis`](Self::set_axis).
    #[inline]
    pub(super) fn of_zeros(ndim: usize) -> Self {
        Self { dim: D::zeros(ndim), strides: D::zeros(ndim), offset: 0 }
    }

    /// A layout of these lengths, whose strides are to be set.
    #[inline]
    pub(super) fn of_dim(dim: D) -> Self {
        Self { strides: D::zeros(dim.ndim()), dim, offset: 0 }
    }

    #[inline]
    pub(super) fn axis(&self, axis: usize) -> AxisLayout {
        AxisLayout { len: self.shape()[axis], stride: self.strides()[axis] }
    }

    #[inline]
    pub(super) fn set_axis(&mut self, axis: usize, to: AxisLayout) {
        self.dim.slice_mut()[axis] = to.len;
        self.strides.slice_mut()[axis] = to.stride as usize;
    }

    pub(crate) fn dim(&self) -> &D {
        &self.dim
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.dim.slice()
    }

    pub(crate) fn strides(&self) -> &[isize] {
        bytemuck::cast_slice(self.strides.slice())
    }

    #[inline]
    pub(super) fn strides_mut(&mut self) -> &mut [isize] {
        bytemuck::cast_slice_mut(self.strides.slice_mut())
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.dim.size()
    }

    pub(crate) fn strided(&self) -> Strided<'_> {
        Strided { shape: self.shape(), strides: self.strides(), offset: self.offset }
    }

    /// This view of an array, whose elements are of type `T`.
    #[inline]
    pub(crate) fn stored_in<'s, T>(&'s self, storage: &'s Storage) -> StoredView<'s> {
        StoredView { storage, view: self.strided(), element_bytes: element_bytes::<T>() }
    }

    pub(crate) fn with_offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// The layout of a copy without gaps, in the axis order of this one: strides have the same
    /// order and the same signs.
    pub(crate) fn packed(&self) -> Self {
        let c_ordered = || Self::of_shape::<()>(self.dim.clone());
        let mut packed = match self.len() {
            0 => return c_ordered(),
            _ if self.strided().is_contiguous() => self.clone(),
            _ => c_ordered(),
        };
        let axes = self.strided().axes_by_stride();
        let (mut step, mut offset) = (1, 0);
        for axis in axes.iter().rev() {
            let AxisLayout { len, stride } = self.axis(*axis);
            packed.set_axis(*axis, AxisLayout { len, stride: step * stride.signum() });
            offset += if stride < 0 { (len - 1) * step as usize } else { 0 };
            step *= len as isize;
        }
        packed.with_offset(offset)
    }

    /// Whether elements lie row by row without gaps; axes of length 1 are ignored.
    pub(crate) fn is_c_contiguous(&self) -> bool {
        self.strided().is_c_contiguous()
    }

    /// Whether elements lie column by column without gaps; axes of length 1 are ignored.
    pub(crate) fn is_f_contiguous(&self) -> bool {
        self.strided().is_f_contiguous()
    }

    /// The absolute values of the strides, which ndarray's constructors require.
    #[inline]
    pub(super) fn upwards(&self) -> D {
        let mut strides = self.strides.clone();
        for stride in strides.slice_mut() {
            *stride = (*stride as isize).unsigned_abs();
        }
        strides
    }

    /// An ndarray view of memory that starts at `base`.
    ///
    /// # Safety
    ///
    /// For `'a` the view's elements lie in initialised memory that starts at `base`, and nothing
    /// writes them.
    #[inline]
    pub(crate) unsafe fn view<'a, T>(&self, base: *mut u8) -> ArrayView<'a, T, D> {
        if self.runs_upwards() && !base.is_null() {
            let start = base.cast::<T>().wrapping_add(self.offset);
            // SAFETY: as in `view_turned`; no stride is negative, so the element with index 0, 0,
            // ... has the lowest address.
            let raw = unsafe {
                RawArrayView::<T, D>::from_shape_ptr(
                    self.dim.clone().strides(self.strides.clone()),
                    start,
                )
            };
            // SAFETY: as the caller promises.
            return unsafe { raw.deref_into_view() };
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { self.view_turned(base) }
    }

    /// Whether no stride is negative, the usual case.
    #[inline]
    fn runs_upwards(&self) -> bool {
        self.strides().iter().all(|stride| *stride >= 0)
    }

    /// As `view`, for any strides.
    ///
    /// # Safety
    ///
    /// As `view`.
    #[cold]
    unsafe fn view_turned<'a, T>(&self, base: *mut u8) -> ArrayView<'a, T, D> {
        let start = self.start::<T>(base);
        // SAFETY: the elements lie in one allocation that starts at `base`, as the caller promises,
        // so moving along all axes stays within it; the lengths were checked when the array was
        // made; `upwards` makes all strides positive.
        let mut raw = unsafe {
            RawArrayView::<T, D>::from_shape_ptr(self.dim.clone().strides(self.upwards()), start)
        };
        for axis in 0..self.dim.ndim() {
            if self.strided().is_reversed(axis) {
                raw.invert_axis(Axis(axis));
            }
        }
        // SAFETY: as the caller promises.
        unsafe { raw.deref_into_view() }
    }

    /// As `view`, but mutable.
    ///
    /// # Safety
    ///
    /// For `'a` the view's elements lie in initialised memory that starts at `base`, and nothing
    /// else accesses them.
    #[inline]
    pub(crate) unsafe fn view_mut<'a, T>(&self, base: *mut u8) -> ArrayViewMut<'a, T, D> {
        let start = self.start::<T>(base);
        // ndarray's debug builds check that no two elements overlap, even in an empty view. So an
        // empty view gets ndarray's own strides.
        let shape: StrideShape<D> = match self.len() {
            0 => self.dim.clone().into_shape_with_order().into(),
            _ => self.dim.clone().strides(self.upwards()),
        };
        // SAFETY: as in `view`.
        let mut raw = unsafe { RawArrayViewMut::<T, D>::from_shape_ptr(shape, start) };
        for axis in 0..self.dim.ndim() {
            if self.strided().is_reversed(axis) {
                raw.invert_axis(Axis(axis));
            }
        }
        // SAFETY: as the caller promises.
        unsafe { raw.deref_into_view_mut() }
    }

    #[inline]
    fn start<T>(&self, base: *mut u8) -> *mut T {
        if base.is_null() || self.len() == 0 || size_of::<T>() == 0 {
            return NonNull::dangling().as_ptr();
        }
        base.cast::<T>().wrapping_add(self.strided().lowest() as usize)
    }

    /// An empty part has no element: its offset and its strides become 0, as those of ndarray's
    /// empty arrays. Other strides would make `to_owned` of an ndarray view panic in debug builds.
    pub(super) fn with_offset_unless_empty(mut self, offset: usize) -> Self {
        if self.strided().is_empty() {
            self.strides.slice_mut().fill(0);
            return self.with_offset(0);
        }
        self.with_offset(offset)
    }

    /// The offset of one element, if the index is within bounds.
    pub(crate) fn element(&self, index: &[usize]) -> Option<usize> {
        let inside = index.len() == self.shape().len()
            && index.iter().zip(self.shape()).all(|(index, len)| index < len);
        inside.then(|| self.strided().offset_at(index.iter().copied()))
    }
}

/// The size of an element; arrays of larger elements do not compile.
pub(crate) const fn element_bytes<T>() -> u32 {
    size_of::<T>() as u32
}

/// Whether a shape has at most `isize::MAX` bytes, with axes of length 0 left out of the product:
/// ndarray's own limit.
pub(crate) fn fits<T>(shape: &[usize]) -> bool {
    let bytes = shape
        .iter()
        .filter(|len| **len != 0)
        .try_fold(size_of::<T>().max(1), |bytes, len| bytes.checked_mul(*len));
    bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
}

/// As [`fits`], for constructors that panic as ndarray's do.
///
/// # Panics
///
/// If the shape does not fit.
#[track_caller]
pub(crate) fn assert_fits<T>(shape: &[usize]) {
    assert!(
        fits::<T>(shape),
        "resident: Shape too large, product of non-zero axis lengths overflows isize"
    );
}

#[cfg(test)]
mod tests {
    use ndarray::{ShapeBuilder, s};

    use super::Layout;

    #[test]
    fn a_packed_layout_keeps_order_and_directions() {
        let columns = Layout::of_shape::<i32>((4, 5, 6).f());
        let packed = |slice| {
            let packed = columns.slice(&slice).expect("within bounds").packed();
            (packed.strides().to_vec(), packed.offset())
        };
        assert_eq!(packed(s![.., .., ..]), (vec![1, 4, 20], 0));
        assert_eq!(packed(s![..;-1, .., ..;-1]), (vec![-1, 4, -20], 103));
        assert_eq!(packed(s![1..3, ..;2, 1..]), (vec![1, 2, 6], 0));
        assert_eq!(packed(s![1..2, ..;-2, ..]), (vec![18, -1, 3], 2));
        assert_eq!(packed(s![2..2, .., ..]).1, 0);
    }
}
