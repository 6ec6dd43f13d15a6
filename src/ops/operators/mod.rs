//! The operators `+`, `-`, `*`, `/` and the sign `-` of arrays and views, which make an array where
//! the operands are newest.

mod right_operand;

use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};
use ndarray::{Dimension, Order};
use num_complex::Complex;
use resident_backend::call_site::{CallSite, call_site};
use smallvec::SmallVec;

use super::arithmetic::Arithmetic;
use super::call::{self, Call, stream_where_newest};
use super::elementwise::{self, Binary};
use super::right::{OneNumber, RightValue};
use crate::array::{
    AnyView, Axes, DeviceArray, DeviceView, DeviceViewMut, Operand, SmartArray, SmartView,
    SmartViewMut,
};
use crate::error::{Result, fitting};

pub use right_operand::RightOperand;

/// `a op b`, in a new array.
fn binary<T: Arithmetic, D: Dimension>(
    op: Binary,
    a: &impl AnyView<T>,
    b: &RightValue<'_, T>,
    site: CallSite,
) -> Result<SmartArray<T, D>> {
    let a = Operand::of(a);
    let right = match b {
        RightValue::Array(b) => Some(b),
        RightValue::Number(_) => None,
    };
    let stream = &stream_where_newest([&a].into_iter().chain(right), site)?;
    let call = &Call { name: op.name(), stream, site };
    let shape = match right {
        Some(b) => common_shape(call, &a, b)?,
        None => SmallVec::from_slice(a.axes().shape()),
    };
    let order = common_order([Some(&a), right], &shape);
    let mut out = call::result(&shape, order, site)?;
    match b {
        RightValue::Array(b) => elementwise::binary(call, op, &a, &b, &mut out)?,
        RightValue::Number(b) => elementwise::binary(call, op, &a, &OneNumber(*b), &mut out)?,
    }
    Ok(out)
}

/// The shape to which two operands broadcast.
fn common_shape<T: Arithmetic>(
    call: &Call<'_>,
    a: &Operand<'_, T>,
    b: &Operand<'_, T>,
) -> Result<SmallVec<[usize; 6]>> {
    let (of_a, of_b) = (a.axes().shape(), b.axes().shape());
    let (long, short) = if of_a.len() < of_b.len() { (of_b, of_a) } else { (of_a, of_b) };
    let mut shape: SmallVec<[usize; 6]> = SmallVec::from_slice(long);
    let more = shape.len() - short.len();
    for (common, len) in shape[more..].iter_mut().zip(short) {
        match (*common, *len) {
            (common, len) if common == len || len == 1 => {}
            (1, len) => *common = len,
            _ => {
                let expected = String::from("operands that broadcast with each other");
                let instead = fitting::to_broadcast(short, long);
                return Err(call.shape(expected, format!("{a}, and {b}"), instead));
            }
        }
    }
    Ok(shape)
}

/// The order of the operands that have the shape of the result.
fn common_order<T: Arithmetic>(operands: [Option<&Operand<'_, T>>; 2], shape: &[usize]) -> Order {
    let all = operands.into_iter().flatten().map(Operand::axes);
    let mut whole = all.filter(|axes| axes.shape() == shape);
    let is_first = whole.next().is_some_and(is_column_major);
    if is_first && whole.all(is_column_major) { Order::ColumnMajor } else { Order::RowMajor }
}

/// Whether the elements lie column by column, and not row by row too.
fn is_column_major(axes: &Axes) -> bool {
    let mut stride = 1;
    let mut long = axes.shape().iter().zip(axes.strides()).filter(|(len, _)| **len != 1);
    let is_in_order = |(len, own): (&usize, &isize)| {
        let is_next = *own == stride;
        stride = stride.wrapping_mul(*len as isize);
        is_next
    };
    long.clone().count() > 1 && long.all(is_in_order)
}

/// The operators of a type of array on the left, and of references to it.
macro_rules! operators {
    ($array:ty) => {
        operators!(@ [$array] [&]);
        operators!(@ [&$array] []);
    };
    (@ [$left:ty] [$($borrow:tt)?]) => {
        operators!(@ [$left] [$($borrow)?] Add, add, "+", "add");
        operators!(@ [$left] [$($borrow)?] Sub, sub, "-", "sub");
        operators!(@ [$left] [$($borrow)?] Mul, mul, "*", "mul");
        operators!(@ [$left] [$($borrow)?] Div, div, "/", "div");

        /// `(-&a)?`: a new array of the negated elements, made where they are newest. Integers wrap
        /// around. See [`ops`](crate::ops#operators).
        impl<T: Arithmetic, D: Dimension> Neg for $left {
            type Output = Result<SmartArray<T, D>>;

            #[track_caller]
            fn neg(self) -> Self::Output {
                // 0.0 - 0.0 is not -0.0.
                let zero = RightValue::Number(T::from_f64(-0.0));
                binary(Binary::SubFrom, $($borrow)? self, &zero, call_site())
            }
        }
    };
    (
        @ [$left:ty] [$($borrow:tt)?]
        $operator:ident, $method:ident, $sign:literal, $function:literal
    ) => {
        #[doc = concat!("`(&a ", $sign, " &b)?`, element by element: a new array, made where the")]
        /// operands are newest. Both broadcast, as in ndarray; `b` may be a number. See
        #[doc = concat!("[`ops`](crate::ops#operators) and [`ops::", $function, "`](crate::ops::",
            $function, ").")]
        impl<T, D, B> $operator<B> for $left
        where
            T: Arithmetic,
            D: Dimension,
            B: RightOperand<T, D>,
        {
            type Output = Result<SmartArray<T, B::Dim>>;

            #[track_caller]
            fn $method(self, b: B) -> Self::Output {
                binary(Binary::$operator, $($borrow)? self, &b.value(), call_site())
            }
        }
    };
}

operators!(SmartArray<T, D>);
operators!(DeviceArray<T, D>);
operators!(SmartView<'_, T, D>);
operators!(SmartViewMut<'_, T, D>);
operators!(DeviceView<'_, T, D>);
operators!(DeviceViewMut<'_, T, D>);

/// The operators of numbers on the left.
macro_rules! numbers {
    ($($number:ty),+) => {
        $(numbers!(@ $number, [&SmartArray<$number, D>] []);
        numbers!(@ $number, [SmartArray<$number, D>] [&]);
        numbers!(@ $number, [&SmartView<'_, $number, D>] []);
        numbers!(@ $number, [SmartView<'_, $number, D>] [&]);)+
    };
    (@ $number:ty, [$right:ty] [$($borrow:tt)?]) => {
        numbers!(@ $number, [$right] [$($borrow)?] Add, add, Add);
        numbers!(@ $number, [$right] [$($borrow)?] Sub, sub, SubFrom);
        numbers!(@ $number, [$right] [$($borrow)?] Mul, mul, Mul);
        numbers!(@ $number, [$right] [$($borrow)?] Div, div, DivInto);
    };
    (
        @ $number:ty, [$right:ty] [$($borrow:tt)?]
        $operator:ident, $method:ident, $binary:ident
    ) => {
        /// A number and the elements of an array: see [`ops`](crate::ops#operators).
        impl<D: Dimension> $operator<$right> for $number {
            type Output = Result<SmartArray<$number, D>>;

            #[track_caller]
            fn $method(self, right: $right) -> Self::Output {
                let number = RightValue::Number(self);
                binary(Binary::$binary, $($borrow)? right, &number, call_site())
            }
        }
    };
}

numbers!(f32, f64, i32, i64, u32, u64, u8, f16, bf16, Complex<f32>, Complex<f64>);
