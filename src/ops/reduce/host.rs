//! Bodies in Rust of reductions: each row of the operand, or each chunk of a row, gives one element
//! of the result. The last axis runs along the rows, and in the result along their chunks.
//!
//! Sums are made of leaves of at most 512 elements, which 16 accumulators share, and the leaves are
//! added in pairs, pairs of pairs and so on.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Axis, Ix2};

use crate::ops::arithmetic::Scalar;
use crate::ops::rows::host::{SIDE_BY_SIDE, are_side_by_side, each_chunk, in_groups};

/// The accumulators of a leaf, enough for the vector units.
pub(in crate::ops) const LANES: usize = 16;

/// The most elements of a leaf.
pub(in crate::ops) const LEAF_LEN: usize = 512;

/// The most elements of each of the rows that are reduced side by side one after the other.
const COLUMN_LEAF_LEN: usize = 32;

/// How two elements become one.
pub(in crate::ops) trait Fold<T>: Sync {
    /// The value to begin with, if this is the first element.
    fn start(first: T) -> T;
    fn join(one: T, other: T) -> T;
}

pub(in crate::ops) enum Sum {}
pub(in crate::ops) enum Min {}
pub(in crate::ops) enum Max {}
pub(in crate::ops) enum Product {}

impl<T: Scalar> Fold<T> for Sum {
    #[inline]
    fn start(_first: T) -> T {
        T::ZERO
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        one.plus(other)
    }
}

impl<T: Scalar> Fold<T> for Product {
    #[inline]
    fn start(_first: T) -> T {
        T::from_u8(1)
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        one.times(other)
    }
}

impl<T: Scalar> Fold<T> for Min {
    #[inline]
    fn start(first: T) -> T {
        first
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        if one.is_less(other) || one.is_nan() { one } else { other }
    }
}

impl<T: Scalar> Fold<T> for Max {
    #[inline]
    fn start(first: T) -> T {
        first
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        if other.is_less(one) || one.is_nan() { one } else { other }
    }
}

/// Reduces the terms of the elements of each chunk of each row.
pub(in crate::ops) fn reduce<A: Scalar, T: Scalar, F: Fold<T>>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    out: ArrayViewMutD<'_, T>,
    term: &(impl Fn(A) -> T + Sync),
) {
    in_groups(chunk, a, out, &|a, out| {
        if are_side_by_side(&a) {
            columns::<A, T, F>(chunk, a, out, term);
        } else {
            each_chunk(chunk, a, out, &|row| of_line::<A, T, F>(row, term));
        }
    });
}

/// The reduction of the elements of a line.
fn of_line<A: Scalar, T: Scalar, F: Fold<T>>(line: ArrayView1<'_, A>, term: &impl Fn(A) -> T) -> T {
    match line.as_slice() {
        Some(line) => of_slice::<A, T, F>(line, term),
        None => of_strided::<A, T, F>(line, term),
    }
}

fn of_slice<A: Scalar, T: Scalar, F: Fold<T>>(line: &[A], term: &impl Fn(A) -> T) -> T {
    if line.len() <= LEAF_LEN {
        return leaf::<A, T, F>(line, term);
    }
    let (first, second) = line.split_at(middle(line.len()));
    F::join(of_slice::<A, T, F>(first, term), of_slice::<A, T, F>(second, term))
}

/// About half, in whole leaves.
pub(in crate::ops) fn middle(len: usize) -> usize {
    (len / 2).next_multiple_of(LEAF_LEN)
}

fn leaf<A: Scalar, T: Scalar, F: Fold<T>>(line: &[A], term: &impl Fn(A) -> T) -> T {
    if line.len() < LANES {
        let start = F::start(term(line[0]));
        return line.iter().fold(start, |all, element| F::join(all, term(*element)));
    }
    let mut lanes = [F::start(term(line[0])); LANES];
    let (blocks, rest) = line.as_chunks::<LANES>();
    for block in blocks {
        for (lane, element) in lanes.iter_mut().zip(block) {
            *lane = F::join(*lane, term(*element));
        }
    }
    for (lane, element) in lanes.iter_mut().zip(rest) {
        *lane = F::join(*lane, term(*element));
    }
    of_lanes::<T, F>(lanes)
}

