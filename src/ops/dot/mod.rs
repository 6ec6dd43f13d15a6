//! Sums of products. A kernel multiplies and adds the elements of chunks of rows; a reduction adds
//! the results of chunks.

pub(super) mod functions;
mod host;

use ndarray::IxDyn;

use super::align;
use super::arithmetic::Scalar;
use super::cache;
use super::call::Call;
use super::reduce::{Reduction, of_nothing, reduce_all};
use super::rows::reducer::BLOCK_CHUNK;
use super::rows::{self, chunk_len, expect_one, grid_of_blocks, scratch, shape_of_chunks};
use super::source;
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::error::Result;
use crate::launch::{In, Kernel, Out};

type DotKernel<T> = Kernel<(i64, In<T, IxDyn>, In<T, IxDyn>, Out<T, IxDyn>)>;

/// The sum of products of corresponding elements.
pub(super) fn dot<T: Scalar>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    b: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut b, mut out) = (Operand::of(a), Operand::of(b), OperandMut::of(out));
    expect_one(call, &out)?;
    call.expect_shape("b", &b, a.axes().shape(), "the shape of `a`")?;
    call.expect_end(&a)?;
    call.expect_end(&b)?;
    if a.axes().len() == 0 {
        return of_nothing(call, Reduction::Sum, &a, &mut out);
    }
    align::in_any_order([a.axes_mut(), b.axes_mut()]);
    align::in_any_order([out.axes_mut()]);
    let chunk = chunk_len(call, a.axes(), BLOCK_CHUNK);
    let shape = shape_of_chunks(a.axes(), chunk);
    let (rank, items) = (shape.len(), shape.iter().product());
    let (kernel, grid) = (kernel::<T>(rank), grid_of_blocks(items));
    if items == 1 {
        return call.launch(kernel, grid, (chunk as i64, &a, &b, &mut out));
    }
    let mut partial = scratch::<T>(call, &shape);
    let sums = &mut OperandMut::of(&mut partial);
    call.launch(kernel, grid, (chunk as i64, &a, &b, sums))?;
    reduce_all(call, Reduction::Sum, Operand::of(&partial), &mut out)
}

fn kernel<T: Scalar>(rank: usize) -> &'static DotKernel<T> {
    cache::kernel("ops::dot", rank, || {
        let kernel = DotKernel::<T>::new("ops::dot").own_host(|_, (chunk, a, b, out)| {
            host::dot(chunk as usize, a, b, out);
        });
        let declarations = source::declarations(rank, T::C, T::C);
        // SAFETY: `a` and `b` have one shape, and `out` as many chunks in each row as they. Each
        // chunk is read and written by one block.
        unsafe { kernel.cuda(rows::source(include_str!("kernel.cu"), "dot", &declarations)) }
    })
}
