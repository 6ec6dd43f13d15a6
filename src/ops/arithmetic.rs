//! The types of elements that the operations accept, and their arithmetic on the host.

#![allow(private_interfaces, reason = "hidden items of sealed traits name private types")]

use super::c_type::CType;
use super::elementwise::Unary;
use super::random;
use super::to_odd::ToOdd as _;
use crate::element::Element;

mod sealed {
    pub trait Sealed {}
}

/// An unsigned integer, as which elements are moved.
pub trait Word: Element {
    #[doc(hidden)]
    const C: CType;
}

macro_rules! words {
    ($($word:ty: $c:expr),+) => {
        $(impl Word for $word {
            const C: CType = $c;
        })+
    };
}

words!(u8: CType::U8, u16: CType::U16, u32: CType::U32, u64: CType::U64);

/// Declares how to convert each of these numbers, or converts each in the same way.
macro_rules! from_numbers {
    ($(|$value:ident| $result:expr)?) => {
        from_numbers!(@ from_f32: f32, $(|$value| $result)?);
        from_numbers!(@ from_f64: f64, $(|$value| $result)?);
        from_numbers!(@ from_i32: i32, $(|$value| $result)?);
        from_numbers!(@ from_i64: i64, $(|$value| $result)?);
        from_numbers!(@ from_u32: u32, $(|$value| $result)?);
        from_numbers!(@ from_u64: u64, $(|$value| $result)?);
        from_numbers!(@ from_u8: u8, $(|$value| $result)?);
    };
    (@ $name:ident: $number:ty,) => {
        #[doc(hidden)]
        fn $name(value: $number) -> Self;
    };
    (@ $name:ident: $number:ty, |$value:ident| $result:expr) => {
        fn $name($value: $number) -> Self {
            $result
        }
    };
}

/// Elements that [`add`](super::add), [`cast`](super::cast), [`copy`](super::copy) and their kin
/// accept: `f32`, `f64`, `i32`, `i64`, `u32`, `u64` and `u8`, and `f16` and `bf16` of the crate
/// `half`. Sealed.
///
/// The two types of `half` are computed with as `f32`, and each result is rounded once, to the
/// nearest. Casts to them are rounded once, from all digits of the number.
///
/// Sums, differences and products of integers wrap around, as in NumPy and in release builds of
/// Rust. Quotients of integers are truncated, as in Rust; a quotient by 0 is 0, as NumPy's
/// `floor_divide` gives it, and the smallest integer divided by -1 wraps around to itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element that `resident::ops` computes with",
    note = "these are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, and `half`'s `f16` and `bf16`"
)]
pub trait Arithmetic: Element + PartialOrd + sealed::Sealed {
    /// An unsigned integer of the same size, for operations that only move elements.
    #[doc(hidden)]
    type Word: Word;
    #[doc(hidden)]
    const C: CType;

    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn minus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn times(self, other: Self) -> Self;
    #[doc(hidden)]
    fn over(self, other: Self) -> Self;
    /// `self + factor * other`.
    #[doc(hidden)]
    #[inline]
    fn plus_scaled(self, factor: Self, other: Self) -> Self {
        self.plus(factor.times(other))
    }

    from_numbers!();
    /// Rust's `self as U`.
    #[doc(hidden)]
    fn to<U: Arithmetic>(self) -> U;
}

/// Elements that all operations accept: `f32`, `f64`, `i32`, `i64`, `u32`, `u64` and `u8`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number that `resident::ops` computes with",
    note = "these are `f32`, `f64`, `i32`, `i64`, `u32`, `u64` and `u8`"
)]
pub trait Number: Arithmetic + PartialOrd {
    /// The type of means and norms: the type itself for `f32` and `f64`, and `f64` for integers, as
    /// in NumPy.
    type Real: Number;

    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    const IS_FLOAT: bool;
    #[doc(hidden)]
    fn is_nan(self) -> bool;
    /// The square root, of a float.
    #[doc(hidden)]
    fn root(self) -> Self;
    /// Applies a function to each element.
    #[doc(hidden)]
    fn map(function: Unary, from: &[Self], to: &mut [Self]);
    /// `c = a b`. `false`, and nothing is done, if elements are integers.
    #[doc(hidden)]
    fn multiply(
        a: &ndarray::ArrayView2<'_, Self>,
        b: &ndarray::ArrayView2<'_, Self>,
        c: &mut ndarray::ArrayViewMut2<'_, Self>,
    ) -> bool;
}

