//! Shape, strides and offset of a view, in elements, with ndarray's dimension types.

use std::ptr::NonNull;

use ndarray::{
    ArrayView, ArrayViewMut, Axis, Dimension, RawArrayView, RawArrayViewMut, ShapeBuilder,
    SliceArg, SliceInfoElem, StrideShape,
};

use crate::layout::{MemoryOrder, Selection, Strided};

/// A view of an array's memory. Strides are ndarray's: an `isize` kept in a `usize`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout<D> {
    dim: D,
    strides: D,
    /// The offset of the element with index 0, 0, ... from the start of memory.
    offset: usize,
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

    pub(crate) fn dim(&self) -> &D {
        &self.dim
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.dim.slice()
    }

    pub(crate) fn strides(&self) -> &[isize] {
        bytemuck::cast_slice(self.strides.slice())
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

    pub(crate) fn selection(&self, memory_order: &MemoryOrder) -> Selection {
        memory_order.select(&self.strided())
    }

    /// Calls `serve` with a reference to the selection, which takes more than 150 bytes and so is
    /// not returned by value.
    #[inline]
    pub(crate) fn with_selection<R>(
        &self,
        memory_order: &MemoryOrder,
        serve: impl FnOnce(&Selection) -> R,
    ) -> R {
        if self.len() as u64 == memory_order.len() {
            return serve(&Selection::Whole);
        }
        serve(&self.selection(memory_order))
    }

    pub(crate) fn with_offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
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

    /// A slice of this view.
    ///
    /// # Panics
    ///
    /// As ndarray's `slice`, if an index is out of bounds or the number of axes differs.
    #[track_caller]
    pub(crate) fn slice<I: SliceArg<D>>(&self, info: &I) -> Layout<I::OutDim> {
        // SAFETY: elements of type `()` have no bytes, so any pointer is valid for them; `upwards`
        // makes all strides positive.
        let mut whole = unsafe {
            RawArrayView::<(), D>::from_shape_ptr(
                self.dim.clone().strides(self.upwards()),
                NonNull::dangling().as_ptr(),
            )
        };
        for axis in 0..self.dim.ndim() {
            if self.strided().is_reversed(axis) {
                whole.invert_axis(Axis(axis));
            }
        }
        let offset = self.offset_of(info.as_ref());
        let part = whole.slice_move(info);
        let dim = part.raw_dim();
        // An empty part has no element, so its offset is irrelevant and becomes 0.
        let offset = if dim.size() == 0 { 0 } else { offset };
        Layout::new(dim, part.strides(), offset)
    }

    /// The offset of a slice: ndarray's rule in `do_slice`, which is private.
    fn offset_of(&self, info: &[SliceInfoElem]) -> usize {
        let of_axes = info.iter().filter(|element| !matches!(element, SliceInfoElem::NewAxis));
        let first = |(element, len): (&SliceInfoElem, &usize)| {
            let len = *len as isize;
            first_index(element, len).clamp(0, (len - 1).max(0)) as usize
        };
        self.strided().offset_at(of_axes.zip(self.shape()).map(first))
    }

    /// Two parts along an axis; the second starts at `index`.
    ///
    /// # Panics
    ///
    /// If there is no such axis, or `index` lies beyond its end.
    #[track_caller]
    pub(crate) fn split_at(&self, axis: Axis, index: usize) -> (Self, Self) {
        let len = self.dim.slice()[axis.index()];
        assert!(index <= len, "resident: split at {index} of an axis of length {len}");
        let (mut first, mut second) = (self.clone(), self.clone());
        first.dim.slice_mut()[axis.index()] = index;
        second.dim.slice_mut()[axis.index()] = len - index;
        if index < len && self.len() > 0 {
            let start = (0..=axis.index()).map(|at| if at == axis.index() { index } else { 0 });
            second.offset = self.strided().offset_at(start);
        }
        (first, second)
    }

    /// The offset of one element, if the index is within bounds.
    pub(crate) fn element(&self, index: &[usize]) -> Option<usize> {
        let inside = index.len() == self.shape().len()
            && index.iter().zip(self.shape()).all(|(index, len)| index < len);
        inside.then(|| self.strided().offset_at(index.iter().copied()))
    }
}

/// ndarray's own limit.
///
/// # Panics
///
/// If the shape has more than `isize::MAX` bytes, with axes of length 0 left out of the product.
#[track_caller]
pub(crate) fn assert_fits<T>(shape: &[usize]) {
    let bytes = shape
        .iter()
        .filter(|len| **len != 0)
        .try_fold(size_of::<T>().max(1), |bytes, len| bytes.checked_mul(*len));
    assert!(
        bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()),
        "resident: Shape too large, product of non-zero axis lengths overflows isize"
    );
}

/// The index along an axis of `len` at which a slice's first element lies.
fn first_index(element: &SliceInfoElem, len: isize) -> isize {
    let absolute = |index: isize| if index < 0 { index + len } else { index };
    match *element {
        SliceInfoElem::Slice { start, end, step } => {
            if step < 0 {
                end.map_or(len, absolute) - 1
            } else {
                absolute(start)
            }
        }
        SliceInfoElem::Index(index) => absolute(index),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, Axis, ShapeBuilder, s};

    use super::Layout;

    /// A slice of a layout has the same elements as ndarray's slice.
    macro_rules! agrees {
        ($array:expr, $layout:expr, $($slice:expr),+ $(,)?) => {
            $({
                let expected = $array.slice($slice);
                let part = $layout.slice(&$slice);
                assert_eq!(part.shape(), expected.shape());
                if expected.len() > 0 {
                    let first = *expected.iter().next().expect("not empty") as usize;
                    let memory = $array.as_slice_memory_order().expect("contiguous");
                    assert_eq!(memory[part.offset()] as usize, first, "{}", stringify!($slice));
                }
            })+
        };
    }

    #[test]
    fn slices_start_where_ndarrays_do() {
        for fortran in [false, true] {
            let shape = (4, 5, 6).set_f(fortran);
            let array =
                Array3::from_shape_vec(shape, (0..120_i32).collect()).expect("120 elements");
            let layout = Layout::of_shape::<i32>((4, 5, 6).set_f(fortran));
            agrees!(
                array,
                layout,
                s![.., .., ..],
                s![1..3, ..;2, ..;-1],
                s![-1, 1..4, ..;-2],
                s![.., 4..;-3, 2],
                s![2..2, .., ..],
                s![.., ndarray::NewAxis, 3, -2..],
                s![0, 0, 0],
            );
        }
    }

    #[test]
    fn a_split_meets_at_the_index() {
        let (first, second) = Layout::of_shape::<u8>((4, 6)).split_at(Axis(1), 2);
        assert_eq!((first.shape(), second.shape(), second.offset()), (&[4, 2][..], &[4, 4][..], 2));
        let (_, nothing) = Layout::of_shape::<u8>((4, 6)).split_at(Axis(0), 4);
        assert_eq!(nothing.shape(), [0, 6]);
    }
}
