#![forbid(unsafe_code)]
#![allow(
    clippy::result_large_err,
    reason = "a refusal is rare, names a region, and must not need the heap"
)]
//! The coherence core: which location holds the newest contents of which region, and what must be
//! copied where.
//!
//! This module decides and does nothing else. It knows locations, regions and accesses; it knows no
//! clock, lock, thread, device, byte, call site or array type. A caller asks for a plan, queues its
//! copies, and applies the access; both halves are pure functions of the state, and [`step`] is the
//! two of them in one.
//!
//! # The parts, from the bottom
//!
//! - [`Span`]: `start, start + step, ...` along one axis. Spans are closed under intersection (the
//!   Chinese remainder theorem), and a difference of two is a few spans.
//! - [`Region`]: a box, one span per axis. Boxes are closed under intersection; a difference is
//!   peeled off axis by axis.
//! - `Boxes`: disjoint boxes with values, found through an R-tree (`index`, `bounds`) once there
//!   are more than a handful; `carve` cuts them, `merge` joins them.
//! - [`RegionSet`]: boxes without values. [`RegionMap`]: a background value and the boxes that
//!   differ from it; `update` changes it.
//! - [`Content`]: what is known of one element. [`Coherence`]: a `RegionMap<Content>`, plans and
//!   effects.
//!
//! # Why it is right
//!
//! 1. *No defined element is valid nowhere.* `Content` has three forms: undefined, a constant
//!    (which needs no location), and stored with a non-empty set of holders. The bad state cannot
//!    be written down.
//! 2. *Every element has exactly one content.* A map is total: the boxes of its exceptions are
//!    disjoint, and the background speaks for the rest. Every change goes through one of three
//!    steps that keep this: change a value, carve a region out of a box (the difference is exact),
//!    insert a box into a region that was carved free.
//! 3. *A plan copies exactly what is needed.* [`RegionMap::visit`] yields disjoint parts that cover
//!    the region; a part becomes one piece if it is not valid at the destination and none if it is.
//!    Merging pieces keeps their union and their disjointness. So no copy ever writes an element
//!    that is valid at its destination; the only exception are the gap elements that
//!    [`CopyCosts::bridges`] admits, counted as padding and never at the host.
//! 4. *Values are right.* All holders of an element hold equal contents: only a write changes
//!    contents, and it leaves its place as the only holder; a copy adds a holder with the contents
//!    of another.
//!
//! `tests` checks each of these against models that know only cells and bytes.

mod bounds;
mod boxes;
mod carve;
mod content;
mod index;
mod location;
mod merge;
mod plan;
mod region;
mod region_map;
mod region_set;
mod span;
mod state;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use content::{ConstantId, Content, LossId, Undefined};
pub(crate) use location::{Holders, Location, LocationSet};
pub(crate) use plan::{CopyCosts, PlannedCopy, Refusal, Source};
pub(crate) use region::{AXES_MAX, Region};
pub(crate) use region_map::RegionMap;
pub(crate) use region_set::RegionSet;
pub(crate) use span::Span;
pub(crate) use state::{Coherence, step};
