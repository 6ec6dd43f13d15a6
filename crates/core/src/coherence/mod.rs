#![allow(
    clippy::result_large_err,
    reason = "a failed plan is rare, names a region, and must not need the heap"
)]
//! The coherence core: which location holds the newest contents of which region of an array, and
//! which copies an access needs.
//!
//! This module decides; it executes nothing. Its inputs are locations, regions and accesses. It
//! uses no clocks, locks, threads, devices, bytes, call sites or array types. A caller asks
//! [`Coherence`] for a plan, queues the copies, and then applies the access.
//!
//! # The parts, bottom up
//!
//! - [`Span`]: the indices `start, start + step, ...` along one axis. The intersection of two spans
//!   is a span (Chinese remainder theorem); their difference is a few spans.
//! - [`Region`]: a box, which is one span per axis. The intersection of two boxes is a box; their
//!   difference is found axis by axis.
//! - [`RegionMap`]: a value for every element of an array. It stores a background value and
//!   disjoint boxes whose values differ from the background.
//! - [`Content`]: the state of one element: undefined, a constant, or stored at some locations.
//! - [`Coherence`]: the contents of one array, with a `RegionMap<Content>` once they differ by
//!   region. It makes plans (`plan`), applies accesses, and joins many small parts to fewer large
//!   ones (`coarsen`).
//!
//! # Why it is right
//!
//! 1. *Every defined element is valid somewhere, or is a constant.* `Content` has three forms:
//!    undefined, a constant (which needs no memory), and stored with a non-empty set of holders.
//!    The type cannot express "defined, but valid nowhere".
//! 2. *Every element has exactly one content.* The boxes of a map are disjoint, and every element
//!    outside them has the background value. Each change consists of three kinds of step that
//!    preserve this: change the value of a box; subtract a region from a box (the difference is
//!    exact); insert a box where no box is.
//! 3. *A plan copies exactly the stale elements.* [`RegionMap::visit`] yields disjoint parts that
//!    cover the region. A part that is valid at the destination yields no copy; any other part
//!    yields one. Joining copies changes neither their union nor their disjointness. Therefore no
//!    copy writes an element that is already valid at its destination.
//!    This also holds for copies of gaps between stale parts: `coarsen` first makes the gaps stale,
//!    at devices where nothing relies on them, and never on the host.
//! 4. *Values are right.* All holders of an element hold equal contents. Only a write changes
//!    contents, and it makes its own location the only holder. A copy adds a holder, with the same
//!    contents as an existing holder.
//!
//! `tests` checks each of these properties against models that contain only cells and bytes.

mod coarsen;
mod content;
mod location;
mod plan;
mod protocol;
mod region;
mod region_map;
mod span;
#[cfg(test)]
mod tests;

pub use content::{ConstantId, Content, LossId, Undefined};
pub use location::{Holders, Location, LocationSet};
pub use plan::{CopyCosts, PlannedCopy, Source, UndefinedRead, join_copies};
pub use protocol::Coherence;
pub use region::{AXES_MAX, Region};
pub use region_map::{BoxList, RegionMap};
pub use span::Span;
