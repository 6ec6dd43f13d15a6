//! Reductions: of all elements, and along an axis.
//!
//! One kernel reduces chunks of rows. Where a row has several chunks, their results are reduced in
//! turn. The chunks depend on the shape alone, so that results do not change from run to run.

pub(super) mod functions;
pub(super) mod host;
mod mean_and_norm;

use ndarray::{Axis, IxDyn};

use self::host::{Fold, Max, Min, Product, Sum};
use super::align;
use super::arithmetic::Scalar;
use super::cache;
use super::call::{self, Call};
use super::elementwise;
use super::rows::reducer::{Reducer, chunk_of_thread, put_long_axis_last};
use super::rows::{
    self, chunk_len, expect_one, grid_of_blocks, no_elements, row_by_row, scratch, shape_of_chunks,
};
use super::source;
use crate::array::{AnyView, AnyViewMut, Axes, Operand, OperandMut, SmartArray};
use crate::error::Result;
use crate::launch::{In, Kernel, Out};
use resident_backend::grid::Grid;

pub(super) use mean_and_norm::{mean, mean_along, norm, norm_along};

type ReduceKernel<A, T> = Kernel<(i64, In<A, IxDyn>, Out<T, IxDyn>)>;

/// What a reduction does with the elements, and then with pairs.
#[derive(Clone, Copy)]
pub(super) enum Reduction {
    Sum,
    SumOfSquares,
    Min,
    Max,
    Product,
    /// The number of elements that are not 0.
    CountNonzero,
    /// 1 if an element is not 0, and 0 else.
    Any,
    /// 1 if no element is 0, and 0 else.
    All,
}

impl Reduction {
    /// The name, and the name of the kernel that reduces each chunk by one thread.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Sum => ["ops::sum", "ops::sum by thread"],
            Self::SumOfSquares => ["ops::norm_l2", "ops::norm_l2 by thread"],
            Self::Min => ["ops::min", "ops::min by thread"],
            Self::Max => ["ops::max", "ops::max by thread"],
            Self::Product => ["ops::product", "ops::product by thread"],
            Self::CountNonzero => ["ops::count_nonzero", "ops::count_nonzero by thread"],
            Self::Any => ["ops::any", "ops::any by thread"],
            Self::All => ["ops::all", "ops::all by thread"],
        }
    }

    /// How the results of chunks are reduced.
    fn next(self) -> Self {
        match self {
            Self::SumOfSquares | Self::CountNonzero => Self::Sum,
            Self::Any => Self::Max,
            Self::All => Self::Min,
            other => other,
        }
    }

    /// The functions of the kernel in CUDA C.
    fn functions<T: Scalar>(self) -> String {
        let term = match self {
            // As the sums of ndarray, which begin with 0: the sum of -0.0 alone is 0.0.
            Self::Sum => "T(W(x) + W(0))",
            Self::SumOfSquares => "T(x) * T(x)",
            Self::Min | Self::Max | Self::Product => "T(x)",
            Self::CountNonzero | Self::Any | Self::All => "T(x != A(0))",
        };
        let join = match (self, T::C.is_float()) {
            (Self::Sum | Self::SumOfSquares | Self::CountNonzero, _) => "T(W(x) + W(y))",
            (Self::Product, _) => "T(W(x) * W(y))",
            (Self::Any, _) => "T(x | y)",
            (Self::All, _) => "T(x & y)",
            (Self::Min, true) => "x < y || x != x ? x : y",
            (Self::Min, false) => "x < y ? x : y",
            (Self::Max, true) => "x > y || x != x ? x : y",
            (Self::Max, false) => "x > y ? x : y",
        };
        source::function("T term(A x)", term) + &source::function("T join(T x, T y)", join)
    }
}

/// How rows are cut into chunks, and what reduces one.
#[derive(Clone, Copy)]
struct Cut {
    chunk: usize,
    reducer: Reducer,
}

impl Cut {
    fn of(call: &Call<'_>, axes: &Axes) -> Self {
        let reducer = Reducer::of(axes);
        let in_parallel = match reducer {
            Reducer::Thread => chunk_of_thread(axes),
            Reducer::Block => reducer.chunk(),
        };
        Self { chunk: chunk_len(call, axes, in_parallel), reducer }
    }

    fn grid(self, chunks: usize) -> Grid {
        match self.reducer {
            Reducer::Thread => call::cover(chunks),
            Reducer::Block => grid_of_blocks(chunks),
        }
    }
}

/// Reduces all elements to the one of `out`.
pub(super) fn whole<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    a: &impl AnyView<A>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (a, mut out) = (Operand::of(a), OperandMut::of(out));
    expect_one(call, &out)?;
    call.expect_end(&a)?;
    if a.axes().len() == 0 {
        return of_nothing(call, reduction, &a, &mut out);
    }
    align::in_any_order([out.axes_mut()]);
    reduce_all(call, reduction, a, &mut out)
}

