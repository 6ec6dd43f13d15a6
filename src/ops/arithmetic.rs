//! The types of elements that the operations accept, and their arithmetic on the host.

#![allow(private_interfaces, reason = "hidden items of sealed traits name private types")]

use num_complex::Complex;

use super::c_type::CType;
use super::elementwise::Unary;
use super::random;
use super::to_odd::ToOdd as _;
use crate::element::Element;

mod sealed {
    pub trait Sealed {}
}

/// As which elements are moved: an unsigned integer, or a complex number itself, whose alignment is
/// smaller than that of an integer of its size.
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
words!(Complex<f32>: CType::C32, Complex<f64>: CType::C64);

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
/// accept: `f32`, `f64`, `i32`, `i64`, `u32`, `u64` and `u8`, `f16` and `bf16` of the crate `half`,
/// and `Complex<f32>` and `Complex<f64>` of the crate `num_complex`. Sealed.
///
/// The two types of `half` are computed with as `f32`, and each result is rounded once, to the
/// nearest. Casts to them are rounded once, from all digits of the number.
///
/// Sums, differences and products of integers wrap around, as in NumPy and in release builds of
/// Rust. Quotients of integers are truncated, as in Rust; a quotient by 0 is 0, as NumPy's
/// `floor_divide` gives it, and the smallest integer divided by -1 wraps around to itself.
///
/// Products of complex numbers are those of `num_complex`, bit by bit, on every device. Quotients
/// are made by Smith's method, as NumPy's are: they do not overflow where `num_complex`'s, which
/// square the divisor, do, and the quotient by a real number is that of both parts. They are
/// within `4 EPSILON` of the exact quotient, relative to its magnitude, unless parts are subnormal.
/// A quotient by 0 is NaN.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element that `resident::ops` computes with",
    note = "these are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, `half`'s `f16` and `bf16`, \
            and `num_complex`'s `Complex<f32>` and `Complex<f64>`"
)]
pub trait Arithmetic: Element + PartialEq + sealed::Sealed {
    /// What operations that only move elements take them for, of the same size.
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
    /// The real part, for a type of real numbers.
    #[doc(hidden)]
    #[inline]
    fn from_parts(re: f64, _im: f64) -> Self {
        Self::from_f64(re)
    }
    /// Rust's `self as U`.
    #[doc(hidden)]
    fn to<U: Arithmetic>(self) -> U;
    /// `self < other`. Complex numbers have no order, and no operation that asks for one takes
    /// them.
    #[doc(hidden)]
    fn is_less(self, other: Self) -> bool;
}

/// Elements that have an order, which [`clamp`](super::clamp), [`less`](super::less) and their kin
/// accept: all of [`Arithmetic`] but complex numbers. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element that has an order",
    note = "these are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, and `half`'s `f16` and `bf16`"
)]
pub trait Ordered: Arithmetic + PartialOrd {}

/// Elements that [`sum`](super::sum), [`product`](super::product), [`mean`](super::mean),
/// [`dot`](super::dot), [`matmul`](super::matmul) and a [`Reduction`](super::Reduction) accept:
/// every [`Number`], `Complex<f32>` and `Complex<f64>`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element of which `resident::ops` makes sums and products",
    note = "these are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, and `num_complex`'s \
            `Complex<f32>` and `Complex<f64>`"
)]
pub trait Scalar: Arithmetic {
    /// The type of means and norms: the type itself for floats and complex numbers, and `f64` for
    /// integers, as in NumPy.
    type Real: Scalar;

    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    fn is_nan(self) -> bool;
    /// `c = a b`. `false`, and nothing is done, if elements are integers.
    #[doc(hidden)]
    fn multiply(
        a: &ndarray::ArrayView2<'_, Self>,
        b: &ndarray::ArrayView2<'_, Self>,
        c: &mut ndarray::ArrayViewMut2<'_, Self>,
    ) -> bool;
}

