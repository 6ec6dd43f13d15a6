//! Index arithmetic: which elements a view selects, and which bytes they occupy. Has no state and
//! no side effects.
//!
//! - [`Strided`]: a view by shape, strides and offset in elements, as in ndarray.
//! - [`MemoryOrder`]: the axes in the order in which they lie in memory. Every copy of an array, on
//!   the host and on each device, has this order, so a region means the same bytes in every copy.
//!   Arrays of records have an axis of bytes, so that a region can be a field of each record.
//! - `crossing`: views of which an axis runs along several axes of the memory order.
//! - `reshape`: the strides of a view in another shape, or repeated.
//! - [`Selection`]: the elements of a view as boxes in memory order.
//! - [`Footprint`] and [`CopyBox`]: the bytes of a box, and the copy of a box, as ranges of bytes
//!   (runs) repeated along axes.
//! - [`ViewBox`]: a box in a view's own axes, for copies between two views of one shape.
//!
//! Only this module computes lowest offsets, contiguity, packed strides, runs and splits.

mod copy_box;
mod crossing;
mod footprint;
mod memory_order;
mod reshape;
mod runs;
mod selection;
mod split;
mod strided;
mod view_box;
mod view_copy;

pub use copy_box::CopyBox;
pub use footprint::Footprint;
pub use memory_order::MemoryOrder;
pub use runs::for_each_start;
pub use selection::Selection;
pub use split::split_copies;
pub use strided::{OwnView, Strided, is_repeated};
pub use view_box::ViewBox;
