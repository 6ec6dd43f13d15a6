//! Sorting along the last axis. On GPUs, and in CUDA C on the host, places are sorted, and elements
//! then taken in their order. Bodies in Rust sort rows as they are.

pub(super) mod functions;
mod host;

use ndarray::IxDyn;

use super::align;
use super::arithmetic::Number;
use super::cache;
use super::call::{self, Call};
use super::elementwise;
use super::rows::{self, row_count, row_len, scratch};
use super::source;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::error::Result;
use crate::launch::{In, InOut, Kernel, Out};
use resident_backend::GpuSource;

type SortKernel<T> = Kernel<(InOut<T, IxDyn>,)>;
type PlacesKernel<T> = Kernel<(In<T, IxDyn>, Out<u64, IxDyn>)>;
type MergeKernel<T> = Kernel<(i64, In<T, IxDyn>, In<u64, IxDyn>, Out<u64, IxDyn>)>;
type SearchKernel<T> = Kernel<(In<T, IxDyn>, In<T, IxDyn>, Out<u64, IxDyn>)>;
type TakeKernel<T> = Kernel<(In<T, IxDyn>, In<u64, IxDyn>, Out<T, IxDyn>)>;

/// The places of a run that one thread of a GPU sorts: `RUN` in the kernel.
const RUN: usize = 16;

/// Sorts along the last axis.
pub(super) fn sort<T: Number>(call: &Call<'_>, a: &mut impl AnyViewMut<T>) -> Result<()> {
    let mut a = OperandMut::of(a);
    if a.axes().len() < 2 || a.axes().shape().is_empty() {
        return Ok(());
    }
    if call.runs_rust() {
        align::rows([a.axes_mut()]);
        return call.launch_long(sort_kernel::<T>(), call::cover(1), (&mut a,));
    }
    let shape = a.axes().shape();
    let (mut places, mut sorted) = (scratch::<u64>(call, shape), scratch::<T>(call, shape));
    of_rows(call, Operand::of(&a), &mut OperandMut::of(&mut places))?;
    take(call, Operand::of(&a), Operand::of(&places), &mut OperandMut::of(&mut sorted))?;
    elementwise::copy(call, &sorted, &mut a)
}

/// The places of elements along the last axis, in sorted order.
pub(super) fn argsort<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<u64>,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    call.expect_result("out", &out, a.axes().shape(), "the shape of `a`")?;
    if out.axes().len() == 0 {
        return Ok(());
    }
    if a.axes().shape().is_empty() {
        a.axes_mut().insert(0);
        out.axes_mut().insert(0);
    }
    of_rows(call, a, &mut out)
}

/// As [`argsort`], where there are elements.
fn of_rows<T: Number>(
    call: &Call<'_>,
    mut a: Operand<'_, T>,
    out: &mut OperandMut<'_, u64>,
) -> Result<()> {
    align::rows([a.axes_mut(), out.axes_mut()]);
    let (rank, len) = (a.axes().shape().len(), row_len(a.axes()));
    let runs = row_count(a.axes()) * len.div_ceil(RUN);
    let first = places_kernel::<T>(rank);
    if call.runs_rust() {
        return call.launch_long(first, call::cover(runs), (&a, out));
    }
    if len <= RUN {
        return call.launch(first, call::cover(runs), (&a, out));
    }
    let shape = a.axes().shape();
    let mut buffers = [scratch::<u64>(call, shape), scratch::<u64>(call, shape)];
    call.launch(first, call::cover(runs), (&a, &mut OperandMut::of(&mut buffers[0])))?;
    let (merge, grid) = (merge_kernel::<T>(rank), call::cover(a.axes().len()));
    let mut width = RUN;
    while width * 2 < len {
        let [from, to] = &mut buffers;
        let to = &mut OperandMut::of(to);
        call.launch(merge, grid, (width as i64, &a, &Operand::of(from), to))?;
        buffers.swap(0, 1);
        width *= 2;
    }
    call.launch(merge, grid, (width as i64, &a, &Operand::of(&buffers[0]), out))
}

/// The number of elements of a sorted line that come before each value.
pub(super) fn search<T: Number>(
    call: &Call<'_>,
    sorted: &impl AnyView<T>,
    values: &impl AnyView<T>,
    index: &mut impl AnyViewMut<u64>,
) -> Result<()> {
    let (sorted, mut values) = (Operand::of(sorted), Operand::of(values));
    let mut index = OperandMut::of(index);
    if sorted.axes().shape().len() != 1 {
        let instead = "pass one line of it: `row`, `column` or `index_axis`";
        return Err(call.shape(String::from("`sorted` of one axis"), &sorted, instead));
    }
    call.expect_result("index", &index, values.axes().shape(), "the shape of `values`")?;
    align::in_any_order([index.axes_mut(), values.axes_mut()]);
    let kernel = search_kernel::<T>(index.axes().shape().len());
    call.launch(kernel, call::cover(index.axes().len()), (&sorted, &values, &mut index))
}

fn search_kernel<T: Number>(rank: usize) -> &'static SearchKernel<T> {
    cache::kernel("ops::searchsorted", rank, || {
        let kernel = SearchKernel::<T>::new("ops::searchsorted")
            .own_host(|_, (sorted, values, index)| host::search(sorted, values, index));
        // SAFETY: `index` has the shape of `values`, and each thread writes one element. It reads
        // within `sorted`, which has one axis, whatever its order.
        unsafe { kernel.cuda(source::<T>("search", rank)) }
    })
}

/// The elements in the order of the places.
fn take<T: Number>(
    call: &Call<'_>,
    mut a: Operand<'_, T>,
    mut places: Operand<'_, u64>,
    out: &mut OperandMut<'_, T>,
) -> Result<()> {
    align::rows([a.axes_mut(), places.axes_mut(), out.axes_mut()]);
    let kernel = take_kernel::<T>(a.axes().shape().len());
    call.launch(kernel, call::cover(a.axes().len()), (&a, &places, out))
}

fn sort_kernel<T: Number>() -> &'static SortKernel<T> {
    cache::kernel("ops::sort", 0, || {
        SortKernel::<T>::new("ops::sort").own_host(|_, (a,)| host::sort(a))
    })
}

fn places_kernel<T: Number>(rank: usize) -> &'static PlacesKernel<T> {
    cache::kernel("ops::argsort", rank, || {
        let kernel =
            PlacesKernel::<T>::new("ops::argsort").own_host(|_, (a, out)| host::argsort(a, out));
        // SAFETY: `out` has the shape of `a`, and each thread writes a run of its own.
        unsafe { kernel.cuda(source::<T>("sort_runs", rank)) }
    })
}

fn merge_kernel<T: Number>(rank: usize) -> &'static MergeKernel<T> {
    cache::kernel("ops::argsort merge", rank, || {
        // SAFETY: all have one shape, and the places are those that the kernel before wrote, below
        // the length of a row. Each thread writes one place: the ranks of the elements of two runs
        // are all different.
        unsafe { MergeKernel::<T>::new("ops::argsort").cuda(source::<T>("merge_runs", rank)) }
    })
}

fn take_kernel<T: Number>(rank: usize) -> &'static TakeKernel<T> {
    cache::kernel("ops::sort take", rank, || {
        // SAFETY: as in `merge_kernel`; each thread writes one element.
        unsafe { TakeKernel::<T>::new("ops::sort").cuda(source::<T>("take", rank)) }
    })
}

fn source<T: Number>(entry: &'static str, rank: usize) -> GpuSource {
    rows::source(include_str!("kernel.cu"), entry, &source::declarations(rank, T::C, T::C))
}
