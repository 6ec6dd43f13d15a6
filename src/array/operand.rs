//! Arguments of the library's own kernels: the elements of an array or view, with other axes.

use std::fmt;
use std::marker::PhantomData;

use ndarray::IxDyn;
use smallvec::SmallVec;

use super::as_view::{AnyView, AnyViewMut, WithDimension, sealed};
use crate::device::Device;
use crate::element::Element;
use crate::storage::Storage;
use crate::transfer::{StoredView, device_where_newest};
use resident_core::layout::Strided;

/// The axes of an operand. Each method leads to the same elements as before, or to some of them, so
/// that an operand never leaves the array or view that it was made from.
#[derive(Clone, Debug)]
pub(crate) struct Axes {
    shape: SmallVec<[usize; 6]>,
    strides: SmallVec<[isize; 6]>,
    offset: usize,
}

impl Axes {
    /// The axes of a view.
    #[inline]
    pub(crate) fn of(view: &Strided<'_>) -> Self {
        Self {
            shape: SmallVec::from_slice(view.shape),
            strides: SmallVec::from_slice(view.strides),
            offset: view.offset,
        }
    }

    /// The elements to which these axes lead.
    #[inline]
    pub(crate) fn strided(&self) -> Strided<'_> {
        Strided { shape: &self.shape, strides: &self.strides, offset: self.offset }
    }

    #[inline]
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    #[inline]
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are more elements than `len_max`, and some are repeated, taking no memory.
    pub(crate) fn repeats_beyond(&self, len_max: usize) -> bool {
        let repeats = |(len, stride): (&usize, &isize)| *len > 1 && *stride == 0;
        let len = self.shape.iter().try_fold(1_usize, |all, len| all.checked_mul(*len));
        len.is_none_or(|len| len > len_max) && self.shape.iter().zip(&self.strides).any(repeats)
    }

    /// Turns an axis around, if the operand has elements.
    pub(crate) fn flip(&mut self, axis: usize) {
        let len = self.shape[axis];
        if self.shape.contains(&0) {
            return;
        }
        self.offset =
            self.offset.wrapping_add_signed(self.strides[axis].wrapping_mul(len as isize - 1));
        self.strides[axis] = -self.strides[axis];
    }

    pub(crate) fn swap(&mut self, one: usize, other: usize) {
        self.shape.swap(one, other);
        self.strides.swap(one, other);
    }

    /// Moves an axis behind the others.
    pub(crate) fn move_to_end(&mut self, axis: usize) {
        self.shape[axis..].rotate_left(1);
        self.strides[axis..].rotate_left(1);
    }

    /// Removes an axis of length 1.
    pub(crate) fn remove(&mut self, axis: usize) {
        assert_eq!(self.shape.remove(axis), 1, "an axis with one index");
        self.strides.remove(axis);
    }

    /// Leaves `len` indices of an axis, from `first` on.
    pub(crate) fn narrow(&mut self, axis: usize, first: usize, len: usize) {
        assert!(first + len <= self.shape[axis], "indices of the axis");
        self.shape[axis] = len;
        if !self.shape.contains(&0) {
            let before = self.strides[axis].wrapping_mul(first as isize);
            self.offset = self.offset.wrapping_add_signed(before);
        }
    }

    /// Leaves the first index of an axis, of those that there are.
    pub(crate) fn keep_first(&mut self, axis: usize) {
        self.shape[axis] = self.shape[axis].min(1);
    }

    /// Adds an axis of length 1.
    pub(crate) fn insert(&mut self, axis: usize) {
        self.shape.insert(axis, 1);
        self.strides.insert(axis, 0);
    }

    /// Whether an axis and the next are one in memory.
    #[inline]
    pub(crate) fn continues(&self, axis: usize) -> bool {
        let inner = self.strides[axis + 1].wrapping_mul(self.shape[axis + 1] as isize);
        self.strides[axis] == inner
    }

    /// Makes one axis of an axis and the next, which it continues.
    #[inline]
    pub(crate) fn merge(&mut self, axis: usize) {
        assert!(self.continues(axis), "axes that are one in memory");
        let outer = self.shape.remove(axis);
        self.strides.remove(axis);
        self.shape[axis] *= outer;
    }

    /// Repeats the elements along axes of length 1 and along new axes before the others, as NumPy
    /// broadcasts. `false`, and unchanged, if the operand does not fit.
    #[inline]
    pub(crate) fn broadcast(&mut self, shape: &[usize]) -> bool {
        if *self.shape == *shape {
            return true;
        }
        let Some(more) = shape.len().checked_sub(self.shape.len()) else { return false };
        let mut pairs = self.shape.iter().zip(&shape[more..]);
        if !pairs.all(|(own, wanted)| own == wanted || *own == 1) {
            return false;
        }
        let strides = (0..shape.len()).map(|axis| match axis.checked_sub(more) {
            Some(own) if self.shape[own] == shape[axis] => self.strides[own],
            _ => 0,
        });
        self.strides = strides.collect();
        self.shape = SmallVec::from_slice(shape);
        true
    }
}

