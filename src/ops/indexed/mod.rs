//! Reads and writes of elements whose places are given.

pub(super) mod functions;
mod host;

pub(super) use self::host::first_beyond_in;

use std::fmt::Display;

use ndarray::IxDyn;

use super::align;
use super::arithmetic::{Arithmetic, Index, Word};
use super::c_type::CType;
use super::cache;
use super::call::{self, Call};
use super::outcome;
use super::source;
use crate::array::{AnyView, AnyViewMut, Axes, Operand, OperandMut, SmartArray};
use crate::error::{Result, fitting};
use crate::launch::{In, InOut, Kernel, Out};
use resident_backend::GpuSource;

/// In CUDA C: threads write the number of the first bad index.
type CheckKernel<I> = Kernel<(u64, In<I, IxDyn>, InOut<u64, IxDyn>)>;
/// In Rust: the body gives that number to the place of an outcome.
type OutcomeKernel<I> = Kernel<(u64, u64, In<I, IxDyn>)>;
type GatherKernel<W> = Kernel<(In<W, IxDyn>, In<u64, IxDyn>, Out<W, IxDyn>)>;
/// In Rust: one thread writes.
type WriteKernel<W> = Kernel<(In<W, IxDyn>, In<u64, IxDyn>, InOut<W, IxDyn>)>;
/// In CUDA C: each thread knows which index is the last that leads to its place.
type LastKernel = Kernel<(In<u64, IxDyn>, InOut<u64, IxDyn>)>;
type ScatterKernel<W> = Kernel<(In<W, IxDyn>, In<u64, IxDyn>, In<u64, IxDyn>, InOut<W, IxDyn>)>;

/// `out[i] = a[index[i]]`.
pub(super) fn gather<T: Arithmetic>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    index: &impl AnyView<u64>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut out) =
        (Operand::of(a).reinterpreted::<T::Word>(), OperandMut::of(out).reinterpreted::<T::Word>());
    let mut index = Operand::of(index);
    call.expect_result("out", &out, index.axes().shape(), "the shape of `index`")?;
    call.expect_end(&index)?;
    if out.axes().len() == 0 {
        return Ok(());
    }
    expect_within(call, &index, a.axes().len(), &a)?;
    align::in_row_order([a.axes_mut()]);
    align::in_any_order([out.axes_mut(), index.axes_mut()]);
    read(call, a, &index, &mut out)
}

/// As [`gather`], of checked indices and with aligned axes.
fn read<W: Word>(
    call: &Call<'_>,
    a: Operand<'_, W>,
    index: &Operand<'_, u64>,
    out: &mut OperandMut<'_, W>,
) -> Result<()> {
    let kernel = gather_kernel::<W>(Ranks::of(a.axes(), index.axes()));
    call.launch_on_some(kernel, call::cover(out.axes().len()), (&a, index, out))
}

/// `out[index[i]] = a[i]`, where the last of several wins.
pub(super) fn scatter<T: Arithmetic>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    index: &impl AnyView<u64>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut out) =
        (Operand::of(a).reinterpreted::<T::Word>(), OperandMut::of(out).reinterpreted::<T::Word>());
    let mut index = Operand::of(index);
    call.fit_shape("a", &mut a, index.axes().shape(), &index)?;
    call.expect_end(&index)?;
    if index.axes().len() == 0 {
        return Ok(());
    }
    let len = out.axes().len();
    expect_within(call, &index, len, &out)?;
    align::in_row_order([out.axes_mut()]);
    align::in_row_order([a.axes_mut(), index.axes_mut()]);
    if call.runs_rust() {
        let (kernel, grid) = (write_kernel::<T::Word>(), call::cover(index.axes().len()));
        return call.launch_on_some(kernel, grid, (&a, &index, &mut out));
    }
    let mut last = SmartArray::<u64, IxDyn>::full_at(IxDyn(&[len]), 0, call.site);
    let ranks = Ranks::of(out.axes(), index.axes());
    let grid = call::cover(index.axes().len());
    call.launch(last_kernel(ranks.index), grid, (&index, &mut OperandMut::of(&mut last)))?;
    let kernel = scatter_kernel::<T::Word>(ranks);
    call.launch_on_some(kernel, grid, (&a, &index, &Operand::of(&last), &mut out))
}

/// The numbers of axes of an operand and of the indices into it.
#[derive(Clone, Copy)]
struct Ranks {
    operand: usize,
    index: usize,
}

impl Ranks {
    fn of(operand: &Axes, index: &Axes) -> Self {
        Self { operand: operand.shape().len(), index: index.shape().len() }
    }

    /// Both numbers as one.
    fn key(self) -> usize {
        self.operand << 16 | self.index
    }

    /// A kernel for elements of this type.
    fn source(self, entry: &'static str, element: CType) -> GpuSource {
        let declarations = source::declarations(self.operand, element, element)
            + &format!("enum {{ RANK_OF_INDEX = {} }};\n", self.index);
        source::of_file(&[include_str!("kernel.cu")], entry, &declarations)
    }
}

