//! Which values can live in an array.

use bytemuck::Pod;

/// A value that may be copied between host and devices as plain bytes: any [`bytemuck::Pod`] that
/// may be sent and shared between threads.
///
/// Integers, floats, `half`'s and `num_complex`'s types and your own `#[derive(Pod, Zeroable)]`
/// structs are elements. `bool` is not, since not every byte is one: use `u8`. The trait is
/// implemented for all such types; there is nothing to write. (Bytemuck's derives name the crate
/// `bytemuck`: it has to be among your own dependencies, with its feature `derive`.) An array of
/// elements that are larger than 4 GiB or aligned to more than 256 bytes, as devices align their
/// memory, does not compile.
///
/// ```
/// use resident::{SmartArray, bytemuck::{Pod, Zeroable}};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Particle { position: [f32; 3], mass: f32 }
///
/// let cloud = SmartArray::from(vec![Particle { position: [0.0; 3], mass: 1.0 }; 100]);
/// assert_eq!(cloud.len(), 100);
/// ```
///
/// Aligned to more than any device aligns its memory:
///
/// ```compile_fail,E0080
/// # use resident::{SmartArray, bytemuck::{Pod, Zeroable}};
/// #[repr(C, align(512))]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Page([u8; 512]);
///
/// let pages = SmartArray::from(vec![Page([0; 512]); 4]); // with `align(256)` and 256 bytes it compiles
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of an array",
    label = "not an element",
    note = "elements are `bytemuck::Pod + Send + Sync`; derive `Pod` and `Zeroable` for your struct, or use `u8` instead of `bool`"
)]
pub trait Element: Pod + Send + Sync {}

#[diagnostic::do_not_recommend]
impl<T: Pod + Send + Sync> Element for T {}
