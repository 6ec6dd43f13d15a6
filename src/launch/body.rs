//! Host bodies: from words and pointers back to what the signature says.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ndarray::{ArrayView, ArrayViewMut, Dimension};
use smallvec::SmallVec;

use super::argument::{Bound, BoundArray, value_of};
use super::signature::Signature;
use crate::array::Layout;
use crate::backend::KernelBody;
use crate::element::Element;
use crate::grid::Grid;
use crate::layout::Strided;

/// Words of a launch, as `pack` wrote them.
type Words = SmallVec<[u64; 24]>;

impl Bound<'_> {
    /// Writes what the body needs beside the pointer: a scalar's bytes; a flat array's length; a
    /// sized array's dimensions, shape and strides.
    #[inline]
    pub(super) fn pack(&self, words: &mut Words) {
        match self {
            Bound::Scalar { words: value, .. } => words.extend_from_slice(value),
            Bound::Array(BoundArray { view, is_flat: true, .. }) => words.push(view.len()),
            Bound::Array(BoundArray { view, .. }) => pack_sized(view.shape, view.strides, words),
        }
    }
}

/// Few dimensions at once, so that room is looked for once.
#[inline]
fn pack_sized(shape: &[usize], strides: &[isize], words: &mut Words) {
    match (shape, strides) {
        (&[a], &[s]) => words.extend_from_slice(&[1, a as u64, s as u64]),
        (&[a, b], &[s, t]) => words.extend_from_slice(&[2, a as u64, b as u64, s as u64, t as u64]),
        (&[a, b, c], &[s, t, u]) => words
            .extend_from_slice(&[3, a as u64, b as u64, c as u64, s as u64, t as u64, u as u64]),
        _ => {
            words.push(shape.len() as u64);
            shape.iter().for_each(|len| words.push(*len as u64));
            strides.iter().for_each(|stride| words.push(*stride as u64));
        }
    }
}

/// Reads what `pack` wrote, in the same order.
#[derive(Debug)]
pub(crate) struct Unpacker<'a> {
    words: &'a [u64],
    pointers: &'a [*mut u8],
}

impl<'a> Unpacker<'a> {
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

    pub(super) fn scalar<E: Element>(&mut self) -> E {
        value_of(self.take(size_of::<E>().div_ceil(8)))
    }

    /// # Safety
    ///
    /// The next argument is flat, of elements `T`, and nobody writes it for `'a`.
    pub(super) unsafe fn slice<T: Element>(&mut self) -> &'a [T] {
        let (len, start) = (self.take(1)[0] as usize, self.pointer());
        if len == 0 || size_of::<T>() == 0 {
            // SAFETY: no bytes are looked at; a dangling pointer is aligned.
            return unsafe { std::slice::from_raw_parts(std::ptr::dangling::<T>(), len) };
        }
        // SAFETY: a flat argument is unbroken, checked by `flat::check`: `len` initialised elements
        // from `start` on. Allocations of devices and of the host are aligned for any element.
        unsafe { std::slice::from_raw_parts(start.cast::<T>(), len) }
    }

    /// # Safety
    ///
    /// The next argument is flat, of elements `T`, and nobody else touches it for `'a`.
    pub(super) unsafe fn slice_mut<T: Element>(&mut self) -> &'a mut [T] {
        let (len, start) = (self.take(1)[0] as usize, self.pointer());
        if len == 0 || size_of::<T>() == 0 {
            // SAFETY: no bytes are looked at; a dangling pointer is aligned.
            return unsafe { std::slice::from_raw_parts_mut(std::ptr::dangling_mut::<T>(), len) };
        }
        // SAFETY: as in `slice`, and nobody else touches the elements.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<T>(), len) }
    }

    /// # Safety
    ///
    /// The next argument is sized, of elements `T` and dimensions `D`, and nobody writes it for
    /// `'a`.
    pub(super) unsafe fn view<T: Element, D: Dimension>(&mut self) -> ArrayView<'a, T, D> {
        let (layout, base) = self.layout::<T, D>();
        // SAFETY: the elements lie in memory that the launch declared and the backend resolved;
        // they are initialised and nobody writes them.
        unsafe { layout.view(base) }
    }

    /// # Safety
    ///
    /// The next argument is sized, of elements `T` and dimensions `D`, and nobody else touches it
    /// for `'a`.
    pub(super) unsafe fn view_mut<T: Element, D: Dimension>(&mut self) -> ArrayViewMut<'a, T, D> {
        let (layout, base) = self.layout::<T, D>();
        // SAFETY: as in `view`, and nobody else touches the elements.
        unsafe { layout.view_mut(base) }
    }

    /// The layout of a sized argument, and the pointer from which it counts: the element that lies
    /// lowest.
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

/// A closure as a body.
pub(super) struct HostBody<S, F> {
    name: Arc<str>,
    run: F,
    signature: PhantomData<fn(S)>,
}

impl<S: Signature, F: for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static> HostBody<S, F> {
    pub(super) fn new(name: Arc<str>, run: F) -> Self {
        Self { name, run, signature: PhantomData }
    }
}

// SAFETY: `run` reads the words with the signature that `Kernel` packs them with, and hands the
// body views of the declared elements alone: shared ones of what is read, exclusive ones of what is
// written.
unsafe impl<S: Signature, F: for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static> KernelBody
    for HostBody<S, F>
{
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) {
        let mut unpacker = Unpacker { words, pointers };
        // SAFETY: the caller passes the words and the resolved pointers of one launch of this
        // kernel.
        let arguments = unsafe { S::unpack(&mut unpacker) };
        (self.run)(grid, arguments);
    }
}

impl<S, F> fmt::Debug for HostBody<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBody({})", self.name)
    }
}
