//! Running sums and products.

pub(super) mod functions;
mod host;

use ndarray::{Axis, IxDyn};

use super::align;
use super::arithmetic::Number;
use super::cache;
use super::call::Call;
use super::elementwise;
use super::reduce::{Reduction, reduce_chunks};
use super::rows::{self, expect_axis, grid_of_blocks, scratch, shape_of_chunks};
use super::source;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::error::Result;
use crate::launch::{In, Kernel, Out};
use resident_backend::GpuSource;

pub(super) use host::Running;

type RunningKernel<T> = Kernel<(i64, u32, In<T, IxDyn>, In<T, IxDyn>, Out<T, IxDyn>)>;

/// The elements of a chunk that a block sums: `THREADS * PER_THREAD` in the kernel.
const CHUNK: usize = 2048;

/// The running sums or products of all elements in row-major order.
pub(super) fn whole<T: Number>(
    call: &Call<'_>,
    running: Running,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (a, mut out) = (Operand::of(a), OperandMut::of(out));
    let len = a.axes().len();
    if *out.axes().shape() != [len] {
        call.expect_result("out", &out, a.axes().shape(), "the shape of `a`")?;
    }
    call.expect_end(&a)?;
    if len == 0 {
        return Ok(());
    }
    let mut packed;
    let mut a = a;
    align::in_row_order([a.axes_mut()]);
    if a.axes().shape().len() > 1 {
        packed = scratch::<T>(call, a.axes().shape());
        elementwise::copy(call, &a, &mut packed)?;
        a = Operand::of(&packed);
        align::in_row_order([a.axes_mut()]);
    }
    align::in_row_order([out.axes_mut()]);
    if out.axes().shape().len() == 1 {
        return of_rows(call, running, a, &mut out);
    }
    let mut sums = scratch::<T>(call, out.axes().shape());
    let mut line = OperandMut::of(&mut sums);
    align::in_row_order([line.axes_mut()]);
    of_rows(call, running, a, &mut line)?;
    elementwise::copy(call, &sums, &mut out)
}

/// The running sums or products along an axis.
pub(super) fn along<T: Number>(
    call: &Call<'_>,
    running: Running,
    a: &impl AnyView<T>,
    axis: Axis,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    expect_axis(call, &a, axis)?;
    call.expect_result("out", &out, a.axes().shape(), "the shape of `a`")?;
    call.expect_end(&a)?;
    if a.axes().len() == 0 {
        return Ok(());
    }
    a.axes_mut().move_to_end(axis.0);
    out.axes_mut().move_to_end(axis.0);
    of_rows(call, running, a, &mut out)
}

/// The running sums or products of each row: those of its chunks first, from which each chunk goes
/// on.
fn of_rows<T: Number>(
    call: &Call<'_>,
    running: Running,
    mut a: Operand<'_, T>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    align::rows([a.axes_mut(), out.axes_mut()]);
    let shape = shape_of_chunks(a.axes(), CHUNK);
    if shape.last() == Some(&1) {
        // Nothing comes before the only chunk of a row: these are never read.
        let mut before = a.clone();
        before.axes_mut().keep_first(shape.len() - 1);
        return launch(call, running, &a, &before, out);
    }
    let (mut chunks, mut before) = (scratch::<T>(call, &shape), scratch::<T>(call, &shape));
    let (reduction, running_of_chunks) = match running {
        Running::Sum | Running::SumBefore => (Reduction::Sum, Running::Sum),
        Running::Product => (Reduction::Product, Running::Product),
    };
    reduce_chunks(call, reduction, CHUNK, &a, &mut OperandMut::of(&mut chunks))?;
    let to = &mut OperandMut::of(&mut before);
    of_rows(call, running_of_chunks, Operand::of(&chunks), to)?;
    launch(call, running, &a, &Operand::of(&before), out)
}

fn launch<T: Number>(
    call: &Call<'_>,
    running: Running,
    a: &Operand<'_, T>,
    before: &Operand<'_, T>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    let rank = a.axes().shape().len();
    let is_product = running == Running::Product;
    let kernel = if is_product { product_kernel::<T>(rank) } else { sum_kernel::<T>(rank) };
    let own = u32::from(running.includes_own());
    call.launch(kernel, grid_of_blocks(before.axes().len()), (CHUNK as i64, own, a, before, out))
}

fn sum_kernel<T: Number>(rank: usize) -> &'static RunningKernel<T> {
    cache::kernel("ops::cumulative_sum", rank, || {
        let kernel = RunningKernel::<T>::new("ops::cumulative_sum").own_host(
            |_, (chunk, own, a, before, out)| {
                let running = if own == 0 { Running::SumBefore } else { Running::Sum };
                host::running(chunk as usize, running, a, before, out);
            },
        );
        // SAFETY: `out` has the shape of `a`, and `before` an element for each chunk. One block
        // reads and writes each chunk.
        unsafe { kernel.cuda(source::<T>(rank, "T(W(x) + W(y))", "T(0)")) }
    })
}

fn product_kernel<T: Number>(rank: usize) -> &'static RunningKernel<T> {
    cache::kernel("ops::cumulative_product", rank, || {
        let kernel = RunningKernel::<T>::new("ops::cumulative_product").own_host(
            |_, (chunk, _own, a, before, out)| {
                host::running(chunk as usize, Running::Product, a, before, out);
            },
        );
        // SAFETY: as in `sum_kernel`.
        unsafe { kernel.cuda(source::<T>(rank, "T(W(x) * W(y))", "T(1)")) }
    })
}

/// How two values become one, and the value before the first.
fn source<T: Number>(rank: usize, join: &str, start: &str) -> GpuSource {
    let declarations = source::declarations(rank, T::C, T::C)
        + &source::function("T join(T x, T y)", join)
        + &source::function("T before_first()", start);
    rows::source(include_str!("kernel.cu"), "running", &declarations)
}
