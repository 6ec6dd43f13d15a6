//! The types that can be elements of an array.

use std::any::{TypeId, type_name};

use bytemuck::Pod;

/// A type whose values can be copied between host and devices as plain bytes: every
/// [`bytemuck::Pod`] type that is `Send + Sync`.
///
/// Integers, floats, the types of `half` and `num_complex`, and your own structs with
/// `#[derive(Element)]` are elements. `bool` is not an element, since some byte values are not
/// valid `bool`s: use `u8`. All types with these properties implement the trait already: structs
/// with bytemuck's `#[derive(Pod, Zeroable)]` too, and those with generic parameters for which you
/// implement `Pod` yourself. If an element type is larger than 4 GiB or has an alignment above 256
/// bytes (the alignment of device memory), arrays of it do not compile.
///
/// ```
/// use resident::{Element, SmartArray};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Element)]
/// struct Particle { position: [f32; 3], mass: f32 }
///
/// let cloud = SmartArray::from(vec![Particle { position: [0.0; 3], mass: 1.0 }; 100]);
/// assert_eq!(cloud.len(), 100);
/// ```
///
/// [`field!`](crate::field!) gives a view of one field of such records.
///
/// An alignment that is too large:
///
/// ```compile_fail,E0080
/// # use resident::{Element, SmartArray};
/// #[repr(C, align(512))]
/// #[derive(Clone, Copy, Element)]
/// struct Page([u8; 512]);
///
/// let pages = SmartArray::from(vec![Page([0; 512]); 4]); // `align(256)` would compile
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of an array",
    label = "not an element",
    note = "elements are `bytemuck::Pod + Send + Sync`: for your struct write `#[repr(C)]` and \
            `#[derive(Clone, Copy, resident::Element)]`; use `u8` instead of `bool`"
)]
pub trait Element: Pod + Send + Sync {}

#[diagnostic::do_not_recommend]
impl<T: Pod + Send + Sync> Element for T {}

/// What `#[derive(Element)]` calls for the type of each field.
pub const fn is_element<T: Element>() {}

/// Whether a type is a number, which has no fields. Arrays of other types track the bytes of their
/// elements one by one, so that a field of each element can be in another place than the rest.
pub(crate) fn is_number<T: Element>() -> bool {
    macro_rules! is_one_of {
        ($($number:ty),+) => {
            $(TypeId::of::<T>() == TypeId::of::<$number>())||+
        };
    }
    match size_of::<T>() {
        len_bytes if len_bytes != align_of::<T>() => false,
        1 => true,
        2 => {
            is_one_of!(u16, i16)
                || matches!(type_name::<T>(), "half::binary16::f16" | "half::bfloat::bf16")
        }
        4 => is_one_of!(f32, u32, i32, usize, isize),
        8 => is_one_of!(f64, u64, i64, usize, isize),
        16 => is_one_of!(u128, i128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn numbers_have_no_fields() {
        macro_rules! are_numbers {
            ($($number:ty),+) => { [$(is_number::<$number>()),+] };
        }
        let numbers = are_numbers!(
            i8,
            u8,
            i16,
            u16,
            half::f16,
            half::bf16,
            i32,
            u32,
            f32,
            i64,
            u64,
            f64,
            isize,
            usize,
            i128,
            u128
        );
        assert_eq!(numbers, [true; 16]);
        assert_eq!(are_numbers!((), [u8; 2], [u16; 2], [f32; 2], [u64; 2]), [false; 5]);
    }
}
