//! The walk over rows and chunks of the bodies in Rust, by all cores if there are many elements.

use ndarray::{ArrayView1, ArrayViewD, ArrayViewMutD, Axis, Zip};

use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// The most rows that are reduced side by side.
pub(in crate::ops) const SIDE_BY_SIDE: usize = 2048;

/// Calls `run` with groups of rows, or with groups of chunks of one row: on all cores if there are
/// many elements.
pub(in crate::ops) fn in_groups<A: Sync, U: Send, Run>(
    chunk: usize,
    a: ArrayViewD<'_, A>,
    out: ArrayViewMutD<'_, U>,
    run: &Run,
) where
    Run: Fn(ArrayViewD<'_, A>, ArrayViewMutD<'_, U>) + Sync,
{
    if a.len() < PARALLEL_LEN_MIN {
        return run(a, out);
    }
    let pieces = pieces_of((a, out), &|(a, out)| halves(chunk, a, out));
    each_piece(pieces, |(a, out)| run(a, out));
}

/// Rows, and the chunks that belong to them in the result.
type Rows<'a, 'o, A, U> = (ArrayViewD<'a, A>, ArrayViewMutD<'o, U>);

/// The halves of a piece that is longer than a task.
fn halves<'a, 'o, A, U>(
    chunk: usize,
    a: ArrayViewD<'a, A>,
    out: ArrayViewMutD<'o, U>,
) -> Halves<Rows<'a, 'o, A, U>> {
    let Some(axis) = axis_to_split(&a, out.shape()) else { return ((a, out), None) };
    let is_last = axis + 1 == a.ndim();
    let middle = out.shape()[axis] / 2;
    let (first, second) = out.split_at(Axis(axis), middle);
    let (one, other) = a.split_at(Axis(axis), if is_last { middle * chunk } else { middle });
    ((one, first), Some((other, second)))
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
        let len_min = |axis: usize| if axis + 1 == last { 2 * SIDE_BY_SIDE } else { 2 };
        let is_wide = |axis: &usize| a.shape()[*axis] >= len_min(*axis);
        return if can_cut { Some(last) } else { (0..last).find(is_wide) };
    }
    let longest = (0..last).max_by_key(|axis| a.shape()[*axis]);
    longest.filter(|axis| a.shape()[*axis] > 1).or(can_cut.then_some(last))
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
pub(in crate::ops) fn are_side_by_side<T>(a: &ArrayViewD<'_, T>) -> bool {
    let strides = a.strides();
    let [.., beside, along] = strides else { return false };
    let last = a.ndim() - 2;
    a.shape()[last] >= 8 && beside.unsigned_abs() < along.unsigned_abs()
}
