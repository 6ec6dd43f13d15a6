//! Elements that a mask chooses, different elements, and how often indices occur.

pub(super) mod functions;
mod host;
mod methods;

use ndarray::{Ix1, IxDyn};

use super::align;
use super::arithmetic::{Arithmetic, Index, Number, Word};
use super::cache;
use super::call::{self, Call};
use super::cumulative::{self, Running};
use super::elementwise;
use super::indexed;
use super::masks::{self, Relation};
use super::reduce::{self, Reduction};
use super::rows::scratch;
use super::sorting;
use super::source;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut, SmartArray};
use crate::error::Result;
use crate::launch::{In, InOut, Kernel, Out};

/// In Rust: one thread chooses.
type ChooseKernel<W> = Kernel<(In<W, IxDyn>, In<u8, IxDyn>, Out<W, IxDyn>)>;
/// In CUDA C: each thread knows the rank of its element.
type CompressKernel<W> = Kernel<(In<W, IxDyn>, In<u8, IxDyn>, In<u64, IxDyn>, Out<W, IxDyn>)>;
type ChangesKernel<T> = Kernel<(In<T, IxDyn>, Out<u8, IxDyn>)>;
/// In Rust: one body sets the counts to 0 and counts.
type OverwritingCountKernel<I, C> = Kernel<(In<I, IxDyn>, Out<C, IxDyn>)>;
/// In CUDA C: threads add to counts that are 0.
type CountKernel<I, C> = Kernel<(In<I, IxDyn>, InOut<C, IxDyn>)>;

/// The elements where the mask is not 0, in row-major order.
pub(super) fn compress<T: Arithmetic>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    mask: &impl AnyView<u8>,
) -> Result<SmartArray<T, Ix1>> {
    let (mut a, mut mask) = (Operand::of(a).reinterpreted::<T::Word>(), Operand::of(mask));
    call.expect_shape("mask", &mask, a.axes().shape(), "the shape of the array")?;
    let mut count = SmartArray::<u64, Ix1>::uninit_at(1, call.site);
    reduce::whole::<u8, u64>(call, Reduction::CountNonzero, &mask, &mut count)?;
    let count = count.get_at(0, call.site)? as usize;
    let mut out = SmartArray::<T, Ix1>::uninit_at(count, call.site);
    if count > 0 {
        let mut to = OperandMut::of(&mut out).reinterpreted::<T::Word>();
        align::in_row_order([a.axes_mut(), mask.axes_mut()]);
        move_chosen(call, &a, &mask, &mut to)?;
    }
    Ok(out)
}

/// As [`compress`], into an array of as many elements as are chosen.
fn move_chosen<W: Word>(
    call: &Call<'_>,
    a: &Operand<'_, W>,
    mask: &Operand<'_, u8>,
    out: &mut OperandMut<'_, W>,
) -> Result<()> {
    let grid = call::cover(a.axes().len());
    if call.runs_rust() {
        return call.launch_on_some(choose_kernel::<W>(), grid, (a, mask, out));
    }
    let shape = mask.axes().shape();
    let (mut flags, mut ranks) = (scratch::<u8>(call, shape), scratch::<u64>(call, shape));
    masks::compare(call, Relation::NotEqual, mask, &0_u8, &mut flags)?;
    let mut sums = SmartArray::<u64, IxDyn>::uninit_at(IxDyn(&[a.axes().len()]), call.site);
    elementwise::cast::<u8, u64>(call, &flags, &mut ranks)?;
    cumulative::whole(call, Running::Sum, &ranks, &mut sums)?;
    let kernel = compress_kernel::<W>(a.axes().shape().len());
    call.launch_on_some(kernel, grid, (a, mask, &Operand::of(&sums), out))
}

fn choose_kernel<W: Word>() -> &'static ChooseKernel<W> {
    cache::kernel("ops::compress", 0, || {
        ChooseKernel::<W>::new("ops::compress")
            .own_host(|_, (a, mask, out)| host::choose(a, mask, out))
    })
}