/// Finds the first index that is not below `len` on the device, and waits for it.
pub(super) fn expect_within<I: Index>(
    call: &Call<'_>,
    index: &Operand<'_, I>,
    len: usize,
    array: impl Display,
) -> Result<()> {
    let mut line = index.clone();
    align::in_row_order([line.axes_mut()]);
    let Some(number) = first_beyond(call, &line, len as u64)? else { return Ok(()) };
    let bad = element_at(call, index, number)?.to_u64();
    let seen = format!("{bad}, the index at {number} of {index}, in {array}");
    let expected = format!("indices below {len}, the length of the array,");
    Err(call.shape(expected, seen, fitting::out_of_range(bad, len)))
}

/// The number of the first index that is not below `len`.
fn first_beyond<I: Index>(
    call: &Call<'_>,
    index: &Operand<'_, I>,
    len: u64,
) -> Result<Option<u64>> {
    let grid = call::cover(index.axes().len());
    let found = |number: u64| Some(number).filter(|number| *number != u64::MAX);
    if call.runs_rust() {
        let launch = |place| call.launch(outcome_kernel::<I>(), grid, (len, place, index));
        if let Some(number) = outcome::of(call, launch)? {
            return Ok(found(number));
        }
    }
    let mut first_bad = SmartArray::<u64, IxDyn>::full_at(IxDyn(&[1]), u64::MAX, call.site);
    let kernel = check_kernel::<I>(index.axes().shape().len());
    call.launch(kernel, grid, (len, index, &mut OperandMut::of(&mut first_bad)))?;
    Ok(found(first_bad.get_at(0, call.site)?))
}

/// An element, by its number in row-major order.
pub(super) fn element_at<W: Word>(call: &Call<'_>, of: &Operand<'_, W>, number: u64) -> Result<W> {
    let mut line = of.clone();
    align::in_row_order([line.axes_mut()]);
    let mut element = SmartArray::<W, IxDyn>::uninit_at(IxDyn(&[1]), call.site);
    let at = SmartArray::<u64, IxDyn>::full_at(IxDyn(&[1]), number, call.site);
    read(call, line, &Operand::of(&at), &mut OperandMut::of(&mut element))?;
    element.get_at(0, call.site)
}

fn outcome_kernel<I: Index>() -> &'static OutcomeKernel<I> {
    cache::kernel("ops::gather outcome", 0, || {
        OutcomeKernel::<I>::new("ops::gather").own_host(|_, (len, place, index)| {
            outcome::give(place, host::first_beyond(len, index).unwrap_or(u64::MAX));
        })
    })
}

fn check_kernel<I: Index>(rank: usize) -> &'static CheckKernel<I> {
    cache::kernel("ops::gather check", rank, || {
        let kernel = CheckKernel::<I>::new("ops::gather").own_host(|_, (len, index, mut first)| {
            if let Some(number) = host::first_beyond(len, index) {
                first.iter_mut().for_each(|first| *first = number.min(*first));
            }
        });
        let ranks = Ranks { operand: 1, index: rank };
        // SAFETY: threads write only the one element of `first_bad`, by an atomic operation.
        unsafe { kernel.cuda(ranks.source("check", <I as Word>::C)) }
    })
}

fn gather_kernel<W: Word>(ranks: Ranks) -> &'static GatherKernel<W> {
    cache::kernel("ops::gather", ranks.key(), || {
        let kernel = GatherKernel::<W>::new("ops::gather")
            .own_host(|_, (a, index, out)| host::gather(a, index, out));
        // SAFETY: `expect_within` has checked the indices, which the borrow keeps as they are.
        unsafe { kernel.cuda(ranks.source("gather", W::C)) }
    })
}

fn write_kernel<W: Word>() -> &'static WriteKernel<W> {
    cache::kernel("ops::scatter", 0, || {
        WriteKernel::<W>::new("ops::scatter")
            .own_host(|_, (a, index, out)| host::scatter(a, index, out))
    })
}

fn last_kernel(rank: usize) -> &'static LastKernel {
    cache::kernel("ops::scatter last", rank, || {
        let ranks = Ranks { operand: 1, index: rank };
        // SAFETY: as in `gather_kernel`; threads write by atomic operations.
        unsafe { LastKernel::new("ops::scatter").cuda(ranks.source("last_writers", CType::U64)) }
    })
}

fn scatter_kernel<W: Word>(ranks: Ranks) -> &'static ScatterKernel<W> {
    cache::kernel("ops::scatter by last", ranks.key(), || {
        // SAFETY: as in `gather_kernel`; of the threads that lead to one element, one writes it.
        unsafe { ScatterKernel::<W>::new("ops::scatter").cuda(ranks.source("scatter", W::C)) }
    })
}
