//! Bodies in Rust of reductions: each row of the operand, or each chunk of a row, gives one element
//! of the result. The last axis runs along the rows, and in the result along their chunks.
//!
//! Sums are made of leaves of at most 512 elements, which 16 accumulators share, and the leaves are
//! added in pairs, pairs of pairs and so on.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Axis, Ix2, Zip};

use crate::ops::elements::Number;
use crate::ops::parallel::{PARALLEL_LEN_MIN, TASK_LEN, with_threads};

/// The accumulators of a leaf, enough for the vector units.
const LANES: usize = 16;

/// The most elements of a leaf.
const LEAF_LEN: usize = 512;

/// The most rows that are reduced side by side.
const SIDE_BY_SIDE: usize = 2048;

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

impl<T: Number> Fold<T> for Sum {
    #[inline]
    fn start(_first: T) -> T {
        T::ZERO
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        one.plus(other)
    }
}

impl<T: Number> Fold<T> for Min {
    #[inline]
    fn start(first: T) -> T {
        first
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        if one < other || one.is_nan() { one } else { other }
    }
}

impl<T: Number> Fold<T> for Max {
    #[inline]
    fn start(first: T) -> T {
        first
    }
    #[inline]
    fn join(one: T, other: T) -> T {
        if one > other || one.is_nan() { one } else { other }
    }
}

/// Calls `run` with groups of rows, or with groups of chunks of one row: on all cores if there are
/// many elements.
pub(in crate::ops) fn in_groups<A: Sync, U: Send>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    out: ArrayViewMutD<'_, U>,
    run: &(impl Fn(ArrayViewD<'_, A>, ArrayViewMutD<'_, U>) + Sync),
) {
    match a.len() < PARALLEL_LEN_MIN {
        true => run(a, out),
        false => with_threads(|| split(chunk, a, out, run)),
    }
}

fn split<A: Sync, U: Send>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    out: ArrayViewMutD<'_, U>,
    run: &(impl Fn(ArrayViewD<'_, A>, ArrayViewMutD<'_, U>) + Sync),
) {
    let Some(axis) = axis_to_split(&a, out.shape()) else { return run(a, out) };
    let is_last = axis + 1 == a.ndim();
    let middle = out.shape()[axis] / 2;
    let (first, second) = out.split_at(Axis(axis), middle);
    let (one, other) = a.split_at(Axis(axis), if is_last { middle * chunk } else { middle });
    rayon::join(|| split(chunk, one, first, run), || split(chunk, other, second, run));
}

/// The axis along which a task is halved; none if it is small. Rows that lie side by side are cut
/// into chunks first, so that many of them stay together.
fn axis_to_split<A>(a: &ArrayViewD<'_, A>, shape_of_chunks: &[usize]) -> Option<usize> {
    let last = a.ndim() - 1;
    let can_cut = shape_of_chunks[last] > 1;
    if a.len() <= TASK_LEN {
        return None;
    }
    if are_side_by_side(a) {
        let is_wide = |axis: &usize| match *axis + 1 == last {
            true => a.shape()[*axis] >= 2 * SIDE_BY_SIDE,
            false => a.shape()[*axis] > 1,
        };
        return if can_cut { Some(last) } else { (0..last).find(is_wide) };
    }
    let longest = (0..last).max_by_key(|axis| a.shape()[*axis]);
    longest.filter(|axis| a.shape()[*axis] > 1).or(can_cut.then_some(last))
}

/// Reduces the terms of the elements of each chunk of each row.
pub(in crate::ops) fn reduce<A: Number, T: Number, F: Fold<T>>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    out: ArrayViewMutD<'_, T>,
    term: &(impl Fn(A) -> T + Sync),
) {
    in_groups(chunk, a, out, &|a, out| match are_side_by_side(&a) {
        true => columns::<A, T, F>(chunk, a, out, term),
        false => each_chunk(chunk, a, out, &|row| of_line::<A, T, F>(row, term)),
    });
}

/// Calls `value` with each chunk of each row.
pub(in crate::ops) fn each_chunk<A, U>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    mut out: ArrayViewMutD<'_, U>,
    value: &impl Fn(ArrayView1<'_, A>) -> U,
) {
    Zip::from(out.rows_mut()).and(a.rows()).for_each(|mut out, row| {
        let chunks = row.axis_chunks_iter(Axis(0), chunk);
        out.iter_mut().zip(chunks).for_each(|(out, chunk)| *out = value(chunk));
    });
}

/// Whether another axis than that of the rows is the fastest in memory, so that many rows are
/// reduced at once.
fn are_side_by_side<T>(a: &ArrayViewD<'_, T>) -> bool {
    let strides = a.strides();
    let [.., beside, along] = strides else { return false };
    let last = a.ndim() - 2;
    a.shape()[last] >= 8 && beside.unsigned_abs() < along.unsigned_abs()
}

/// The reduction of the elements of a line.
fn of_line<A: Number, T: Number, F: Fold<T>>(line: ArrayView1<'_, A>, term: &impl Fn(A) -> T) -> T {
    match line.as_slice() {
        Some(line) => of_slice::<A, T, F>(line, term),
        None => of_strided::<A, T, F>(line, term),
    }
}

