//! Means and Euclidean norms: sums, of which each is then divided, or its root taken.

use ndarray::{Axis, IxDyn};

use super::{Reduction, along, whole};
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::error::Result;
use crate::launch::{InOut, Kernel};
use crate::ops::align;
use crate::ops::arithmetic::{Arithmetic, Number, Scalar};
use crate::ops::c_type::CType;
use crate::ops::cache;
use crate::ops::call::{self, Call};
use crate::ops::elementwise::host::each_alone;
use crate::ops::rows::{expect_axis, no_elements};
use crate::ops::source::{self, Parameter};

type DivideKernel<T> = Kernel<(u64, InOut<T, IxDyn>)>;
type RootKernel<T> = Kernel<(InOut<T, IxDyn>,)>;

/// Divides each element by a number of elements.
fn divide<T: Scalar>(call: &Call<'_>, out: &mut OperandMut<'_, T>, count: usize) -> Result<()> {
    align::in_any_order([out.axes_mut()]);
    let rank = out.axes().shape().len();
    let kernel = cache::kernel("ops::mean", rank, || {
        let kernel = DivideKernel::<T>::new("ops::mean").own_host(|_, (count, out)| {
            let count = T::from_u64(count);
            each_alone(out, |out| *out = out.over(count));
        });
        let parameters = [Parameter::Scalar("count", CType::U64), Parameter::InOut(T::C)];
        // SAFETY: each thread reads and writes one element.
        unsafe { kernel.cuda(source::elementwise(rank, T::C, &parameters, "y / T(count)")) }
    });
    call.launch(kernel, call::cover(out.axes().len()), (count as u64, out))
}

/// The square root of each element.
fn root<T: Number>(call: &Call<'_>, out: &mut OperandMut<'_, T::Real>) -> Result<()> {
    align::in_any_order([out.axes_mut()]);
    let (rank, c) = (out.axes().shape().len(), <T::Real as Arithmetic>::C);
    let kernel = cache::kernel("ops::norm_l2 root", rank, || {
        let kernel = RootKernel::<T::Real>::new("ops::norm_l2").own_host(|_, (out,)| {
            each_alone(out, |out| *out = T::root(*out));
        });
        // SAFETY: each thread reads and writes one element.
        unsafe { kernel.cuda(source::elementwise(rank, c, &[Parameter::InOut(c)], "sqrt(y)")) }
    });
    call.launch(kernel, call::cover(out.axes().len()), (out,))
}

/// The mean of all elements.
pub(in crate::ops) fn mean<T: Scalar>(
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
pub(in crate::ops) fn mean_along<T: Scalar>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    axis: Axis,
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    let operand = Operand::of(a);
    expect_axis(call, &operand, axis)?;
    let count = operand.axes().shape()[axis.0];
    if count == 0 && OperandMut::of(out).axes().len() > 0 {
        return Err(no_elements(call, &operand));
    }
    along::<T, T::Real>(call, Reduction::Sum, a, axis, out)?;
    divide(call, &mut OperandMut::of(out), count)
}

/// The Euclidean norm.
pub(in crate::ops) fn norm<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    whole::<T, T::Real>(call, Reduction::SumOfSquares, a, out)?;
    root::<T>(call, &mut OperandMut::of(out))
}

/// The Euclidean norms along an axis.
pub(in crate::ops) fn norm_along<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    axis: Axis,
    out: &mut impl AnyViewMut<T::Real>,
) -> Result<()> {
    along::<T, T::Real>(call, Reduction::SumOfSquares, a, axis, out)?;
    root::<T>(call, &mut OperandMut::of(out))
}
