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

/// For each place, one more than the number of the last index that leads there, and 0 for places to
/// which no index leads.
pub(super) fn last_writers(index: ArrayViewD<'_, u64>, mut last: ArrayViewMutD<'_, u64>) {
    let Some(last) = last.as_slice_mut() else { unreachable!("a new array") };
    for (number, place) in index.iter().enumerate() {
        last[*place as usize] = number as u64 + 1;
    }
}

/// `out[index[i]] = a[i]`, where the last of several wins. `last` is from [`last_writers`].
pub(super) fn scatter<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    last: ArrayViewD<'_, u64>,
    out: ArrayViewMutD<'_, W>,
) {
    if index.len() >= PARALLEL_LEN_MIN
        && let Ok(last) = last.to_shape(out.shape())
    {
        each_place_reads(a, last.view(), out);
    } else {
        each_index_writes(a, index, out);
    }
}

/// By all cores: each place takes the element that its last index brings.
fn each_place_reads<W: Element>(
    a: ArrayViewD<'_, W>,
    last: ArrayViewD<'_, u64>,
    out: ArrayViewMutD<'_, W>,
) {
    each_of_one(last, out, |last, out| {
        if let Some(number) = last.checked_sub(1) {
            *out = a[&place_in(a.shape(), number as usize)[..]];
        }
    });
}

/// One index after the other, so that the last of several wins.
fn each_index_writes<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    mut out: ArrayViewMutD<'_, W>,
) {
    let writes = index.iter().zip(&a).map(|(place, element)| (*place as usize, *element));
    match out.as_slice_mut() {
        Some(out) => writes.for_each(|(place, element)| out[place] = element),
        None => writes.for_each(|(place, element)| {
            let place = place_in(out.shape(), place);
            out[&place[..]] = element;
        }),
    }
}