/// Joins the accumulators in pairs, pairs of pairs and so on.
pub(in crate::ops) fn of_lanes<T: Scalar, F: Fold<T>>(mut lanes: [T; LANES]) -> T {
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for lane in 0..count {
            lanes[lane] = F::join(lanes[lane], lanes[lane + count]);
        }
    }
    lanes[0]
}

fn of_strided<A: Scalar, T: Scalar, F: Fold<T>>(
    line: ArrayView1<'_, A>,
    term: &impl Fn(A) -> T,
) -> T {
    if line.len() <= COLUMN_LEAF_LEN {
        let start = F::start(term(line[0]));
        return line.iter().fold(start, |all, element| F::join(all, term(*element)));
    }
    let (first, second) = line.split_at(Axis(0), line.len() / 2);
    F::join(of_strided::<A, T, F>(first, term), of_strided::<A, T, F>(second, term))
}

/// Reduces rows that lie side by side in memory.
fn columns<A: Scalar, T: Scalar, F: Fold<T>>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    mut out: ArrayViewMutD<'_, T>,
    term: &impl Fn(A) -> T,
) {
    if a.ndim() > 2 {
        let pairs = a.outer_iter().zip(out.outer_iter_mut());
        return pairs.for_each(|(a, out)| columns::<A, T, F>(chunk, a, out, term));
    }
    let (Ok(a), Ok(mut out)) = (a.into_dimensionality::<Ix2>(), out.into_dimensionality::<Ix2>())
    else {
        unreachable!("two axes")
    };
    let parts = a.axis_chunks_iter(Axis(0), SIDE_BY_SIDE);
    for (a, mut out) in parts.zip(out.axis_chunks_iter_mut(Axis(0), SIDE_BY_SIDE)) {
        columns_of_part::<A, T, F>(chunk, a, &mut out, term);
    }
}

fn columns_of_part<A: Scalar, T: Scalar, F: Fold<T>>(
    chunk: usize,
    a: ArrayView2<'_, A>,
    out: &mut ArrayViewMut2<'_, T>,
    term: &impl Fn(A) -> T,
) {
    let mut sums = [T::ZERO; SIDE_BY_SIDE];
    for (a, mut out) in a.axis_chunks_iter(Axis(1), chunk).zip(out.columns_mut()) {
        of_columns::<A, T, F>(a, &mut sums[..a.nrows()], term);
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = *sum);
    }
}

fn of_columns<A: Scalar, T: Scalar, F: Fold<T>>(
    a: ArrayView2<'_, A>,
    sums: &mut [T],
    term: &impl Fn(A) -> T,
) {
    if a.ncols() > COLUMN_LEAF_LEN {
        let (first, second) = a.split_at(Axis(1), a.ncols() / 2);
        of_columns::<A, T, F>(first, sums, term);
        let mut others = [T::ZERO; SIDE_BY_SIDE];
        let others = &mut others[..sums.len()];
        of_columns::<A, T, F>(second, others, term);
        return sums.iter_mut().zip(others).for_each(|(sum, other)| *sum = F::join(*sum, *other));
    }
    sums.iter_mut().zip(a.column(0)).for_each(|(sum, first)| *sum = F::start(term(*first)));
    for columns in a.axis_chunks_iter(Axis(1), 4) {
        let column = |index: usize| columns.index_axis_move(Axis(1), index);
        if columns.ncols() == 4
            && let (Some(a), Some(b)) = (column(0).to_slice(), column(1).to_slice())
            && let (Some(c), Some(d)) = (column(2).to_slice(), column(3).to_slice())
        {
            let len = sums.len();
            let (a, b, c, d) = (&a[..len], &b[..len], &c[..len], &d[..len]);
            for (index, sum) in sums.iter_mut().enumerate() {
                let first = F::join(term(a[index]), term(b[index]));
                let second = F::join(term(c[index]), term(d[index]));
                *sum = F::join(*sum, F::join(first, second));
            }
        } else {
            for column in columns.columns() {
                let pairs = sums.iter_mut().zip(column);
                pairs.for_each(|(sum, element)| *sum = F::join(*sum, term(*element)));
            }
        }
    }
}