fn of_slice<A: Number, T: Number, F: Fold<T>>(line: &[A], term: &impl Fn(A) -> T) -> T {
    if line.len() <= LEAF_LEN {
        return leaf::<A, T, F>(line, term);
    }
    let (first, second) = line.split_at(middle(line.len()));
    F::join(of_slice::<A, T, F>(first, term), of_slice::<A, T, F>(second, term))
}

/// About half, in whole leaves.
fn middle(len: usize) -> usize {
    (len / 2).next_multiple_of(LEAF_LEN)
}

fn leaf<A: Number, T: Number, F: Fold<T>>(line: &[A], term: &impl Fn(A) -> T) -> T {
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

fn of_lanes<T: Number, F: Fold<T>>(mut lanes: [T; LANES]) -> T {
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for lane in 0..count {
            lanes[lane] = F::join(lanes[lane], lanes[lane + count]);
        }
    }
    lanes[0]
}

fn of_strided<A: Number, T: Number, F: Fold<T>>(
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
fn columns<A: Number, T: Number, F: Fold<T>>(
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

fn columns_of_part<A: Number, T: Number, F: Fold<T>>(
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

fn of_columns<A: Number, T: Number, F: Fold<T>>(
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

/// The sums of products of the chunks of two lines.
pub(in crate::ops) fn dot<T: Number>(
    chunk: usize,
    a: ArrayViewD<'_, T>,
    b: ArrayViewD<'_, T>,
    out: ArrayViewMutD<'_, T>,
) {
    let run = |a: ArrayViewD<'_, T>, b: ArrayViewD<'_, T>, mut out: ArrayViewMutD<'_, T>| {
        Zip::from(out.rows_mut()).and(a.rows()).and(b.rows()).for_each(|mut out, a, b| {
            let chunks = a.axis_chunks_iter(Axis(0), chunk).zip(b.axis_chunks_iter(Axis(0), chunk));
            out.iter_mut().zip(chunks).for_each(|(out, (a, b))| *out = dot_of_lines(a, b));
        });
    };
    match a.len() < PARALLEL_LEN_MIN {
        true => run(a, b, out),
        false => with_threads(|| split_dot(chunk, a, b, out, &run)),
    }
}

fn split_dot<T: Number>(
    chunk: usize,
    a: ArrayViewD<'_, T>,
    b: ArrayViewD<'_, T>,
    out: ArrayViewMutD<'_, T>,
    run: &(impl Fn(ArrayViewD<'_, T>, ArrayViewD<'_, T>, ArrayViewMutD<'_, T>) + Sync),
) {
    let last = a.ndim() - 1;
    let axis = (0..last).find(|axis| a.shape()[*axis] > 1).unwrap_or(last);
    if a.len() <= TASK_LEN || out.shape()[axis] < 2 {
        return run(a, b, out);
    }
    let middle = out.shape()[axis] / 2;
    let (first, second) = out.split_at(Axis(axis), middle);
    let at = if axis == last { middle * chunk } else { middle };
    let (a, b) = (a.split_at(Axis(axis), at), b.split_at(Axis(axis), at));
    rayon::join(
        || split_dot(chunk, a.0, b.0, first, run),
        || split_dot(chunk, a.1, b.1, second, run),
    );
}

fn dot_of_lines<T: Number>(a: ArrayView1<'_, T>, b: ArrayView1<'_, T>) -> T {
    if a.len() > LEAF_LEN {
        let middle = middle(a.len());
        let (a, b) = (a.split_at(Axis(0), middle), b.split_at(Axis(0), middle));
        return dot_of_lines(a.0, b.0).plus(dot_of_lines(a.1, b.1));
    }
    let mut lanes = [T::ZERO; LANES];
    if let (Some(a), Some(b)) = (a.as_slice(), b.as_slice()) {
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                lanes[lane] = lanes[lane].plus(a[lane].times(b[lane]));
            }
        }
        let rest = rest_of_a.iter().zip(rest_of_b);
        lanes.iter_mut().zip(rest).for_each(|(lane, (a, b))| *lane = lane.plus(a.times(*b)));
    } else {
        for (index, (a, b)) in a.iter().zip(b).enumerate() {
            let lane = &mut lanes[index % LANES];
            *lane = lane.plus(a.times(*b));
        }
    }
    of_lanes::<T, Sum>(lanes)
}

/// The index of the first smallest element of a line, or of the first NaN; with `is_better` the
/// other way round, of the largest.
pub(in crate::ops) fn best_of<T: Number>(
    line: impl Iterator<Item = (u64, T)>,
    is_better: &impl Fn(T, T) -> bool,
) -> u64 {
    let mut best: Option<(u64, T)> = None;
    for (index, element) in line {
        match best {
            Some((_, value)) if !is_better(element, value) => {}
            _ => best = Some((index, element)),
        }
    }
    best.map_or(0, |(index, _)| index)
}
