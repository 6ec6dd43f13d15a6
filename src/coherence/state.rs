//! The state of one array: what is known of each of its elements, and how accesses change it.

use crate::access::Access;
use smallvec::SmallVec;

use super::content::{ConstantId, Content, LossId, Undefined};
use super::location::{Holders, Location, LocationSet};
use super::plan::{self, CopyCosts, PlannedCopy, Refusal};
use super::region::{AXES_MAX, Region};
use super::region_map::RegionMap;

/// Which location holds the newest contents of which region of one array.
///
/// Regions are cut to the array's shape and have as many axes, as in [`RegionMap`].
#[derive(Clone, Debug)]
pub(crate) struct Coherence {
    /// What is known of each element.
    contents: RegionMap<Content>,
}

impl Coherence {
    /// An array that was never written.
    #[must_use]
    pub(crate) fn undefined(shape: &[u64]) -> Self {
        Self::of(shape, Content::Undefined(Undefined::Never))
    }

    /// An array of one constant, which stands in no memory yet.
    #[must_use]
    pub(crate) fn constant(shape: &[u64], value: ConstantId) -> Self {
        Self::of(shape, Content::Constant { value, filled: LocationSet::empty() })
    }

    /// An array whose contents stand at one location.
    #[must_use]
    pub(crate) fn stored(shape: &[u64], location: Location) -> Self {
        Self::of(shape, Content::Stored(Holders::of(location)))
    }

    /// An array with the same known of every element.
    fn of(shape: &[u64], content: Content) -> Self {
        Self { contents: RegionMap::new(shape, content) }
    }

    /// The extents of the array.
    #[must_use]
    pub(crate) fn shape(&self) -> &[u64] {
        self.contents.shape()
    }

    /// What is known of every element, if it is the same.
    #[must_use]
    #[inline]
    pub(crate) fn uniform(&self) -> Option<Content> {
        self.contents.uniform().copied()
    }

    /// The copies that `access` at `location` needs, in `pieces` (cleared first). Overwriting needs
    /// none.
    ///
    /// Each element of the region that is not valid at `location` is in exactly one piece; no
    /// element that is valid there is in any, padding aside.
    ///
    /// # Errors
    /// What is to be read is undefined in part; there are no pieces then.
    #[inline]
    pub(crate) fn plan(
        &self,
        location: Location,
        region: &Region,
        access: Access,
        costs: &(impl CopyCosts + ?Sized),
        pieces: &mut Vec<PlannedCopy>,
    ) -> Result<(), Refusal> {
        pieces.clear();
        if access == Access::Overwrite || self.is_valid(location, region) {
            return Ok(());
        }
        self.plan_copies(location, region, costs, pieces)
    }

    /// The copies for a region that is not all valid at `location`.
    #[inline(never)]
    fn plan_copies(
        &self,
        location: Location,
        region: &Region,
        costs: &(impl CopyCosts + ?Sized),
        pieces: &mut Vec<PlannedCopy>,
    ) -> Result<(), Refusal> {
        let gathered = plan::gather(&self.contents, location, region, costs, pieces);
        match gathered {
            Ok(()) => plan::join(&self.contents, location, costs, pieces),
            Err(_) => pieces.clear(),
        }
        gathered
    }

    /// The effect of an access once the copies of its plan are queued: a read makes `location` a
    /// holder of what is defined; a write makes it the only one.
    #[inline]
    pub(crate) fn apply(&mut self, location: Location, region: &Region, access: Access) {
        self.change(region, |content| content.after(location, access));
    }

    /// The effect of a fill: the region is a constant, which stands in no memory yet.
    pub(crate) fn write_constant(&mut self, region: &Region, value: ConstantId) {
        self.change(region, |_| Content::Constant { value, filled: LocationSet::empty() });
    }

    /// The copy at `location` is gone or spoiled: stale where it can be had elsewhere, lost where
    /// not.
    pub(crate) fn withdraw(&mut self, location: Location, region: &Region, loss: LossId) {
        self.change(region, |content| content.after_withdrawal(location, loss));
    }

    /// As [`apply`](Self::apply), to the whole array, without a box where one content is
    /// everywhere.
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

    /// Changes the contents in a region; the whole of a uniform array at once.
    #[inline]
    fn change(&mut self, region: &Region, next: impl Fn(Content) -> Content) {
        if self.contents.is_whole(region)
            && let Some(content) = self.contents.uniform_mut()
        {
            *content = next(*content);
            return;
        }
        self.contents.update_values(region, |content| next(*content));
    }

    /// True if all of the region can be read at `location` as it stands.
    #[must_use]
    #[inline]
    pub(crate) fn is_valid(&self, location: Location, region: &Region) -> bool {
        match self.contents.uniform() {
            Some(content) if content.is_valid(location) => true,
            _ => !self.contents.any_value(region, |content| !content.is_valid(location)),
        }
    }

    /// True if all of the region stands at `location` and can be had nowhere else.
    #[must_use]
    pub(crate) fn is_only_at(&self, location: Location, region: &Region) -> bool {
        !self.contents.any_value(region, |content| !content.is_only_at(location))
    }

    /// True if anything in the region stands at `location` and can be had nowhere else.
    #[must_use]
    pub(crate) fn would_lose(&self, location: Location, region: &Region) -> bool {
        self.contents.any_value(region, |content| content.is_only_at(location))
    }

    /// Calls `f` with disjoint parts that exactly cover the region, and what is known of them.
    pub(crate) fn newest(&self, region: &Region, mut f: impl FnMut(&Region, Content)) {
        self.contents.visit(region, |part, content| f(part, *content));
    }

    /// The number of elements that are valid at `location`.
    #[must_use]
    pub(crate) fn valid_elements(&self, location: Location) -> u64 {
        self.count(|content| content.is_valid(location))
    }

    /// The number of elements without contents.
    #[must_use]
    pub(crate) fn undefined_elements(&self) -> u64 {
        self.count(|content| !content.is_defined())
    }

    /// The number of different parts that are kept track of.
    #[must_use]
    pub(crate) fn pieces(&self) -> usize {
        self.contents.pieces()
    }

    /// The heap that the state takes.
    #[must_use]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.contents.heap_bytes()
    }

    /// The map that the state consists of.
    #[cfg(test)]
    pub(super) const fn contents(&self) -> &RegionMap<Content> {
        &self.contents
    }

    /// The number of elements with such contents.
    fn count(&self, is_counted: impl Fn(&Content) -> bool) -> u64 {
        let mut elements = 0_u64;
        self.contents.visit_all(|part, content| {
            if is_counted(content) {
                elements = elements.saturating_add(part.len());
            }
        });
        elements
    }
}

/// The whole of the core as one total, pure function: the next state and the copies to make.
///
/// # Errors
/// What is to be read is undefined in part; the state stays as it is.
pub(crate) fn step(
    state: &Coherence,
    location: Location,
    region: &Region,
    access: Access,
    costs: &(impl CopyCosts + ?Sized),
) -> Result<(Coherence, Vec<PlannedCopy>), Refusal> {
    let mut pieces = Vec::new();
    state.plan(location, region, access, costs, &mut pieces)?;
    let mut next = state.clone();
    next.apply(location, region, access);
    Ok((next, pieces))
}