/// The elements of an array or view, to be read.
pub(crate) struct Operand<'a, T> {
    storage: &'a Storage,
    home: Option<&'a Device>,
    axes: Axes,
    element: PhantomData<&'a T>,
}

/// As [`Operand`], borrowed exclusively, to be written.
pub(crate) struct OperandMut<'a, T>(Operand<'a, T>);

impl<T> Clone for Operand<'_, T> {
    fn clone(&self) -> Self {
        Self { axes: self.axes.clone(), ..*self }
    }
}

impl<'a, T: Element> Operand<'a, T> {
    /// All elements, in the shape of the array.
    #[inline]
    pub(crate) fn of(array: &'a impl AnyView<T>) -> Self {
        let StoredView { storage, view, .. } = array.erased();
        Self { storage, home: array.home(), axes: Axes::of(&view), element: PhantomData }
    }

    #[inline]
    pub(crate) fn axes(&self) -> &Axes {
        &self.axes
    }

    #[cfg(any(feature = "cublas", feature = "nccl"))]
    pub(super) fn storage(&self) -> &'a Storage {
        self.storage
    }

    #[inline]
    pub(crate) fn axes_mut(&mut self) -> &mut Axes {
        &mut self.axes
    }

    /// See [`Axes::broadcast`].
    #[inline]
    pub(crate) fn broadcast(&mut self, shape: &[usize]) -> bool {
        self.axes.broadcast(shape)
    }

    /// The device that has the elements where they are newest: `preferred`, if it is one of
    /// several. `None` if no device has them.
    pub(crate) fn device_where_newest(&self, preferred: &Device) -> Option<Device> {
        device_where_newest(&self.erased(), preferred)
    }

    /// The same bytes as elements of another type of the same size.
    pub(crate) fn reinterpreted<W: Element>(self) -> Operand<'a, W> {
        const { assert!(size_of::<T>() == size_of::<W>() && align_of::<T>() >= align_of::<W>()) }
        let Self { storage, home, axes, .. } = self;
        Operand { storage, home, axes, element: PhantomData }
    }
}

impl<'a, T: Element> OperandMut<'a, T> {
    /// All elements, in the shape of the array.
    #[inline]
    pub(crate) fn of(array: &'a mut impl AnyViewMut<T>) -> Self {
        Self(Operand::of(array))
    }

    #[inline]
    pub(crate) fn axes(&self) -> &Axes {
        &self.0.axes
    }

    #[cfg(any(feature = "cublas", feature = "nccl"))]
    pub(super) fn storage(&self) -> &'a Storage {
        self.0.storage
    }

    #[inline]
    pub(crate) fn axes_mut(&mut self) -> &mut Axes {
        &mut self.0.axes
    }

    /// See [`Operand::reinterpreted`].
    pub(crate) fn reinterpreted<W: Element>(self) -> OperandMut<'a, W> {
        OperandMut(self.0.reinterpreted())
    }
}

macro_rules! argument {
    ($operand:ident, |$this:ident| $inner:expr) => {
        impl<T: Element> sealed::Sealed for $operand<'_, T> {}
        impl<T: Element> WithDimension<T, IxDyn> for $operand<'_, T> {}

        #[diagnostic::do_not_recommend]
        impl<T: Element> AnyView<T> for $operand<'_, T> {
            #[allow(private_interfaces)]
            #[inline]
            fn erased(&self) -> StoredView<'_> {
                let $this = self;
                let Operand { storage, axes, .. } = $inner;
                let element_bytes = super::layout::element_bytes::<T>();
                StoredView { storage: *storage, view: axes.strided(), element_bytes }
            }

            #[inline]
            fn home(&self) -> Option<&Device> {
                let $this = self;
                $inner.home
            }
        }

        /// The array's name, and the shape.
        impl<T: Element> fmt::Display for $operand<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                let Operand { storage, axes, .. } = $inner;
                write!(f, "{} of shape {:?}", storage.named(), &axes.shape[..])
            }
        }
    };
}

argument!(Operand, |this| this);
argument!(OperandMut, |this| &this.0);
#[diagnostic::do_not_recommend]
impl<T: Element> AnyViewMut<T> for OperandMut<'_, T> {}
