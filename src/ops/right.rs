//! Operations whose right operand is an array or a number.

use half::{bf16, f16};
use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};
use num_complex::Complex;

use super::align;
use super::arithmetic::Arithmetic;
use super::c_type::CType;
use super::cache;
use super::call::{self, Call};
use super::elementwise::host::{each_of_one, each_of_two};
use super::source::{self, Parameter};
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::element::Element;
use crate::error::Result;
use crate::launch::{In, Kernel, Out};

type ArrayKernel<T, U> = Kernel<(In<T, IxDyn>, In<T, IxDyn>, Out<U, IxDyn>)>;
type NumberKernel<T, U> = Kernel<(T, In<T, IxDyn>, Out<U, IxDyn>)>;

mod sealed {
    pub trait Sealed {}
}

/// The right operand of [`add`](super::add) or a comparison such as [`less`](super::less): a
/// reference to an array or view with elements `T`, or a number, such as `0.5`, which is that of
/// each element. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a reference to an array with elements `{T}` nor such a number",
    note = "convert elements with `ops::cast`, and adopt an ndarray array with \
            `SmartArray::from(array)`; a number has the type of the elements: `1.0`, not `1`, for \
            `f32`"
)]
pub trait Right<T: Element>: sealed::Sealed {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn value(&self) -> RightValue<'_, T>;
}

pub(crate) enum RightValue<'a, T> {
    Array(Operand<'a, T>),
    Number(T),
}

impl<V> sealed::Sealed for &V {}

#[diagnostic::do_not_recommend]
impl<T: Arithmetic, V: AnyView<T>> Right<T> for &V {
    #[allow(private_interfaces)]
    #[inline]
    fn value(&self) -> RightValue<'_, T> {
        RightValue::Array(Operand::of(*self))
    }
}

/// The right operand of a body in Rust.
pub(super) enum RightSide<'a, T> {
    Array(ArrayViewD<'a, T>),
    Number(T),
}

impl<T: Copy + Sync> RightSide<'_, T> {
    /// `out = value(a, self)`, element by element.
    #[inline]
    pub(super) fn each<U: Send>(
        self,
        a: ArrayViewD<'_, T>,
        out: ArrayViewMutD<'_, U>,
        value: impl Fn(T, T) -> U + Sync + Copy,
    ) {
        match self {
            Self::Array(b) => each_of_two(a, b, out, move |x, y, out| *out = value(x, y)),
            Self::Number(y) => each_of_one(a, out, move |x, out| *out = value(x, y)),
        }
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl sealed::Sealed for $number {}

        #[diagnostic::do_not_recommend]
        impl Right<$number> for $number {
            #[allow(private_interfaces)]
            #[inline]
            fn value(&self) -> RightValue<'_, $number> {
                RightValue::Number(*self)
            }
        })+
    };
}

numbers!(f32, f64, i32, i64, u32, u64, u8, f16, bf16, Complex<f32>, Complex<f64>);

/// A body in Rust: the left operand, the right operand, and the result.
pub(super) trait Body<T, U>:
    Fn(ArrayViewD<'_, T>, RightSide<'_, T>, ArrayViewMutD<'_, U>) + Send + Sync + 'static
{
}

impl<T, U, F> Body<T, U> for F where
    F: Fn(ArrayViewD<'_, T>, RightSide<'_, T>, ArrayViewMutD<'_, U>) + Send + Sync + 'static
{
}

/// A number on the right, of any type that there is arithmetic for.
pub(super) struct OneNumber<T>(pub(super) T);

impl<T> sealed::Sealed for OneNumber<T> {}

impl<T: Arithmetic> Right<T> for OneNumber<T> {
    #[allow(private_interfaces)]
    fn value(&self) -> RightValue<'_, T> {
        RightValue::Number(self.0)
    }
}

/// What an operation is called and computes.
pub(super) struct Described {
    /// The name; where the right operand is a number, another, since the kernel is another.
    pub(super) titles: [&'static str; 2],
    /// The value of `x` and `y` in CUDA C.
    pub(super) value: &'static str,
    /// The names in `value` of the elements and of a number: `x` and `y`, but `y` and `x` where the
    /// number is the left operand.
    pub(super) names: [&'static str; 2],
    pub(super) result: CType,
}

/// `out = a operation b`, by a body in Rust that computes what is described.
pub(super) fn apply<T: Arithmetic, U: Element>(
    call: &Call<'_>,
    described: &Described,
    a: &impl AnyView<T>,
    b: &impl Right<T>,
    out: &mut impl AnyViewMut<U>,
    body: impl Body<T, U>,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    call.fit("a", &mut a, &out)?;
    match b.value() {
        RightValue::Array(mut b) => {
            call.fit("b", &mut b, &out)?;
            align::in_any_order([out.axes_mut(), a.axes_mut(), b.axes_mut()]);
            let kernel = array_kernel(described, out.axes().shape().len(), body);
            call.launch(kernel, call::cover(out.axes().len()), (&a, &b, &mut out))
        }
        RightValue::Number(b) => {
            align::in_any_order([out.axes_mut(), a.axes_mut()]);
            let kernel = number_kernel(described, out.axes().shape().len(), body);
            call.launch(kernel, call::cover(out.axes().len()), (b, &a, &mut out))
        }
    }
}

fn array_kernel<T: Arithmetic, U: Element>(
    described: &Described,
    rank: usize,
    body: impl Body<T, U>,
) -> &'static ArrayKernel<T, U> {
    let &Described { titles: [title, _], value, result, .. } = described;
    cache::kernel(title, rank, || {
        let kernel = ArrayKernel::<T, U>::new(title)
            .own_host(move |_, (a, b, out)| body(a, RightSide::Array(b), out));
        let parameters =
            [Parameter::In("x", T::C), Parameter::In("y", T::C), Parameter::Out(result)];
        // SAFETY: each thread reads and writes one element of each view, and `apply` passes views
        // of one shape and of this rank.
        unsafe { kernel.cuda(source::elementwise(rank, T::C, &parameters, value)) }
    })
}

fn number_kernel<T: Arithmetic, U: Element>(
    described: &Described,
    rank: usize,
    body: impl Body<T, U>,
) -> &'static NumberKernel<T, U> {
    let &Described { titles: [title, name], value, names: [x, y], result } = described;
    cache::kernel(name, rank, || {
        let kernel = NumberKernel::<T, U>::new(title)
            .own_host(move |_, (b, a, out)| body(a, RightSide::Number(b), out));
        let parameters =
            [Parameter::Scalar(y, T::C), Parameter::In(x, T::C), Parameter::Out(result)];
        // SAFETY: as in `array_kernel`.
        unsafe { kernel.cuda(source::elementwise(rank, T::C, &parameters, value)) }
    })
}
