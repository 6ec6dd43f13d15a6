//! The coherence state of one array: queries, plans, and the effects of accesses.

use smallvec::SmallVec;

use super::content::{ConstantId, Content, LossId, Undefined};
use super::location::{Holders, Location, LocationSet};
use super::plan::{self, CopyCosts, PlannedCopy, UndefinedRead};
use super::region::{AXES_MAX, Region};
use super::region_map::RegionMap;
use crate::access::Access;

/// Which location holds the newest contents of which region of one array.
///
/// As in [`RegionMap`], regions have as many axes as the array and are clipped to its shape.
#[derive(Clone, Debug)]
pub(crate) struct Coherence {
    /// The state of each element.
    pub(super) contents: RegionMap<Content>,
}

impl Coherence {
    /// An array that was never written.
    #[must_use]
    #[inline]
    pub(crate) fn undefined(shape: &[u64]) -> Self {
        Self::of(shape, Content::Undefined(Undefined::Never))
    }

    /// An array that is one constant, with which no memory has been filled yet.
    #[must_use]
    pub(crate) fn constant(shape: &[u64], value: ConstantId) -> Self {
        Self::of(shape, Content::Constant { value, filled: LocationSet::empty() })
    }

    /// An array whose contents are valid at one location.
    #[must_use]
    pub(crate) fn stored(shape: &[u64], location: Location) -> Self {
        Self::of(shape, Content::Stored(Holders::of(location)))
    }

    /// An array whose elements all have this content.
    #[inline]
    fn of(shape: &[u64], content: Content) -> Self {
        Self { contents: RegionMap::new(shape, content) }
    }

    /// The extents of the array.
    #[must_use]
    pub(crate) fn shape(&self) -> &[u64] {
        self.contents.shape()
    }

    /// The content of every element, if all elements have the same content.
    #[must_use]
    #[inline]
    pub(crate) fn uniform(&self) -> Option<Content> {
        self.contents.uniform().copied()
    }

    /// Replaces `copies` with the copies that `access` at `location` needs. Overwriting needs none.
    ///
    /// The copies are disjoint and cover exactly the elements of the region that are not valid at
    /// `location`.
    ///
    /// # Errors
    /// The access reads, and part of the region is undefined; `copies` is then empty.
    #[inline]
    pub(crate) fn plan(
        &self,
        location: Location,
        region: &Region,
        access: Access,
        costs: &(impl CopyCosts + ?Sized),
        copies: &mut Vec<PlannedCopy>,
    ) -> Result<(), UndefinedRead> {
        copies.clear();
        if access == Access::Overwrite || self.is_valid(location, region) {
            return Ok(());
        }
        self.plan_stale_region(location, region, costs, copies)
    }

    /// The plan for a region of which at least one element is not valid at `location`.
    #[inline(never)]
    fn plan_stale_region(
        &self,
        location: Location,
        region: &Region,
        costs: &(impl CopyCosts + ?Sized),
        copies: &mut Vec<PlannedCopy>,
    ) -> Result<(), UndefinedRead> {
        let planned = plan::collect_copies(&self.contents, location, region, costs, copies);
        match planned {
            Ok(()) => plan::join_copies(self.shape().len(), copies),
            Err(_) => copies.clear(),
        }
        planned
    }

    /// Applies an access after the copies of its plan are queued: a read makes `location` a holder
    /// of all defined elements; a write makes it their only holder.
    #[inline]
    pub(crate) fn apply(&mut self, location: Location, region: &Region, access: Access) {
        self.change(region, |content| content.after(location, access));
    }

    /// Applies a fill: the region becomes a constant, with which no memory has been filled yet.
    pub(crate) fn write_constant(&mut self, region: &Region, value: ConstantId) {
        self.change(region, |_| Content::Constant { value, filled: LocationSet::empty() });
    }

    /// Records that the copy at `location` is unusable, because it was freed or damaged. Elements
    /// stored only there are lost; other elements become stale at `location`.
    pub(crate) fn invalidate(&mut self, location: Location, region: &Region, loss: LossId) {
        self.change(region, |content| content.after_invalidation(location, loss));
    }

    /// Like [`apply`](Self::apply), for the whole array; builds no region for a uniform array.
    #[inline]
    pub(crate) fn apply_to_all(&mut self, location: Location, access: Access) {
        match self.contents.uniform_mut() {
            Some(content) => *content = content.after(location, access),
            None => self.apply(
                location,
                &Region::whole(&SmallVec::<[u64; AXES_MAX]>::from_slice(self.shape())),
                access,
            ),
        }
    }

    /// Changes the contents in a region, in one step if the array is uniform and the region is the
    /// whole array.
    #[inline]
    fn change(&mut self, region: &Region, next: impl Fn(Content) -> Content) {
        if self.contents.is_whole(region)
            && let Some(content) = self.contents.uniform_mut()
        {
            *content = next(*content);
            return;
        }
        self.contents.update(region, |content| next(*content));
    }

    /// Whether all of the region can be read at `location` without a copy.
    #[must_use]
    #[inline]
    pub(crate) fn is_valid(&self, location: Location, region: &Region) -> bool {
        match self.contents.uniform() {
            Some(content) if content.is_valid(location) => true,
            _ => !self.contents.any_value(region, |content| !content.is_valid(location)),
        }
    }

    /// Whether `location` is the only source of every element of the region.
    #[must_use]
    pub(crate) fn is_only_at(&self, location: Location, region: &Region) -> bool {
        !self.contents.any_value(region, |content| !content.is_only_at(location))
    }

    /// The content of every element of the region, if they all have the same one.
    #[must_use]
    pub(crate) fn common_content(&self, region: &Region) -> Option<Content> {
        let mut common = None;
        let is_mixed =
            self.contents.any_value(region, |content| *common.get_or_insert(*content) != *content);
        common.filter(|_| !is_mixed)
    }

    /// Calls `f` with each content that elements may have.
    pub(crate) fn visit_values(&self, f: impl FnMut(&Content)) {
        self.contents.values().for_each(f);
    }

    /// Calls `f` with disjoint parts that exactly cover the region, and their contents.
    #[inline]
    pub(crate) fn visit_contents(&self, region: &Region, mut f: impl FnMut(&Region, Content)) {
        self.contents.visit(region, |part, content| f(part, *content));
    }

    /// Calls `f` with the loss of each part that is lost.
    pub(crate) fn visit_losses(&self, mut f: impl FnMut(LossId)) {
        self.contents.visit_all(|_, content| {
            if let Content::Undefined(Undefined::Lost(loss)) = content {
                f(*loss);
            }
        });
    }

    /// The number of elements that are valid at `location`, or `u64::MAX` if it is larger.
    #[must_use]
    pub(crate) fn valid_elements(&self, location: Location) -> u64 {
        let mut elements = 0_u64;
        self.contents.visit_all(|part, content| {
            if content.is_valid(location) {
                elements = elements.saturating_add(part.len());
            }
        });
        elements
    }
}
