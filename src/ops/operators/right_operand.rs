//! What may stand on the right of an operator.

use ndarray::{DimMax, Dimension};

use crate::array::{
    DeviceArray, DeviceView, DeviceViewMut, Operand, SmartArray, SmartView, SmartViewMut,
};
use crate::element::Element;
use crate::ops::arithmetic::Arithmetic;
use crate::ops::right::RightValue;

mod sealed {
    pub trait Sealed {}
}

/// The right operand of `+`, `-`, `*` and `/`, of an array with elements `T` and dimension `D` on
/// the left: an array or view with elements `T`, or a reference to one, or a number of type `T`.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the right operand of an array of `{T}`",
    label = "expected an array or view of `{T}`, or a number of type `{T}`",
    note = "`ops::cast(&b, &mut c)` converts the elements of an array; `2.0` is a float, and `2` \
            an integer",
    note = "a `Result` is no operand: `(&a + (&b * 2.0)?)?`",
    note = "adopt an ndarray array with `SmartArray::from(array)`"
)]
pub trait RightOperand<T: Element, D: Dimension>: sealed::Sealed {
    /// The dimension of the result: the larger of the two, as ndarray's `DimMax`.
    type Dim: Dimension;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn value(&self) -> RightValue<'_, T>;
}

impl<T: Arithmetic> sealed::Sealed for T {}

impl<T: Arithmetic, D: Dimension> RightOperand<T, D> for T {
    type Dim = D;

    #[allow(private_interfaces)]
    fn value(&self) -> RightValue<'_, T> {
        RightValue::Number(*self)
    }
}

macro_rules! arrays {
    ($($array:ty),+) => {
        $(arrays!(@ $array, |this| this);
        arrays!(@ &$array, |this| *this);)+
    };
    (@ $type:ty, |$this:ident| $array:expr) => {
        impl<T: Element, E: Dimension> sealed::Sealed for $type {}

        impl<T: Element, D: Dimension + DimMax<E>, E: Dimension> RightOperand<T, D> for $type {
            type Dim = <D as DimMax<E>>::Output;

            #[allow(private_interfaces)]
            fn value(&self) -> RightValue<'_, T> {
                let $this = self;
                RightValue::Array(Operand::of($array))
            }
        }
    };
}

arrays!(SmartArray<T, E>, SmartView<'_, T, E>, SmartViewMut<'_, T, E>);
arrays!(DeviceArray<T, E>, DeviceView<'_, T, E>, DeviceViewMut<'_, T, E>);