/// Indices of sparse matrices: `u32` and `u64`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index of sparse matrices",
    note = "these are `u32` and `u64`"
)]
pub trait Index: Number + Word {
    #[doc(hidden)]
    fn to_u64(self) -> u64;
}

impl Index for u32 {
    #[inline]
    fn to_u64(self) -> u64 {
        self.into()
    }
}

impl Index for u64 {
    #[inline]
    fn to_u64(self) -> u64 {
        self
    }
}

/// Elements that random numbers fill: `f32` and `f64`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a float that `resident::ops` computes with",
    note = "these are `f32` and `f64`"
)]
pub trait Float: Number {
    /// Gives each element the uniform number of its place.
    #[doc(hidden)]
    fn fill_uniform(seed: u64, out: ndarray::ArrayViewMutD<'_, Self>);
}

impl Float for f32 {
    fn fill_uniform(seed: u64, out: ndarray::ArrayViewMutD<'_, Self>) {
        random::fill_blocks(out, &|block| random::uniform_f32(seed, block));
    }
}

impl Float for f64 {
    fn fill_uniform(seed: u64, out: ndarray::ArrayViewMutD<'_, Self>) {
        random::fill_blocks(out, &|block| random::uniform_f64(seed, block));
    }
}

/// Applies a closure to each element, in a loop of its own for each function, which the compiler
/// vectorises.
macro_rules! each {
    ($from:ident, $to:ident, |$x:ident| $value:expr) => {
        $to.iter_mut().zip($from).for_each(|(to, $x)| *to = $value)
    };
}

macro_rules! float {
    ($number:ident, $word:ident, $c:expr, $from:ident) => {
        impl sealed::Sealed for $number {}

        impl Arithmetic for $number {
            type Word = $word;
            const C: CType = $c;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self - other
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                self * other
            }
            #[inline]
            fn over(self, other: Self) -> Self {
                self / other
            }
            from_numbers!(|value| value as $number);
            #[inline]
            fn to<U: Arithmetic>(self) -> U {
                U::$from(self)
            }
        }

        impl Number for $number {
            type Real = Self;
            const ZERO: Self = 0.0;
            const IS_FLOAT: bool = true;

            #[inline]
            fn is_nan(self) -> bool {
                self != self
            }
            fn root(self) -> Self {
                self.sqrt()
            }
            fn map(function: Unary, from: &[Self], to: &mut [Self]) {
                match function {
                    Unary::Neg => each!(from, to, |x| -x),
                    Unary::Abs => each!(from, to, |x| x.abs()),
                    Unary::Sign => each!(from, to, |x| if *x == 0.0 { *x } else { x.signum() }),
                    Unary::Square => each!(from, to, |x| x * x),
                    Unary::Reciprocal => each!(from, to, |x| 1.0 / x),
                    Unary::Sqrt => each!(from, to, |x| x.sqrt()),
                    Unary::Exp => each!(from, to, |x| x.exp()),
                    Unary::Exp2 => each!(from, to, |x| x.exp2()),
                    Unary::Log => each!(from, to, |x| x.ln()),
                    Unary::Log2 => each!(from, to, |x| x.log2()),
                    Unary::Log10 => each!(from, to, |x| x.log10()),
                    Unary::Sin => each!(from, to, |x| x.sin()),
                    Unary::Cos => each!(from, to, |x| x.cos()),
                    Unary::Tan => each!(from, to, |x| x.tan()),
                    Unary::Tanh => each!(from, to, |x| x.tanh()),
                    Unary::Floor => each!(from, to, |x| x.floor()),
                    Unary::Ceil => each!(from, to, |x| x.ceil()),
                    Unary::Round => each!(from, to, |x| x.round()),
                    Unary::Trunc => each!(from, to, |x| x.trunc()),
                }
            }
            fn multiply(
                a: &ndarray::ArrayView2<'_, Self>,
                b: &ndarray::ArrayView2<'_, Self>,
                c: &mut ndarray::ArrayViewMut2<'_, Self>,
            ) -> bool {
                ndarray::linalg::general_mat_mul(1.0, a, b, 0.0, c);
                true
            }
        }
    };
}

