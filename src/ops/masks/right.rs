//! Right operands: arrays, or numbers.

use half::{bf16, f16};

use crate::array::{AnyView, Operand};
use crate::element::Element;
use crate::ops::arithmetic::Arithmetic;

mod sealed {
    pub trait Sealed {}
}

/// The right operand of a comparison: a reference to an array or view with elements `T`, or a
/// number, such as `0.5`, with which each element is compared. Sealed.
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
