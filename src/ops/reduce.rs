//! Reductions: of all elements, and along an axis.
//!
//! One kernel reduces chunks of rows. Where a row has several chunks, their results are reduced in
//! turn. The chunks depend on the shape alone, so that results do not change from run to run.

use ndarray::{Axis, IxDyn};
use smallvec::SmallVec;

use super::align;
use super::cache;
use super::call::{self, Call};
use super::elements::Number;
use super::elementwise;
use super::host::rows::{self, Fold, Max, Min, Sum};
use super::host::zip;
use super::source::{self, Parameter};
use crate::array::{AnyView, AnyViewMut, Axes, Operand, OperandMut, SmartArray};
use crate::error::{Error, Result};
use crate::launch::{In, InOut, Kernel, Out};
use resident_backend::grid::Grid;

type ReduceKernel<A, T> = Kernel<(i64, In<A, IxDyn>, Out<T, IxDyn>)>;
type DotKernel<T> = Kernel<(i64, In<T, IxDyn>, In<T, IxDyn>, Out<T, IxDyn>)>;
type DivideKernel<T> = Kernel<(u64, InOut<T, IxDyn>)>;
type RootKernel<T> = Kernel<(InOut<T, IxDyn>,)>;

/// The threads of a block that reduces a chunk.
pub(super) const BLOCK_THREADS: u32 = 256;

/// The most blocks of a launch; each then reduces several chunks.
const BLOCKS_MAX: usize = 1 << 20;

/// The elements of a chunk that a block reduces.
const BLOCK_CHUNK: usize = 8192;

/// The elements of a chunk that a thread reduces, where there are too few rows for a thread each.
const THREAD_CHUNK: usize = 256;

/// From this many rows on, each has one thread.
const ROWS_MAX: usize = 1 << 14;

/// A row that is shorter than this is not worth a block, if another axis is longer.
const SHORT_ROW: usize = 64;

/// What a reduction does with the elements, and then with pairs.
#[derive(Clone, Copy)]
pub(super) enum Reduction {
    Sum,
    SumOfSquares,
    Min,
    Max,
}

impl Reduction {
    /// The name, and the name of the kernel that reduces each chunk by one thread.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Sum => ["ops::sum", "ops::sum by thread"],
            Self::SumOfSquares => ["ops::norm_l2", "ops::norm_l2 by thread"],
            Self::Min => ["ops::min", "ops::min by thread"],
            Self::Max => ["ops::max", "ops::max by thread"],
        }
    }

    /// How the results of chunks are reduced.
    fn next(self) -> Self {
        if let Self::SumOfSquares = self { Self::Sum } else { self }
    }

    /// The functions of the kernel in CUDA C.
    fn functions<T: Number>(self) -> String {
        let term = match self {
            Self::SumOfSquares => "T(x) * T(x)",
            _ => "T(x)",
        };
        let join = match (self, T::IS_FLOAT) {
            (Self::Sum | Self::SumOfSquares, _) => "T(W(x) + W(y))",
            (Self::Min, true) => "x < y || x != x ? x : y",
            (Self::Min, false) => "x < y ? x : y",
            (Self::Max, true) => "x > y || x != x ? x : y",
            (Self::Max, false) => "x > y ? x : y",
        };
        source::function("T term(A x)", term)
            + &source::function("T join(T x, T y)", join)
            + &source::function("bool better(T x, T y)", "x < y")
    }
}

/// How the rows of an operand are cut into chunks.
#[derive(Clone, Copy)]
struct Cut {
    chunk: usize,
    is_by_thread: bool,
}

impl Cut {
    /// Whether rows lie side by side in memory decides whether one thread or one block reduces a
    /// chunk.
    fn of(axes: &Axes) -> Self {
        let (len, rows) = row_len_and_count(axes);
        let last = axes.shape().len() - 1;
        let beside = axes.strides()[..last].iter().map(|stride| stride.unsigned_abs()).min();
        let is_by_thread =
            rows >= 32 && beside.is_some_and(|beside| beside < axes.strides()[last].unsigned_abs());
        let chunk = match is_by_thread {
            true if rows >= ROWS_MAX => len,
            true => THREAD_CHUNK,
            false => BLOCK_CHUNK,
        };
        Self { chunk, is_by_thread }
    }

