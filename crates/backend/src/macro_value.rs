//! The values of macros as CUDA C writes them.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::sync::Arc;

mod sealed {
    /// What a macro is defined as.
    pub trait Sealed {
        fn in_c(&self) -> String;
    }
}

pub(crate) use sealed::Sealed;

/// What `GpuSource::define` takes. Sealed.
///
/// Text, such as `"float"` or `"256"`, stays as it is. A number becomes a literal of C with the
/// same value and the same type:
///
/// | Rust | example | in C |
/// |---|---|---|
/// | `f32` | `2.0` | `2.0f`, a `float` |
/// | `f64` | `-0.0` | `-0.0`, a `double` |
/// | `i8` to `i32`, `u8`, `u16` | `-3` | `-3`, an `int` |
/// | `u32`, `i64`, `u64` | `3` | `3u`, `3ll`, `3ull` |
/// | `usize`, `isize` | `256` | `256`, an `int`; with `ull` or `ll` if no `int` has the value |
/// | `bool` | `true` | `true` |
///
/// An infinity or not-a-number becomes a call of `__int_as_float` or `__longlong_as_double` with
/// its bits, for which no header is needed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a number of C nor text",
    note = "format the value, as in `.define(\"NAME\", value.to_string())`: text stays as it is"
)]
pub trait MacroValue: Sealed {}

impl<T: Sealed + ?Sized> MacroValue for T {}

impl<T: Sealed + ?Sized> Sealed for &T {
    fn in_c(&self) -> String {
        (**self).in_c()
    }
}

/// Implements the trait for types, each value of which is written by an expression.
macro_rules! written {
    ($($kind:ty),+: |$value:ident| $text:expr) => {
        $(impl Sealed for $kind {
            fn in_c(&self) -> String {
                let $value = self;
                $text
            }
        })+
    };
}

written!(str, String, char, Cow<'_, str>: |text| text.to_string());
written!(Arc<str>, Box<str>, Arguments<'_>: |text| text.to_string());
written!(bool, u8, u16: |value| value.to_string());
written!(i8, i16, i32: |value| signed(i64::from(*value), "", i64::from(i32::MIN)));
written!(i64: |value| signed(*value, "ll", i64::MIN));
written!(u32: |value| format!("{value}u"));
written!(u64: |value| format!("{value}ull"));
written!(isize: |value| match i32::try_from(*value) {
    Ok(value) => value.in_c(),
    Err(_) => (*value as i64).in_c(),
});
written!(usize: |value| match i32::try_from(*value) {
    Ok(value) => value.in_c(),
    Err(_) => (*value as u64).in_c(),
});
// What Rust prints with `Debug` has a point or an exponent, and is read as the same number.
written!(f32: |value| {
    let bits = format!("__int_as_float({:#x})", value.to_bits());
    if value.is_finite() { format!("{value:?}f") } else { bits }
});
written!(f64: |value| {
    let bits = format!("__longlong_as_double({:#x}ll)", value.to_bits());
    if value.is_finite() { format!("{value:?}") } else { bits }
});

/// C has no negative literals, and no literal of the lowest number without its minus.
fn signed(value: i64, suffix: &str, lowest: i64) -> String {
    if value == lowest {
        return format!("({}{suffix} - 1)", lowest + 1);
    }
    format!("{value}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::Sealed;

    #[test]
    fn numbers_are_literals_of_their_type() {
        let numbers: [(&dyn Sealed, &str); 25] = [
            (&2_f32, "2.0f"),
            (&1e30_f32, "1e30f"),
            (&0.1_f32, "0.1f"),
            (&f32::MIN_POSITIVE, "1.1754944e-38f"),
            (&-0.0_f64, "-0.0"),
            (&1e300_f64, "1e300"),
            (&f32::INFINITY, "__int_as_float(0x7f800000)"),
            (&f32::NEG_INFINITY, "__int_as_float(0xff800000)"),
            (&f32::NAN, "__int_as_float(0x7fc00000)"),
            (&f64::INFINITY, "__longlong_as_double(0x7ff0000000000000ll)"),
            (&true, "true"),
            (&i8::MIN, "-128"),
            (&200_u8, "200"),
            (&-3_i16, "-3"),
            (&i32::MIN, "(-2147483647 - 1)"),
            (&7_u32, "7u"),
            (&-7_i64, "-7ll"),
            (&i64::MIN, "(-9223372036854775807ll - 1)"),
            (&u64::MAX, "18446744073709551615ull"),
            (&16_usize, "16"),
            (&(1_usize << 31), "2147483648ull"),
            (&-1_isize, "-1"),
            (&(1_isize << 40), "1099511627776ll"),
            (&"unsigned int", "unsigned int"),
            (&&String::from("1 + 1"), "1 + 1"),
        ];
        for (number, expected) in numbers {
            assert_eq!(number.in_c(), expected);
        }
    }
}
