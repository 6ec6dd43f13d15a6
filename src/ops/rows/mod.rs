//! Rows and their chunks: what reductions, the search for best elements and running sums share. The
//! last axis of an operand runs along its rows, and in the result along the chunks of each row.

pub(super) mod host;
pub(super) mod reducer;

use ndarray::{Axis, IxDyn};
use resident_backend::GpuSource;
use resident_backend::grid::Grid;
use smallvec::SmallVec;

use super::arithmetic::Scalar;
use super::call::Call;
use super::parallel::PARALLEL_LEN_MIN;
use super::source;
use crate::array::{Axes, Operand, OperandMut, SmartArray};
use crate::error::{Error, Result, fitting};

/// The threads of a block that serves a chunk.
const BLOCK_THREADS: u32 = 256;

/// The most blocks of a launch; each then serves several chunks.
const BLOCKS_MAX: usize = 1 << 20;

/// A block for each chunk, up to a limit.
pub(super) fn grid_of_blocks(chunks: usize) -> Grid {
    Grid::new(chunks.min(BLOCKS_MAX) as u32, BLOCK_THREADS)
}

/// A kernel of a file which `rows.cuh` precedes.
pub(super) fn source(text: &str, entry: &'static str, declarations: &str) -> GpuSource {
    source::of_file(&[include_str!("rows.cuh"), text], entry, declarations)
}

/// The length of the rows.
pub(super) fn row_len(axes: &Axes) -> usize {
    axes.shape().last().copied().unwrap_or(1)
}

/// The number of rows.
pub(super) fn row_count(axes: &Axes) -> usize {
    axes.shape().split_last().map_or(1, |(_, outer)| outer.iter().product())
}

/// The length of the chunks of an operand's rows, of which several threads work on one with
/// `in_parallel` elements. One thread has whole rows, so that there is nothing to join.
pub(super) fn chunk_len(call: &Call<'_>, axes: &Axes, in_parallel: usize) -> usize {
    let is_of_one_thread = call.runs_rust() && axes.len() < PARALLEL_LEN_MIN;
    if is_of_one_thread { row_len(axes).max(1) } else { in_parallel }
}

/// The shape of the results of chunks.
pub(super) fn shape_of_chunks(axes: &Axes, chunk: usize) -> SmallVec<[usize; 6]> {
    let mut shape = SmallVec::<[usize; 6]>::from_slice(axes.shape());
    if let Some(last) = shape.last_mut() {
        *last = last.div_ceil(chunk);
    }
    shape
}

/// An array for intermediate results, which the device alone gets.
pub(super) fn scratch<T: Scalar>(call: &Call<'_>, shape: &[usize]) -> SmartArray<T, IxDyn> {
    SmartArray::uninit_at(IxDyn(shape), call.site)
}

/// Moves the axis behind the others, and gives the result, which has no such axis, one of length 1.
pub(super) fn row_by_row<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    a: &mut Operand<'_, A>,
    axis: Axis,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    expect_axis(call, a, axis)?;
    let mut expected: SmallVec<[usize; 6]> = SmallVec::from_slice(a.axes().shape());
    expected.remove(axis.0);
    let why = format!("the shape of `a` without {axis:?}");
    call.expect_result("out", out, &expected, &why)?;
    a.axes_mut().move_to_end(axis.0);
    let last = expected.len();
    out.axes_mut().insert(last);
    Ok(())
}

/// Refuses an axis that the operand does not have.
pub(super) fn expect_axis<A: Scalar>(
    call: &Call<'_>,
    a: &Operand<'_, A>,
    axis: Axis,
) -> Result<()> {
    let count = a.axes().shape().len();
    if axis.0 < count {
        return Ok(());
    }
    let instead = match count {
        0 => String::from("a single number has no axis"),
        1 => String::from("its only axis is Axis(0)"),
        2 => String::from("its axes are Axis(0) and Axis(1)"),
        _ => format!("its axes are Axis(0) to Axis({})", count - 1),
    };
    let expected = format!("an axis of `a`, {a},");
    Err(call.shape(expected, format!("{axis:?}"), instead))
}

/// Refuses a result for a number that has not one element.
pub(super) fn expect_one<T: Scalar>(call: &Call<'_>, out: &OperandMut<'_, T>) -> Result<()> {
    if out.axes().len() == 1 {
        return Ok(());
    }
    Err(call.shape(String::from("`out` of one element"), out, fitting::to_result(&[1])))
}

/// Refuses an array without elements, which have no smallest and no mean.
#[cold]
pub(super) fn no_elements<A: Scalar>(call: &Call<'_>, a: &Operand<'_, A>) -> Error {
    let expected = String::from("`a` with at least one element");
    let of = call.name.trim_end_matches("_axis");
    let instead = format!("there is no {of} of nothing; check `is_empty()` first");
    call.shape(expected, a, instead)
}
