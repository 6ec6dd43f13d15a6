//! Bodies in Rust of reads and writes of elements whose places are given.

use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{ArrayViewD, ArrayViewMutD};
use smallvec::SmallVec;

use crate::element::Element;
use crate::ops::elementwise::host::each_of_one;
use crate::ops::parallel::{PARALLEL_LEN_MIN, TASK_LEN, each_piece};

/// The number of the first index that is not below `len`.
pub(super) fn first_beyond(len: u64, index: ArrayViewD<'_, u64>) -> Option<u64> {
    let is_beyond = |index: &u64| *index >= len;
    let Some(index) = index.as_slice().filter(|index| index.len() >= PARALLEL_LEN_MIN) else {
        return index.iter().position(is_beyond).map(|number| number as u64);
    };
    let first = AtomicU64::new(u64::MAX);
    each_piece(index.chunks(TASK_LEN).enumerate().collect(), |(piece, index)| {
        if let Some(number) = index.iter().position(is_beyond) {
            first.fetch_min((piece * TASK_LEN + number) as u64, Ordering::Relaxed);
        }
    });
    Some(first.into_inner()).filter(|first| *first != u64::MAX)
}

/// `out[i] = a[index[i]]`.
pub(super) fn gather<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    out: ArrayViewMutD<'_, W>,
) {
    match a.as_slice() {
        Some(a) => each_of_one(index, out, move |place, out| *out = a[place as usize]),
        None => each_of_one(index, out, |place, out| {
            *out = a[&place_in(a.shape(), place as usize)[..]];
        }),
    }
}

/// The index of the n-th element in row-major order.
fn place_in(shape: &[usize], mut n: usize) -> SmallVec<[usize; 6]> {
    let mut place = SmallVec::from_elem(0, shape.len());
    for (index, len) in place.iter_mut().zip(shape).rev() {
        *index = n % len;
        n /= len;
    }
    place
}

/// `out[index[i]] = a[i]`, one index after the other, so that the last of several wins.
pub(super) fn scatter<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    mut out: ArrayViewMutD<'_, W>,
) {
    if let (Some(a), Some(index), Some(out)) = (a.as_slice(), index.as_slice(), out.as_slice_mut())
    {
        return index.iter().zip(a).for_each(|(place, element)| out[*place as usize] = *element);
    }
    index.iter().zip(&a).for_each(|(place, element)| {
        let place = place_in(out.shape(), *place as usize);
        out[&place[..]] = *element;
    });
}
