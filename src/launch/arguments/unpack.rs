//! Unpacks a launch's words and pointers into the types of its signature.

use ndarray::{ArrayView, ArrayViewMut, Dimension};
use smallvec::SmallVec;

use super::bound::scalar_from;
use crate::array::Layout;
use crate::element::Element;
use resident_core::layout::Strided;

/// Reads the arguments in the order in which they were packed.
#[derive(Debug)]
pub(crate) struct Unpacker<'a> {
    words: &'a [u64],
    pointers: &'a [*mut u8],
}

impl<'a> Unpacker<'a> {
    pub(in crate::launch) fn new(words: &'a [u64], pointers: &'a [*mut u8]) -> Self {
        Self { words, pointers }
    }

    fn take(&mut self, count: usize) -> &'a [u64] {
        let (taken, rest) = self.words.split_at(count);
        self.words = rest;
        taken
    }

    fn pointer(&mut self) -> *mut u8 {
        let [first, rest @ ..] = self.pointers else {
            unreachable!("fewer pointers than array parameters")
        };
        self.pointers = rest;
        *first
    }

    /// Goes on behind the length that compiled code gets beside a pointer.
    pub(in crate::launch) fn skip_length(&mut self) {
        self.take(1);
    }

    pub(in crate::launch) fn scalar<E: Element>(&mut self) -> E {
        scalar_from(self.take(size_of::<E>().div_ceil(8)))
    }

    /// # Safety
    ///
    /// The next argument is flat (a slice) with elements `T`, and nothing writes it for `'a`.
    pub(in crate::launch) unsafe fn slice<T: Element>(&mut self) -> &'a [T] {
        let (len, start) = (self.take(1)[0] as usize, self.pointer());
        if len == 0 || size_of::<T>() == 0 {
            // SAFETY: the slice has no bytes, and a dangling pointer is aligned.
            return unsafe { std::slice::from_raw_parts(std::ptr::dangling::<T>(), len) };
        }
        // SAFETY: `flat::check` ensured that a flat argument is contiguous, so `len` initialised
        // elements start at `start`. Device and host allocations are aligned for any element.
        unsafe { std::slice::from_raw_parts(start.cast::<T>(), len) }
    }

    /// # Safety
    ///
    /// The next argument is flat (a slice) with elements `T`, and nothing else accesses it for
    /// `'a`.
    pub(in crate::launch) unsafe fn slice_mut<T: Element>(&mut self) -> &'a mut [T] {
        let (len, start) = (self.take(1)[0] as usize, self.pointer());
        if len == 0 || size_of::<T>() == 0 {
            // SAFETY: the slice has no bytes, and a dangling pointer is aligned.
            return unsafe { std::slice::from_raw_parts_mut(std::ptr::dangling_mut::<T>(), len) };
        }
        // SAFETY: as in `slice`, and nothing else accesses the elements.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<T>(), len) }
    }

    /// # Safety
    ///
    /// The next argument is sized (an ndarray view) with elements `T` and dimension `D`, and
    /// nothing writes it for `'a`.
    pub(in crate::launch) unsafe fn view<T: Element, D: Dimension>(
        &mut self,
    ) -> ArrayView<'a, T, D> {
        let (layout, base) = self.layout::<T, D>();
        // SAFETY: the elements lie in memory that the launch declared and the backend resolved.
        // They are initialised, and the caller promises that nothing writes them.
        unsafe { layout.view(base) }
    }

    /// # Safety
    ///
    /// The next argument is sized (an ndarray view) with elements `T` and dimension `D`, and
    /// nothing else accesses it for `'a`.
    pub(in crate::launch) unsafe fn view_mut<T: Element, D: Dimension>(
        &mut self,
    ) -> ArrayViewMut<'a, T, D> {
        let (layout, base) = self.layout::<T, D>();
        // SAFETY: as in `view`, and nothing else accesses the elements.
        unsafe { layout.view_mut(base) }
    }

    /// The layout of a sized argument, and the address of its lowest element, to which the layout's
    /// offset is relative.
    fn layout<T, D: Dimension>(&mut self) -> (Layout<D>, *mut u8) {
        let ndim = self.take(1)[0] as usize;
        let mut dim = D::zeros(ndim);
        for (len, word) in dim.slice_mut().iter_mut().zip(self.take(ndim)) {
            *len = *word as usize;
        }
        let strides: SmallVec<[isize; 6]> =
            self.take(ndim).iter().map(|word| *word as isize).collect();
        let view = Strided { shape: dim.slice(), strides: &strides, offset: 0 };
        let below = view.below_first() as usize;
        let lowest = self.pointer().wrapping_sub(below * size_of::<T>());
        (Layout::new(dim, &strides, below), lowest)
    }
}