    fn grid(self, items: usize) -> Grid {
        match self.is_by_thread {
            true => call::cover(items),
            false => grid_of_blocks(items),
        }
    }
}

/// A block for each item, up to a limit.
pub(super) fn grid_of_blocks(items: usize) -> Grid {
    Grid::new(items.min(BLOCKS_MAX) as u32, BLOCK_THREADS)
}

/// The length of the rows, and their number.
pub(super) fn row_len_and_count(axes: &Axes) -> (usize, usize) {
    let (len, outer) = axes.shape().split_last().map_or((1, &[][..]), |(len, outer)| (*len, outer));
    (len, outer.iter().product())
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
pub(super) fn scratch<T: Number>(call: &Call<'_>, shape: &[usize]) -> SmartArray<T, IxDyn> {
    SmartArray::uninit_at(IxDyn(shape), call.site)
}

/// Reduces all elements to the one of `out`.
pub(super) fn whole<A: Number, T: Number>(
    call: &Call<'_>,
    reduction: Reduction,
    a: &impl AnyView<A>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (a, mut out) = (Operand::of(a), OperandMut::of(out));
    expect_one(call, &out)?;
    if a.axes().len() == 0 {
        return of_nothing(call, reduction, &a, &mut out);
    }
    align::in_any_order([out.axes_mut()]);
    reduce_all(call, reduction, a, &mut out)
}

/// Refuses a result for a number that has not one element.
pub(super) fn expect_one<T: Number>(call: &Call<'_>, out: &OperandMut<'_, T>) -> Result<()> {
    match out.axes().len() {
        1 => Ok(()),
        _ => Err(call.shape(String::from("a result of one element"), out.to_string())),
    }
}

fn reduce_all<A: Number, T: Number>(
    call: &Call<'_>,
    reduction: Reduction,
    mut a: Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    align::in_any_order([a.axes_mut()]);
    put_long_axis_last(a.axes_mut());
    let cut = Cut::of(a.axes());
    let shape = shape_of_chunks(a.axes(), cut.chunk);
    if shape.iter().product::<usize>() == 1 {
        return launch(call, (reduction, cut), &a, out);
    }
    let mut partial = scratch::<T>(call, &shape);
    launch(call, (reduction, cut), &a, &mut OperandMut::of(&mut partial))?;
    reduce_all(call, reduction.next(), Operand::of(&partial), out)
}

fn put_long_axis_last(axes: &mut Axes) {
    let shape = axes.shape();
    let longest = (0..shape.len()).max_by_key(|axis| shape[*axis]).unwrap_or(0);
    if shape[shape.len() - 1] < SHORT_ROW {
        axes.move_to_end(longest);
    }
}

/// Reduces along an axis.
pub(super) fn along<A: Number, T: Number>(
    call: &Call<'_>,
    reduction: Reduction,
    (a, axis): (&impl AnyView<A>, Axis),
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    row_by_row(call, (&mut a, axis), &mut out)?;
    if out.axes().len() == 0 {
        return Ok(());
    }
    if a.axes().len() == 0 {
        return of_nothing(call, reduction, &a, &mut out);
    }
    reduce_rows(call, reduction, a, &mut out)
}

/// Moves the axis behind the others, and gives the result, which has no such axis, one of length 1.
pub(super) fn row_by_row<A: Number, T: Number>(
    call: &Call<'_>,
    (a, axis): (&mut Operand<'_, A>, Axis),
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    expect_axis(call, a, axis)?;
    let mut expected: SmallVec<[usize; 6]> = SmallVec::from_slice(a.axes().shape());
    expected.remove(axis.0);
    call.expect_shape(&expected, out.axes().shape(), &*out)?;
    a.axes_mut().move_to_end(axis.0);
    let last = expected.len();
    out.axes_mut().insert(last);
    Ok(())
}

pub(super) fn expect_axis<A: Number>(
    call: &Call<'_>,
    a: &Operand<'_, A>,
    axis: Axis,
) -> Result<()> {
    match axis.0 < a.axes().shape().len() {
        true => Ok(()),
        false => Err(call.shape(format!("an array with {axis:?}"), a.to_string())),
    }
}

fn reduce_rows<A: Number, T: Number>(
    call: &Call<'_>,
    reduction: Reduction,
    mut a: Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    align::rows([a.axes_mut(), out.axes_mut()]);
    let cut = Cut::of(a.axes());
    let shape = shape_of_chunks(a.axes(), cut.chunk);
    if shape.last() == Some(&1) {
        return launch(call, (reduction, cut), &a, out);
    }
    // Rows that lie side by side get results that do.
    let mut shape = shape;
    if cut.is_by_thread {
        shape.rotate_right(1);
    }
    let mut partial = scratch::<T>(call, &shape);
    let mut results = OperandMut::of(&mut partial);
    put_chunks_last(results.axes_mut(), cut);
    launch(call, (reduction, cut), &a, &mut results)?;
    let mut results = Operand::of(&partial);
    put_chunks_last(results.axes_mut(), cut);
    reduce_rows(call, reduction.next(), results, out)
}

fn put_chunks_last(axes: &mut Axes, cut: Cut) {
    if cut.is_by_thread {
        axes.move_to_end(0);
    }
}

/// Stores the sums of the chunks of each row.
pub(super) fn sums_of_chunks<T: Number>(
    call: &Call<'_>,
    chunk: usize,
    a: &Operand<'_, T>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    launch(call, (Reduction::Sum, Cut { chunk, is_by_thread: false }), a, out)
}

fn launch<A: Number, T: Number>(
    call: &Call<'_>,
    (reduction, cut): (Reduction, Cut),
    a: &Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    let (rank, grid) = (a.axes().shape().len(), cut.grid(out.axes().len()));
    let kernel = match reduction {
        Reduction::Sum => kernel::<A, T, Sum>(reduction, cut, rank, A::to::<T>),
        Reduction::Min => kernel::<A, T, Min>(reduction, cut, rank, A::to::<T>),
        Reduction::Max => kernel::<A, T, Max>(reduction, cut, rank, A::to::<T>),
        Reduction::SumOfSquares => kernel::<A, T, Sum>(reduction, cut, rank, |element: A| {
            let element = element.to::<T>();
            element.times(element)
        }),
    };
    call.launch(kernel, grid, (cut.chunk as i64, a, out))
}

fn kernel<A: Number, T: Number, F: Fold<T> + 'static>(
    reduction: Reduction,
    cut: Cut,
    rank: usize,
    term: impl Fn(A) -> T + Send + Sync + 'static,
) -> &'static ReduceKernel<A, T> {
    let [title, by_thread] = reduction.names();
    let (name, entry) =
        if cut.is_by_thread { (by_thread, "by_thread") } else { (title, "by_block") };
    cache::kernel(name, rank, || {
        let kernel = ReduceKernel::<A, T>::new(title).host(move |_, (chunk, a, out)| {
            rows::reduce::<A, T, F>(chunk as usize, a, out, &term);
        });
        let functions = reduction.functions::<T>();
        let declarations = source::declarations(rank, A::C, T::C) + &functions;
        // SAFETY: `out` has as many chunks in each row as the row of `a` has, and both have the
        // same rows. Each chunk is read and written by one block or thread.
        unsafe { kernel.cuda(source::rows(entry, &declarations)) }
    })
}