/// Elements that all operations accept: `f32`, `f64`, `i32`, `i64`, `u32`, `u64` and `u8`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number that `resident::ops` computes with",
    note = "these are `f32`, `f64`, `i32`, `i64`, `u32`, `u64` and `u8`"
)]
pub trait Number: Scalar + Ordered {
    #[doc(hidden)]
    const IS_FLOAT: bool;
    /// The square root.
    #[doc(hidden)]
    fn root(real: Self::Real) -> Self::Real;
    /// Applies a function to each element.
    #[doc(hidden)]
    fn map(function: Unary, from: &[Self], to: &mut [Self]);
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

/// `multiply` of floats and complex numbers.
macro_rules! multiply_by_ndarray {
    ($one:expr) => {
        fn multiply(
            a: &ndarray::ArrayView2<'_, Self>,
            b: &ndarray::ArrayView2<'_, Self>,
            c: &mut ndarray::ArrayViewMut2<'_, Self>,
        ) -> bool {
            ndarray::linalg::general_mat_mul($one, a, b, Self::ZERO, c);
            true
        }
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
            #[inline]
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }

        impl Ordered for $number {}

        impl Scalar for $number {
            type Real = Self;
            const ZERO: Self = 0.0;

            #[inline]
            fn is_nan(self) -> bool {
                self != self
            }
            multiply_by_ndarray!(1.0);
        }

        impl Number for $number {
            const IS_FLOAT: bool = true;

            fn root(real: Self) -> Self {
                real.sqrt()
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
            #[inline]
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }

        impl Ordered for $number {}

        impl Scalar for $number {
            type Real = f64;
            const ZERO: Self = 0;

            #[inline]
            fn is_nan(self) -> bool {
                false
            }
            fn multiply(
                _a: &ndarray::ArrayView2<'_, Self>,
                _b: &ndarray::ArrayView2<'_, Self>,
                _c: &mut ndarray::ArrayViewMut2<'_, Self>,
            ) -> bool {
                false
            }
        }

        impl Number for $number {
            const IS_FLOAT: bool = false;

            fn root(real: f64) -> f64 {
                real.sqrt()
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
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }

        impl Ordered for $number {}
    };
}

half_float!(half::f16, CType::F16);
half_float!(half::bf16, CType::BF16);

/// The quotient by Smith's method, which scales by the larger part of the divisor.
macro_rules! quotient {
    ($a:ident, $b:ident) => {
        if $b.re.abs() >= $b.im.abs() {
            let ratio = $b.im / $b.re;
            let divisor = $b.re + $b.im * ratio;
            Self::new(($a.re + $a.im * ratio) / divisor, ($a.im - $a.re * ratio) / divisor)
        } else {
            let ratio = $b.re / $b.im;
            let divisor = $b.re * ratio + $b.im;
            Self::new(($a.re * ratio + $a.im) / divisor, ($a.im * ratio - $a.re) / divisor)
        }
    };
}

/// A type of the crate `num_complex`. `complex.cu` computes the same.
macro_rules! complex {
    ($part:ident, $c:expr) => {
        impl sealed::Sealed for Complex<$part> {}

        impl Arithmetic for Complex<$part> {
            type Word = Self;
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
                quotient!(self, other)
            }
            from_numbers!(|value| Self::new(value as $part, 0.0));
            #[inline]
            fn from_parts(re: f64, im: f64) -> Self {
                Self::new(re as $part, im as $part)
            }
            #[inline]
            fn to<U: Arithmetic>(self) -> U {
                U::from_parts(self.re.into(), self.im.into())
            }
            #[inline]
            fn is_less(self, _other: Self) -> bool {
                false
            }
        }

        impl Scalar for Complex<$part> {
            type Real = Self;
            const ZERO: Self = Self::new(0.0, 0.0);

            #[inline]
            fn is_nan(self) -> bool {
                self != self
            }
            multiply_by_ndarray!(Self::new(1.0, 0.0));
        }
    };
}

complex!(f32, CType::C32);
complex!(f64, CType::C64);