float!(f32, u32, CType::F32, from_f32);
float!(f64, u64, CType::F64, from_f64);

macro_rules! integer {
    ($number:ident, $word:ident, $c:expr, $from:ident, |$x:ident| $abs:expr, $sign:expr) => {
        impl sealed::Sealed for $number {}

        impl Arithmetic for $number {
            type Word = $word;
            const C: CType = $c;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline]
            fn over(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            from_numbers!(|value| value as $number);
            #[inline]
            fn to<U: Arithmetic>(self) -> U {
                U::$from(self)
            }
        }

        impl Number for $number {
            type Real = f64;
            const ZERO: Self = 0;
            const IS_FLOAT: bool = false;

            #[inline]
            fn is_nan(self) -> bool {
                false
            }
            fn root(self) -> Self {
                self.isqrt()
            }
            fn map(function: Unary, from: &[Self], to: &mut [Self]) {
                match function {
                    Unary::Neg => each!(from, to, |x| x.wrapping_neg()),
                    Unary::Abs => each!(from, to, |$x| $abs),
                    Unary::Sign => each!(from, to, |$x| $sign),
                    Unary::Square => each!(from, to, |x| x.wrapping_mul(*x)),
                    // `map` refuses the functions that integers do not have, and these are integers
                    // already.
                    _ => to.copy_from_slice(from),
                }
            }
            fn multiply(
                _a: &ndarray::ArrayView2<'_, Self>,
                _b: &ndarray::ArrayView2<'_, Self>,
                _c: &mut ndarray::ArrayViewMut2<'_, Self>,
            ) -> bool {
                false
            }
        }
    };
}

integer!(i32, u32, CType::I32, from_i32, |x| x.wrapping_abs(), x.signum());
integer!(i64, u64, CType::I64, from_i64, |x| x.wrapping_abs(), x.signum());
integer!(u32, u32, CType::U32, from_u32, |x| *x, (*x).min(1));
integer!(u64, u64, CType::U64, from_u64, |x| *x, (*x).min(1));
integer!(u8, u8, CType::U8, from_u8, |x| *x, (*x).min(1));

/// A type of the crate `half`.
macro_rules! half_float {
    ($number:ty, $c:expr) => {
        impl sealed::Sealed for $number {}

        impl Arithmetic for $number {
            type Word = u16;
            const C: CType = $c;

            fn plus(self, other: Self) -> Self {
                Self::from_f32(self.to_f32() + other.to_f32())
            }
            fn minus(self, other: Self) -> Self {
                Self::from_f32(self.to_f32() - other.to_f32())
            }
            fn times(self, other: Self) -> Self {
                Self::from_f32(self.to_f32() * other.to_f32())
            }
            fn over(self, other: Self) -> Self {
                Self::from_f32(self.to_f32() / other.to_f32())
            }
            fn plus_scaled(self, factor: Self, other: Self) -> Self {
                Self::from_f32(self.to_f32() + factor.to_f32() * other.to_f32())
            }
            from_numbers!(|value| Self::from_f32(value.to_odd()));
            fn to<U: Arithmetic>(self) -> U {
                U::from_f32(self.to_f32())
            }
        }
    };
}

half_float!(half::f16, CType::F16);
half_float!(half::bf16, CType::BF16);
