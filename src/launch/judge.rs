//! When two values of a kernel's result are the same.

use std::any::{TypeId, type_name};

use smallvec::SmallVec;

use crate::element::Element;

/// The numbers that an element is made of: one, or those of a complex number or an array.
type Numbers = SmallVec<[f64; 2]>;

/// Compares and shows elements of one type by their bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judge {
    numbers: fn(&[u8]) -> Option<Numbers>,
    /// Integers count exactly where no tolerance is given, which `f64` cannot for large ones.
    is_exact: bool,
}

impl Judge {
    pub(super) fn of<T: Element>() -> Self {
        let name = type_name::<T>();
        Self {
            numbers: numbers::<T>,
            is_exact: name.starts_with(['i', 'u']) && !name.contains(':'),
        }
    }

    /// Whether they differ by more than `tolerance`, relative to the larger of both where that is
    /// above 1. What is no number differs by any bit.
    pub(super) fn differ(&self, one: &[u8], other: &[u8], tolerance: f64) -> bool {
        if one == other {
            return false;
        }
        if self.is_exact && tolerance <= 0.0 {
            return true;
        }
        match ((self.numbers)(one), (self.numbers)(other)) {
            (Some(one), Some(other)) => {
                one.iter().zip(&other).any(|(one, other)| are_apart(*one, *other, tolerance))
            }
            _ => true,
        }
    }

    /// A number as it is written; anything else as its bytes.
    pub(super) fn show(&self, value: &[u8]) -> String {
        match (self.numbers)(value).as_deref() {
            Some([number]) => number.to_string(),
            Some(numbers) => format!("{numbers:?}"),
            None => format!("the bytes {value:02x?}"),
        }
    }
}

fn are_apart(one: f64, other: f64, tolerance: f64) -> bool {
    if one == other || (one.is_nan() && other.is_nan()) {
        return false;
    }
    let distance = (one - other).abs();
    let is_near =
        distance.is_finite() && distance <= tolerance * one.abs().max(other.abs()).max(1.0);
    !is_near
}

/// What the bytes of a `T` are as numbers. Types of other crates are known by their names, since
/// this crate does not depend on theirs.
fn numbers<T: Element>(bytes: &[u8]) -> Option<Numbers> {
    macro_rules! primitive {
        ($($number:ty),+) => {
            $(if TypeId::of::<T>() == TypeId::of::<$number>() {
                return Some(Numbers::from_iter([bytemuck::pod_read_unaligned::<$number>(bytes) as f64]));
            })+
        };
    }
    primitive!(f32, f64, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
    let name = type_name::<T>();
    let is_made_of = |number: &str| {
        name.starts_with(&format!("[{number};")) || name.ends_with(&format!("::Complex<{number}>"))
    };
    if is_made_of("f32") {
        Some(
            bytes
                .chunks_exact(size_of::<f32>())
                .map(|lane| f64::from(bytemuck::pod_read_unaligned::<f32>(lane)))
                .collect(),
        )
    } else if is_made_of("f64") {
        Some(
            bytes.chunks_exact(size_of::<f64>()).map(bytemuck::pod_read_unaligned::<f64>).collect(),
        )
    } else if name.ends_with("::binary16::f16") {
        Some(Numbers::from_iter([from_half(bytemuck::pod_read_unaligned(bytes))]))
    } else if name.ends_with("::bfloat::bf16") {
        let bits = u32::from(bytemuck::pod_read_unaligned::<u16>(bytes)) << 16;
        Some(Numbers::from_iter([f64::from(f32::from_bits(bits))]))
    } else {
        None
    }
}

/// IEEE 754 binary16.
fn from_half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f64::from(bits & 0x3FF));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::{Judge, from_half};
    use crate::element::Element;

    fn differ<T: Element>(one: T, other: T, tolerance: f64) -> bool {
        Judge::of::<T>().differ(bytemuck::bytes_of(&one), bytemuck::bytes_of(&other), tolerance)
    }

    #[test]
    fn numbers_may_differ_by_the_tolerance() {
        assert!(
            !differ(1.0_f32, 1.0, 0.0)
                && differ(1.0_f32, 1.000_1, 1e-5)
                && !differ(1.0_f32, 1.000_1, 1e-3)
        );
        assert!(
            !differ(1e6_f64, 1e6 + 1.0, 1e-5) && differ(1e6_f64, 1e6 + 1.0, 1e-7),
            "relative above 1"
        );
        assert!(!differ(0.0_f64, 1e-9, 1e-8) && differ(0.0_f64, 1e-7, 1e-8), "absolute below");
        assert!(
            !differ(0.0_f32, -0.0, 0.0)
                && !differ(f32::NAN, -f32::NAN, 0.0)
                && !differ(f32::INFINITY, f32::INFINITY, 0.0)
        );
        assert!(
            differ(f32::NAN, 1.0, 1e9)
                && differ(f32::INFINITY, 1.0, 1.0)
                && differ(1.0_f64, 2.0, f64::NAN)
        );
    }

    #[test]
    fn integers_are_exact_without_a_tolerance() {
        assert!(
            differ(u64::MAX, u64::MAX - 1, 0.0)
                && differ(3_u8, 4, 0.0)
                && !differ(3_u8, 4, 1.0 / 3.0)
                && differ(-1_i32, 1, 0.1)
        );
    }

    #[test]
    fn what_is_made_of_numbers_is_compared_lane_by_lane() {
        assert!(
            !differ([1.0_f32, 2.0, 3.0], [1.0, 2.0, 3.000_1], 1e-3)
                && differ([1.0_f64, 2.0], [1.0, 2.1], 1e-3)
        );
        assert!(differ([1_u8, 2], [1, 3], 10.0), "what is not known as numbers differs by any bit");
        assert_eq!(Judge::of::<[f32; 2]>().show(bytemuck::bytes_of(&[1.5_f32, 2.0])), "[1.5, 2.0]");
        assert_eq!(Judge::of::<[u8; 2]>().show(&[1, 0xAB]), "the bytes [01, ab]");
        assert_eq!(Judge::of::<u8>().show(&[7]), "7");
    }

    #[test]
    fn halves_are_read() {
        assert_eq!(
            [0x3C00, 0xC000, 0x0001, 0x7BFF, 0x0000].map(from_half),
            [1.0, -2.0, 2.0_f64.powi(-24), 65504.0, 0.0]
        );
        assert!(from_half(0x7C00).is_infinite() && from_half(0x7E00).is_nan());
    }
}
