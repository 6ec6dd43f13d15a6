//! Where the smallest and the largest elements are.

pub(super) mod functions;
mod host;

use ndarray::{Axis, IxDyn, Zip};

use super::align;
use super::arithmetic::Number;
use super::cache;
use super::call::{self, Call};
use super::elementwise;
use super::rows::host::{each_chunk, in_groups};
use super::rows::reducer::chunk_of_thread;
use super::rows::{self, chunk_len, expect_one, no_elements, row_by_row, scratch, shape_of_chunks};
use super::source;
use crate::array::{AnyView, AnyViewMut, Axes, Operand, OperandMut};
use crate::error::Result;
use crate::launch::{In, Kernel, Out};
use resident_backend::GpuSource;

type BestKernel<T> = Kernel<(i64, In<T, IxDyn>, Out<u64, IxDyn>)>;
type AmongKernel<T> = Kernel<(i64, In<T, IxDyn>, In<u64, IxDyn>, Out<u64, IxDyn>)>;

/// Which elements are the best.
#[derive(Clone, Copy)]
pub(super) enum Best {
    Min,
    Max,
}

impl Best {
    /// The name, and the name of the kernel that compares elements whose places are given.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Min => ["ops::argmin", "ops::argmin of chunks"],
            Self::Max => ["ops::argmax", "ops::argmax of chunks"],
        }
    }

    /// Whether one element is better than another that comes before it.
    fn is_better<T: Number>(self, one: T, other: T) -> bool {
        let is_beyond = match self {
            Self::Min => one < other,
            Self::Max => one > other,
        };
        is_beyond || (one.is_nan() && !other.is_nan())
    }

    fn source<T: Number>(self, entry: &'static str, rank: usize) -> GpuSource {
        let better = match (self, T::IS_FLOAT) {
            (Self::Min, true) => "x < y || (x != x && y == y)",
            (Self::Min, false) => "x < y",
            (Self::Max, true) => "x > y || (x != x && y == y)",
            (Self::Max, false) => "x > y",
        };
        let declarations = source::declarations(rank, T::C, T::C)
            + &source::function("bool better(T x, T y)", better);
        rows::source(include_str!("kernel.cu"), entry, &declarations)
    }
}

/// The place of the first of the best elements, in row-major order.
pub(super) fn whole<T: Number>(
    call: &Call<'_>,
    best: Best,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<u64>,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    expect_one(call, &out)?;
    call.expect_end(&a)?;
    if a.axes().len() == 0 {
        return Err(no_elements(call, &a));
    }
    align::in_row_order([out.axes_mut()]);
    align::in_row_order([a.axes_mut()]);
    if a.axes().shape().len() == 1 {
        return of_rows(call, best, a, &mut out);
    }
    let mut line = scratch::<T>(call, a.axes().shape());
    elementwise::copy(call, &a, &mut line)?;
    let mut line = Operand::of(&line);
    align::in_row_order([line.axes_mut()]);
    of_rows(call, best, line, &mut out)
}

/// The places of the first of the best elements along an axis.
pub(super) fn along<T: Number>(
    call: &Call<'_>,
    best: Best,
    a: &impl AnyView<T>,
    axis: Axis,
    out: &mut impl AnyViewMut<u64>,
) -> Result<()> {
    let (mut rows, mut out) = (Operand::of(a), OperandMut::of(out));
    row_by_row(call, &mut rows, axis, &mut out)?;
    call.expect_end(&rows)?;
    if out.axes().len() == 0 {
        return Ok(());
    }
    if rows.axes().len() == 0 {
        return Err(no_elements(call, &Operand::of(a)));
    }
    align::rows([rows.axes_mut(), out.axes_mut()]);
    of_rows(call, best, rows, &mut out)
}

fn chunk(call: &Call<'_>, axes: &Axes) -> usize {
    chunk_len(call, axes, chunk_of_thread(axes))
}

fn of_rows<T: Number>(
    call: &Call<'_>,
    best: Best,
    a: Operand<'_, T>,
    out: &mut OperandMut<'_, u64>,
) -> Result<()> {
    let chunk = chunk(call, a.axes());
    let shape = shape_of_chunks(a.axes(), chunk);
    let kernel = kernel::<T>(best, shape.len());
    let grid = call::cover(shape.iter().product());
    if shape.last() == Some(&1) {
        return call.launch(kernel, grid, (chunk as i64, &a, out));
    }
    let mut places = scratch::<u64>(call, &shape);
    call.launch(kernel, grid, (chunk as i64, &a, &mut OperandMut::of(&mut places)))?;
    among(call, best, &a, Operand::of(&places), out)
}

fn among<T: Number>(
    call: &Call<'_>,
    best: Best,
    a: &Operand<'_, T>,
    places: Operand<'_, u64>,
    out: &mut OperandMut<'_, u64>,
) -> Result<()> {
    let chunk = chunk(call, places.axes());
    let shape = shape_of_chunks(places.axes(), chunk);
    let kernel = among_kernel::<T>(best, shape.len());
    let grid = call::cover(shape.iter().product());
    if shape.last() == Some(&1) {
        return call.launch(kernel, grid, (chunk as i64, a, &places, out));
    }
    let mut fewer = scratch::<u64>(call, &shape);
    let to = &mut OperandMut::of(&mut fewer);
    call.launch(kernel, grid, (chunk as i64, a, &places, to))?;
    among(call, best, a, Operand::of(&fewer), out)
}

fn kernel<T: Number>(best: Best, rank: usize) -> &'static BestKernel<T> {
    let [title, _] = best.names();
    cache::kernel(title, rank, || {
        let kernel = BestKernel::<T>::new(title).own_host(move |_, (chunk, a, mut out)| {
            let chunk = chunk as usize;
            in_groups(chunk, a, out.view_mut(), &|a, out| {
                each_chunk(chunk, a, out, &|line| {
                    let line = (0..).zip(line.iter().copied());
                    host::best_of(line, &|x, y| best.is_better(x, y))
                });
            });
            // From places in the chunks to places in the rows.
            let last = Axis(out.ndim() - 1);
            for (number, mut places) in out.axis_iter_mut(last).enumerate() {
                places += (number * chunk) as u64;
            }
        });
        // SAFETY: as in `reduce::kernel`.
        unsafe { kernel.cuda(best.source::<T>("best", rank)) }
    })
}

fn among_kernel<T: Number>(best: Best, rank: usize) -> &'static AmongKernel<T> {
    let [title, name] = best.names();
    cache::kernel(name, rank, || {
        let kernel =
            AmongKernel::<T>::new(title).own_host(move |_, (chunk, a, places, mut out)| {
                let rows = Zip::from(out.rows_mut()).and(a.rows()).and(places.rows());
                rows.for_each(|mut out, row, places| {
                    let chunks = places.axis_chunks_iter(Axis(0), chunk as usize);
                    out.iter_mut().zip(chunks).for_each(|(out, places)| {
                        let line = places.iter().map(|place| (*place, row[*place as usize]));
                        *out = host::best_of(line, &|x, y| best.is_better(x, y));
                    });
                });
            });
        // SAFETY: as in `reduce::kernel`; the places are those that the kernel before found in the
        // rows of `a`.
        unsafe { kernel.cuda(best.source::<T>("best_among", rank)) }
    })
}
