//! Compares two elements of a kernel's results, and formats them for a message.

use smallvec::SmallVec;

use resident_backend::ElementLayout;

/// The numbers of which an element consists: one, or several for a complex number or an array.
type Numbers = SmallVec<[f64; 2]>;

/// Compares and formats elements of one type, given their bytes. The type is given by its name,
/// since this crate does not depend on the crates `half` and `num_complex`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementComparator {
    type_name: &'static str,
}

impl ElementComparator {
    pub(super) fn new(element: ElementLayout) -> Self {
        Self { type_name: element.rust_name }
    }

    /// Whether two elements differ by more than `tolerance`: the tolerance is absolute for values
    /// up to 1, and relative to the larger value above 1. Elements that do not consist of numbers
    /// differ if any bit differs.
    pub(super) fn differ(self, one: &[u8], other: &[u8], tolerance: f64) -> bool {
        if one == other {
            return false;
        }
        if self.is_integer() && tolerance <= 0.0 {
            // `f64` cannot represent all large integers, so these are compared by their bytes.
            return true;
        }
        match (self.numbers(one), self.numbers(other)) {
            (Some(one), Some(other)) => {
                one.iter().zip(&other).any(|(one, other)| are_apart(*one, *other, tolerance))
            }
            _ => true,
        }
    }

    /// A number as Rust prints it; any other element as its bytes.
    pub(super) fn show(self, element: &[u8]) -> String {
        match self.numbers(element).as_deref() {
            Some([number]) => number.to_string(),
            Some(numbers) => format!("{numbers:?}"),
            None => format!("the bytes {element:02x?}"),
        }
    }

    fn is_integer(self) -> bool {
        self.type_name.starts_with(['i', 'u']) && !self.type_name.contains(':')
    }

    /// The numbers in an element's bytes, if its type is known to consist of numbers.
    fn numbers(self, bytes: &[u8]) -> Option<Numbers> {
        macro_rules! numbers {
            ($number:ty) => {
                bytes
                    .chunks_exact(size_of::<$number>())
                    .map(|number| bytemuck::pod_read_unaligned::<$number>(number) as f64)
                    .collect()
            };
        }
        macro_rules! by_name {
            ($($number:ident),+) => {
                match self.type_name {
                    $(stringify!($number) => Some(numbers!($number)),)+
                    name if consists_of(name, "f32") => Some(numbers!(f32)),
                    name if consists_of(name, "f64") => Some(numbers!(f64)),
                    name if name.ends_with("::binary16::f16") => Some(half(bytes, from_f16)),
                    name if name.ends_with("::bfloat::bf16") => Some(half(bytes, from_bf16)),
                    _ => None,
                }
            };
        }
        by_name!(f32, f64, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize)
    }
}

/// Whether a type is an array or a complex number of `number`s.
fn consists_of(type_name: &str, number: &str) -> bool {
    let is_array = || type_name.strip_prefix('[')?.strip_prefix(number)?.strip_prefix(';');
    let is_complex =
        || type_name.strip_suffix('>')?.strip_suffix(number)?.strip_suffix("::Complex<");
    is_array().is_some() || is_complex().is_some()
}

fn half(bytes: &[u8], to_number: impl Fn(u16) -> f64) -> Numbers {
    Numbers::from_iter([to_number(bytemuck::pod_read_unaligned(bytes))])
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

/// IEEE 754 binary16.
fn from_f16(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1F), f64::from(bits & 0x3FF));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

/// A bfloat16 is the upper half of an `f32`.
fn from_bf16(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

#[cfg(test)]
mod tests {
    use super::{ElementComparator, from_f16};
    use crate::element::Element;
    use resident_backend::ElementLayout;

    fn comparator<T: Element>() -> ElementComparator {
        ElementComparator::new(ElementLayout::of::<T>())
    }

    fn differ<T: Element>(one: T, other: T, tolerance: f64) -> bool {
        comparator::<T>().differ(bytemuck::bytes_of(&one), bytemuck::bytes_of(&other), tolerance)
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
        assert_eq!(
            comparator::<[f32; 2]>().show(bytemuck::bytes_of(&[1.5_f32, 2.0])),
            "[1.5, 2.0]"
        );
        assert_eq!(comparator::<[u8; 2]>().show(&[1, 0xAB]), "the bytes [01, ab]");
        assert_eq!(comparator::<u8>().show(&[7]), "7");
    }

    #[test]
    fn halves_are_read() {
        assert_eq!(
            [0x3C00, 0xC000, 0x0001, 0x7BFF, 0x0000].map(from_f16),
            [1.0, -2.0, 2.0_f64.powi(-24), 65504.0, 0.0]
        );
        assert!(from_f16(0x7C00).is_infinite() && from_f16(0x7E00).is_nan());
        let (f16, bf16) = (half::f16::from_f32, half::bf16::from_f32);
        assert!(differ(f16(1.0), f16(1.5), 0.25) && !differ(f16(1.0), f16(1.5), 0.5));
        assert!(differ(bf16(1.0), bf16(1.5), 0.25) && !differ(bf16(1.0), bf16(1.5), 0.5));
        assert_eq!(comparator::<half::f16>().show(bytemuck::bytes_of(&f16(-2.5))), "-2.5");
        assert_eq!(comparator::<half::bf16>().show(bytemuck::bytes_of(&bf16(-2.5))), "-2.5");
    }
}
