//! Index arithmetic: which elements a view selects, and which bytes they occupy. Has no state and
//! no side effects.
//!
//! | word | what it is | counted in |
//! |---|---|---|
//! | [`Strided`], [`OwnView`] | a view by shape, strides and offset, borrowed or owned | elements |
//! | [`MemoryOrder`] | the axes in the order in which they lie in memory | units |
//! | [`Span`] | indices along one axis: start, end and step | indices |
//! | [`Region`] | a box of an array: a span for each axis of its memory order | indices |
//! | [`ViewBox`] | a box of a view: a span for each of the view's own axes | indices |
//! | [`Selection`] | the elements of a view: the whole array, or regions | |
//! | [`Footprint`] | the bytes of a region: a *run* (range of bytes) repeated along axes | bytes |
//! | [`CopyBox`] | two footprints of one form: what a copy reads and writes | bytes |
//! | [`PageTable`] | the pages of reserved memory: which have memory, and their last uses | pages |
//!
//! Every copy of an array, on the host and on each device, has the same memory order, so a region
//! means the same bytes in every copy. A *unit* is an element. In arrays of records it is a byte,
//! on an axis of its own, so that a region can be a field of each record.
//!
//! `covering` is about views whose elements are no whole units, as bytes of numbers are.
//! `crossing` is about views of which an axis runs along several axes of the memory order,
//! `reshape` about the strides of a view in another shape, or repeated.
//!
//! Only this module computes lowest offsets, contiguity, packed strides, runs and splits.
//!
//! [`Region`]: crate::coherence::Region
//! [`Span`]: crate::coherence::Span

mod copy_box;
mod covering;
mod crossing;
mod footprint;
mod memory_order;
mod pages;
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
pub use pages::PageTable;
pub use runs::for_each_start;
pub use selection::Selection;
pub use split::split_copies;
pub use strided::{OwnView, Strided, is_repeated};
pub use view_box::ViewBox;