/// Reduces all elements; there is at least one.
pub(super) fn reduce_all<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    mut a: Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    align::in_any_order([a.axes_mut()]);
    put_long_axis_last(&mut [a.axes_mut()]);
    let cut = Cut::of(call, a.axes());
    let shape = shape_of_chunks(a.axes(), cut.chunk);
    if shape.iter().product::<usize>() == 1 {
        return launch(call, reduction, cut, &a, out);
    }
    let mut partial = scratch::<T>(call, &shape);
    launch(call, reduction, cut, &a, &mut OperandMut::of(&mut partial))?;
    reduce_all(call, reduction.next(), Operand::of(&partial), out)
}

/// Reduces along an axis.
pub(super) fn along<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    a: &impl AnyView<A>,
    axis: Axis,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut rows, mut out) = (Operand::of(a), OperandMut::of(out));
    row_by_row(call, &mut rows, axis, &mut out)?;
    call.expect_end(&rows)?;
    if out.axes().len() == 0 {
        return Ok(());
    }
    if rows.axes().len() == 0 {
        return of_nothing(call, reduction, &Operand::of(a), &mut out);
    }
    reduce_rows(call, reduction, rows, &mut out)
}

fn reduce_rows<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    mut a: Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    align::rows([a.axes_mut(), out.axes_mut()]);
    let cut = Cut::of(call, a.axes());
    let shape = shape_of_chunks(a.axes(), cut.chunk);
    if shape.last() == Some(&1) {
        return launch(call, reduction, cut, &a, out);
    }
    let mut partial = scratch::<T>(call, &cut.reducer.in_memory(shape));
    let mut results = OperandMut::of(&mut partial);
    cut.reducer.put_chunks_last(results.axes_mut());
    launch(call, reduction, cut, &a, &mut results)?;
    let mut results = Operand::of(&partial);
    cut.reducer.put_chunks_last(results.axes_mut());
    reduce_rows(call, reduction.next(), results, out)
}

/// Reduces the chunks of each row.
pub(super) fn reduce_chunks<T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    chunk: usize,
    a: &Operand<'_, T>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    launch(call, reduction, Cut { chunk, reducer: Reducer::Block }, a, out)
}

fn launch<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    cut: Cut,
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
        Reduction::Product => kernel::<A, T, Product>(reduction, cut, rank, A::to::<T>),
        Reduction::CountNonzero => kernel::<A, T, Sum>(reduction, cut, rank, is_nonzero),
        Reduction::Any => kernel::<A, T, Max>(reduction, cut, rank, is_nonzero),
        Reduction::All => kernel::<A, T, Min>(reduction, cut, rank, is_nonzero),
    };
    call.launch(kernel, grid, (cut.chunk as i64, a, out))
}

fn kernel<A: Scalar, T: Scalar, F: Fold<T> + 'static>(
    reduction: Reduction,
    cut: Cut,
    rank: usize,
    term: impl Fn(A) -> T + Send + Sync + 'static,
) -> &'static ReduceKernel<A, T> {
    let [title, by_thread] = reduction.names();
    let (name, entry) =
        if cut.reducer == Reducer::Thread { (by_thread, "by_thread") } else { (title, "by_block") };
    cache::kernel(name, rank, || {
        let kernel = ReduceKernel::<A, T>::new(title).own_host(move |_, (chunk, a, out)| {
            host::reduce::<A, T, F>(chunk as usize, a, out, &term);
        });
        let declarations = source::declarations(rank, A::C, T::C) + &reduction.functions::<T>();
        // SAFETY: `out` has as many chunks in each row as the row of `a` has, and both have the
        // same rows. Each chunk is read and written by one block or thread.
        unsafe { kernel.cuda(rows::source(include_str!("kernel.cu"), entry, &declarations)) }
    })
}

/// 1 if the element is not 0, as NaN is not, and 0 else.
fn is_nonzero<A: Scalar, T: Scalar>(element: A) -> T {
    T::from_u8(u8::from(element != A::ZERO))
}

/// The reduction of an empty array or row: 0 for sums, 1 for products, and an error for the least
/// and the most.
pub(super) fn of_nothing<A: Scalar, T: Scalar>(
    call: &Call<'_>,
    reduction: Reduction,
    a: &Operand<'_, A>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    if matches!(reduction, Reduction::Min | Reduction::Max) {
        return Err(no_elements(call, a));
    }
    let is_one = matches!(reduction, Reduction::Product | Reduction::All);
    let value = T::from_u8(u8::from(is_one));
    let constant = SmartArray::<T, IxDyn>::full_at(IxDyn(&[1]), value, call.site);
    elementwise::copy(call, &constant, out)
}