fn compress_kernel<W: Word>(rank: usize) -> &'static CompressKernel<W> {
    cache::kernel("ops::compress by rank", rank, || {
        let declarations = source::declarations(rank, <W as Word>::C, <W as Word>::C);
        let source = source::of_file(&[include_str!("kernel.cu")], "compress", &declarations);
        // SAFETY: all views have one shape but `out`, which has an element for each chosen one: the
        // last rank is the number that `compress` counted. Ranks of chosen elements differ.
        unsafe { CompressKernel::<W>::new("ops::compress").cuda(source) }
    })
}

/// The different elements, in ascending order.
pub(super) fn unique<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
) -> Result<SmartArray<T, Ix1>> {
    let a = Operand::of(a);
    call.expect_end(&a)?;
    if a.axes().len() == 0 {
        return Ok(SmartArray::uninit_at(0, call.site));
    }
    let mut sorted = scratch::<T>(call, a.axes().shape());
    elementwise::copy(call, &a, &mut sorted)?;
    let mut line = OperandMut::of(&mut sorted);
    align::in_row_order([line.axes_mut()]);
    sorting::sort(call, &mut line)?;
    let mut mask = scratch::<u8>(call, line.axes().shape());
    let grid = call::cover(line.axes().len());
    call.launch(changes_kernel::<T>(), grid, (&line, &mut OperandMut::of(&mut mask)))?;
    compress(call, &line, &mask)
}

fn changes_kernel<T: Number>() -> &'static ChangesKernel<T> {
    cache::kernel("ops::unique", 1, || {
        let kernel =
            ChangesKernel::<T>::new("ops::unique").own_host(|_, (a, mask)| host::changes(a, mask));
        let declarations = source::declarations(1, T::C, T::C);
        let source = source::of_file(&[include_str!("kernel.cu")], "changes", &declarations);
        // SAFETY: both are lines of one length, and each thread writes one element.
        unsafe { kernel.cuda(source) }
    })
}

/// `counts[i]`: how often `i` is among the indices.
pub(super) fn bincount<I: Index, C: Index>(
    call: &Call<'_>,
    index: &impl AnyView<I>,
    counts: &mut impl AnyViewMut<C>,
) -> Result<()> {
    let (mut index, mut counts) = (Operand::of(index), OperandMut::of(counts));
    let len = counts.axes().len();
    call.expect_result("counts", &counts, &[len], "one axis")?;
    call.expect_end(&index)?;
    if index.axes().len() > 0 {
        indexed::expect_within(call, &index, len, &counts)?;
    }
    align::in_any_order([index.axes_mut()]);
    if call.runs_rust() {
        let grid = call::cover(index.axes().len().max(len));
        return call.launch(overwriting_count_kernel::<I, C>(), grid, (&index, &mut counts));
    }
    let zero = SmartArray::<C, IxDyn>::full_at(IxDyn(&[1]), C::ZERO, call.site);
    elementwise::copy(call, &zero, &mut counts)?;
    if index.axes().len() == 0 {
        return Ok(());
    }
    let kernel = count_kernel::<I, C>(index.axes().shape().len());
    call.launch(kernel, call::cover(index.axes().len()), (&index, &mut counts))
}

fn overwriting_count_kernel<I: Index, C: Index>() -> &'static OverwritingCountKernel<I, C> {
    cache::kernel("ops::bincount", 0, || {
        OverwritingCountKernel::<I, C>::new("ops::bincount")
            .own_host(|_, (index, counts)| host::count(index, counts))
    })
}

fn count_kernel<I: Index, C: Index>(rank: usize) -> &'static CountKernel<I, C> {
    cache::kernel("ops::bincount by atomics", rank, || {
        let (from, to) = (<I as Word>::C.name, <C as Word>::C.name);
        let declarations =
            format!("typedef {from} I;\ntypedef {to} C;\nenum {{ RANK = {rank} }};\n");
        let source = source::of_file(&[include_str!("kernel.cu")], "count", &declarations);
        // SAFETY: `expect_within` has checked the indices, which the borrow keeps as they are, and
        // threads write by atomic operations.
        unsafe { CountKernel::<I, C>::new("ops::bincount").cuda(source) }
    })
}