/// The reduction of an empty array or row: 0 for sums, and an error else.
fn of_nothing<A: Number, T: Number>(
    call: &Call<'_>,
    reduction: Reduction,
    a: &Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    if matches!(reduction, Reduction::Min | Reduction::Max) {
        return Err(no_elements(call, a));
    }
    let zeros = SmartArray::<T, IxDyn>::full_at(IxDyn(&[1]), T::ZERO, call.site);
    elementwise::copy(call, &zeros, out)
}

/// Refuses an array without elements.
#[cold]
pub(super) fn no_elements<A: Number>(call: &Call<'_>, a: &Operand<'_, A>) -> Error {
    call.shape(String::from("an array with elements"), a.to_string())
}

/// The sum of products of corresponding elements.
pub(super) fn dot<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    b: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut b, mut out) = (Operand::of(a), Operand::of(b), OperandMut::of(out));
    expect_one(call, &out)?;
    call.expect_shape(a.axes().shape(), b.axes().shape(), &b)?;
    if a.axes().len() == 0 {
        return of_nothing(call, Reduction::Sum, &a, &mut out);
    }
    align::in_any_order([a.axes_mut(), b.axes_mut()]);
    align::in_any_order([out.axes_mut()]);
    let shape = shape_of_chunks(a.axes(), BLOCK_CHUNK);
    let (rank, items) = (shape.len(), shape.iter().product());
    let (kernel, grid) = (dot_kernel::<T>(rank), grid_of_blocks(items));
    if items == 1 {
        return call.launch(kernel, grid, (BLOCK_CHUNK as i64, &a, &b, &mut out));
    }
    let mut partial = scratch::<T>(call, &shape);
    let sums = &mut OperandMut::of(&mut partial);
    call.launch(kernel, grid, (BLOCK_CHUNK as i64, &a, &b, sums))?;
    reduce_all(call, Reduction::Sum, Operand::of(&partial), &mut out)
}

