//! Bodies in Rust that sort rows: by the standard library's stable sort, in pieces that are merged
//! if a row is long.

use std::cmp::Ordering;

use ndarray::{ArrayView1, ArrayViewD, ArrayViewMut1, ArrayViewMutD, Axis, Zip};

use crate::ops::arithmetic::Number;
use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// Ascending, NaN last.
fn compare<T: Number>(x: &T, y: &T) -> Ordering {
    x.partial_cmp(y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// Sorts each row.
pub(super) fn sort<T: Number>(a: ArrayViewMutD<'_, T>) {
    let is_large = a.len() >= PARALLEL_LEN_MIN;
    let sort_row = |mut row: ArrayViewMut1<'_, T>| match row.as_slice_mut() {
        Some(row) => sort_slice(row, &compare),
        None => {
            let mut copy = row.to_vec();
            sort_slice(&mut copy, &compare);
            row.iter_mut().zip(copy).for_each(|(to, from)| *to = from);
        }
    };
    let mut a = a;
    if is_large && a.len() / row_len(a.shape()) > 1 {
        return each_piece(pieces_of(a, &halves), |mut rows| {
            rows.rows_mut().into_iter().for_each(sort_row);
        });
    }
    a.rows_mut().into_iter().for_each(sort_row);
}

/// The places of the elements of each row in sorted order.
pub(super) fn argsort<T: Number>(a: ArrayViewD<'_, T>, mut out: ArrayViewMutD<'_, u64>) {
    Zip::from(out.rows_mut()).and(a.rows()).for_each(|mut out, a| {
        let mut places: Vec<u64> = (0..a.len() as u64).collect();
        sort_places(&mut places, a);
        out.iter_mut().zip(places).for_each(|(out, place)| *out = place);
    });
}

fn sort_places<T: Number>(places: &mut [u64], a: ArrayView1<'_, T>) {
    match a.as_slice() {
        Some(a) => sort_slice(places, &|x, y| compare(&a[*x as usize], &a[*y as usize])),
        None => sort_slice(places, &|x, y| compare(&a[*x as usize], &a[*y as usize])),
    }
}

fn row_len(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1).max(1)
}

/// Halves rows until few are left.
fn halves<T>(a: ArrayViewMutD<'_, T>) -> Halves<ArrayViewMutD<'_, T>> {
    let rows = a.ndim() - 1;
    let longest = (0..rows).max_by_key(|axis| a.shape()[*axis]);
    let axis = longest.filter(|axis| a.shape()[*axis] > 1 && a.len() > TASK_LEN);
    let Some(axis) = axis else { return (a, None) };
    let middle = a.shape()[axis] / 2;
    let (first, second) = a.split_at(Axis(axis), middle);
    (first, Some(second))
}

/// Sorts a slice, by all cores if it is long.
fn sort_slice<T: Copy + Send + Sync>(
    all: &mut [T],
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    if all.len() < PARALLEL_LEN_MIN {
        return all.sort_by(compare);
    }
    let mut width = all.len().div_ceil(16);
    each_piece(all.chunks_mut(width).collect(), |run| run.sort_by(compare));
    let mut copy = all.to_vec();
    let mut is_in_copy = false;
    while width < all.len() {
        let (from, to) = if is_in_copy { (&*copy, &mut *all) } else { (&*all, &mut *copy) };
        let pairs = from.chunks(2 * width).zip(to.chunks_mut(2 * width));
        each_piece(pairs.collect(), |(from, to)| {
            let (left, right) = from.split_at(width.min(from.len()));
            merge(left, right, to, compare);
        });
        is_in_copy = !is_in_copy;
        width *= 2;
    }
    if is_in_copy {
        all.copy_from_slice(&copy);
    }
}

/// Merges two sorted runs. Of equal elements, those of the left come first.
fn merge<'a, T: Copy>(
    mut left: &'a [T],
    mut right: &'a [T],
    to: &mut [T],
    compare: &impl Fn(&T, &T) -> Ordering,
) {
    for out in to {
        let from = match (left.first(), right.first()) {
            (Some(x), Some(y)) if compare(y, x) == Ordering::Less => &mut right,
            (Some(_), _) => &mut left,
            _ => &mut right,
        };
        let Some((first, rest)) = from.split_first() else { return };
        (*out, *from) = (*first, rest);
    }
}
