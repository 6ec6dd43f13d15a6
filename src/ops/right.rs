//! Right operands: arrays, or numbers.

use half::{bf16, f16};
use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};

use super::arithmetic::Arithmetic;
use super::elementwise::host::{each_of_one, each_of_two};
use crate::array::{AnyView, Operand};
use crate::element::Element;
use crate::launch::{In, Kernel, Out};

/// Kernels with an array, and with a number, on the right.
pub(super) type ArrayKernel<T, U> = Kernel<(In<T, IxDyn>, In<T, IxDyn>, Out<U, IxDyn>)>;
pub(super) type NumberKernel<T, U> = Kernel<(T, In<T, IxDyn>, Out<U, IxDyn>)>;

mod sealed {
    pub trait Sealed {}
}

/// The right operand of [`add`](super::add) or a comparison such as [`less`](super::less): a
/// reference to an array or view with elements `T`, or a number, such as `0.5`, which is that of
/// each element. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a reference to an array with elements `{T}` nor such a number"
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

        impl Right<$number> for $number {
            #[allow(private_interfaces)]
            #[inline]
            fn value(&self) -> RightValue<'_, $number> {
                RightValue::Number(*self)
            }
        })+
    };
}

numbers!(f32, f64, i32, i64, u32, u64, u8, f16, bf16);