fn dot_kernel<T: Number>(rank: usize) -> &'static DotKernel<T> {
    cache::kernel("ops::dot", rank, || {
        let kernel = DotKernel::<T>::new("ops::dot").host(|_, (chunk, a, b, out)| {
            rows::dot(chunk as usize, a, b, out);
        });
        let functions = Reduction::Sum.functions::<T>();
        let declarations = source::declarations(rank, T::C, T::C) + &functions;
        // SAFETY: as in `kernel`; `a` and `b` have one shape.
        unsafe { kernel.cuda(source::rows("dot", &declarations)) }
    })
}

/// Divides each element by a number of elements.
pub(super) fn divide<T: Number>(
    call: &Call<'_>,
    out: &mut OperandMut<'_, T>,
    count: usize,
) -> Result<()> {
    align::in_any_order([out.axes_mut()]);
    let rank = out.axes().shape().len();
    let kernel = cache::kernel("ops::mean", rank, || {
        let kernel = DivideKernel::<T>::new("ops::mean").host(|_, (count, out)| {
            let count = T::from_u64(count);
            zip::each_alone(out, |out| *out = out.over(count));
        });
        let parameters =
            [Parameter::Scalar("count", super::c_type::CType::U64), Parameter::InOut(T::C)];
        // SAFETY: each thread reads and writes one element.
        unsafe { kernel.cuda(source::elementwise(rank, T::C, &parameters, "y / T(count)")) }
    });
    call.launch(kernel, call::cover(out.axes().len()), (count as u64, out))
}

/// The square root of each element.
pub(super) fn root<T: Number>(call: &Call<'_>, out: &mut OperandMut<'_, T>) -> Result<()> {
    align::in_any_order([out.axes_mut()]);
    let rank = out.axes().shape().len();
    let kernel = cache::kernel("ops::norm_l2 root", rank, || {
        let kernel = RootKernel::<T>::new("ops::norm_l2").host(|_, (out,)| {
            zip::each_alone(out, |out| *out = out.root());
        });
        // SAFETY: each thread reads and writes one element.
        unsafe {
            kernel.cuda(source::elementwise(rank, T::C, &[Parameter::InOut(T::C)], "sqrt(y)"))
        }
    });
    call.launch(kernel, call::cover(out.axes().len()), (out,))
}

/// The mean of all elements.
pub(super) fn mean<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    let count = Operand::of(a).axes().len();
    if count == 0 {
        return Err(no_elements(call, &Operand::of(a)));
    }
    whole::<T, T::Real>(call, Reduction::Sum, a, out)?;
    divide(call, &mut OperandMut::of(out), count)
}

/// The means along an axis.
pub(super) fn mean_along<T: Number>(
    call: &Call<'_>,
    (a, axis): (&impl AnyView<T>, Axis),
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    let operand = Operand::of(a);
    expect_axis(call, &operand, axis)?;
    let count = operand.axes().shape()[axis.0];
    if count == 0 && OperandMut::of(out).axes().len() > 0 {
        return Err(no_elements(call, &operand));
    }
    along::<T, T::Real>(call, Reduction::Sum, (a, axis), out)?;
    divide(call, &mut OperandMut::of(out), count)
}

/// The Euclidean norm.
pub(super) fn norm<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    whole::<T, T::Real>(call, Reduction::SumOfSquares, a, out)?;
    root(call, &mut OperandMut::of(out))
}

/// The Euclidean norms along an axis.
pub(super) fn norm_along<T: Number>(
    call: &Call<'_>,
    (a, axis): (&impl AnyView<T>, Axis),
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    along::<T, T::Real>(call, Reduction::SumOfSquares, (a, axis), out)?;
    root(call, &mut OperandMut::of(out))
}
