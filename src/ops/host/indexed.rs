//! Bodies in Rust of reads and writes of elements whose places are given.

use ndarray::{ArrayViewD, ArrayViewMutD};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator};
use smallvec::SmallVec;

use super::zip::each_of_one;
use crate::element::Element;
use crate::ops::parallel::{PARALLEL_LEN_MIN, with_threads};

/// The number of the first index that is not below `len`.
pub(in crate::ops) fn first_beyond(len: u64, index: ArrayViewD<'_, u64>) -> Option<u64> {
    let is_beyond = |index: &u64| *index >= len;
    let mut first = None;
    match index.as_slice() {
        Some(index) if index.len() >= PARALLEL_LEN_MIN => {
            with_threads(|| first = index.par_iter().position_first(is_beyond));
        }
        _ => first = index.iter().position(is_beyond),
    }
    first.map(|number| number as u64)
}

/// `out[i] = a[index[i]]`.
pub(in crate::ops) fn gather<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    out: ArrayViewMutD<'_, W>,
) {
    match a.as_slice() {
        Some(a) => each_of_one(index, out, |place, out| *out = a[place as usize]),
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

/// For each place, one more than the number of the last index that leads there.
pub(in crate::ops) fn last_writers(index: ArrayViewD<'_, u64>, mut last: ArrayViewMutD<'_, u64>) {
    let Some(last) = last.as_slice_mut() else { unreachable!("a new array") };
    (1..).zip(&index).for_each(|(number, place)| last[*place as usize] = number);
}

/// `out[index[i]] = a[i]`, where the last of several wins.
pub(in crate::ops) fn scatter<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    last: ArrayViewD<'_, u64>,
    mut out: ArrayViewMutD<'_, W>,
) {
    if index.len() >= PARALLEL_LEN_MIN
        && let Ok(last) = last.to_shape(out.shape())
    {
        return each_of_one(last.view(), out, |number, out| {
            if let Some(number) = number.checked_sub(1) {
                *out = a[&place_in(a.shape(), number as usize)[..]];
            }
        });
    }
    match out.as_slice_mut() {
        Some(out) => index.iter().zip(&a).for_each(|(place, a)| out[*place as usize] = *a),
        None => index.iter().zip(&a).for_each(|(place, a)| {
            let place = place_in(out.shape(), *place as usize);
            out[&place[..]] = *a;
        }),
    }
}
