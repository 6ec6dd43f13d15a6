//! The coherence state of one array: queries, plans, and the effects of accesses.

use super::content::{ConstantId, Content, LossId, Undefined};
use super::location::{Holders, Location, LocationSet};
use super::plan::{self, CopyCosts, PlannedCopy, UndefinedRead};
use super::region::Region;
use super::region_map::RegionMap;
use crate::Access;

/// Which location holds the newest contents of which region of one array.
///
/// The caller has the shape of the array. Regions have as many axes as the shape, and are inside.
#[derive(Clone, Debug)]
pub enum Coherence {
    /// Every element has this content: the usual case, which needs no map.
    Uniform(Content),
    /// Contents by region. The map is kept if all elements have the same content again, so that
    /// repeated changes of a part allocate nothing.
    Parts(Box<RegionMap<Content>>),
}

impl Coherence {
    /// An array that was never written.
    pub const UNDEFINED: Self = Self::Uniform(Content::Undefined(Undefined::Never));

    /// An array that is one constant, with which no memory has been filled yet.
    #[must_use]
    pub const fn constant(value: ConstantId) -> Self {
        Self::Uniform(Content::Constant { value, filled: LocationSet::empty() })
    }

    /// An array whose contents are valid at one location.
    #[must_use]
    pub const fn stored(location: Location) -> Self {
        Self::Uniform(Content::Stored(Holders::of(location)))
    }

    /// The content of every element, if all elements have the same content.
    #[must_use]
    #[inline]
    pub fn uniform(&self) -> Option<Content> {
        match self {
            Self::Uniform(content) => Some(*content),
            Self::Parts(contents) => contents.uniform().copied(),
        }
    }

    #[inline]
    fn uniform_mut(&mut self) -> Option<&mut Content> {
        match self {
            Self::Uniform(content) => Some(content),
            Self::Parts(contents) => contents.uniform_mut(),
        }
    }

    /// The contents by region.
    fn contents(&mut self, shape: &[u64]) -> &mut RegionMap<Content> {
        if let Self::Uniform(content) = self {
            *self = Self::Parts(Box::new(RegionMap::new(shape, *content)));
        }
        match self {
            Self::Parts(contents) => contents,
            Self::Uniform(_) => unreachable!("the contents were just made contents by region"),
        }
    }

    /// Replaces `copies` with the copies that `access` at `location` needs. Overwriting needs none.
    ///
    /// The copies are disjoint and cover exactly the elements of the region that are not valid at
    /// `location`.
    ///
    /// # Errors
    /// The access reads, and part of the region is undefined; `copies` is then empty.
    #[inline]
    pub fn plan(
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
        let visit = |add: &mut dyn FnMut(&Region, Content)| self.visit_stale(location, region, add);
        let planned = plan::collect_copies(visit, costs, copies);
        match planned {
            Ok(()) => plan::join_copies(region.axes(), copies),
            Err(_) => copies.clear(),
        }
        planned
    }

    /// Applies an access after the copies of its plan are queued: a read makes `location` a holder
    /// of all defined elements; a write makes it their only holder.
    #[inline]
    pub fn apply(&mut self, shape: &[u64], location: Location, region: &Region, access: Access) {
        self.change(shape, region, |content| content.after(location, access));
    }

    /// Makes `location` the only holder of a region that has only one content, if `is_allowed`
    /// returns true for it. Returns the content before. Looks for it only once, unlike
    /// [`common_content`](Self::common_content) and [`apply`](Self::apply).
    pub fn overwrite_common(
        &mut self,
        shape: &[u64],
        location: Location,
        region: &Region,
        is_allowed: impl FnOnce(Content) -> bool,
    ) -> Option<Content> {
        let after = |content: &Content| {
            is_allowed(*content).then(|| content.after(location, Access::Overwrite))
        };
        if let Self::Uniform(content) = *self
            && content.is_only_at(location)
        {
            return after(&content).map(|_| content);
        }
        self.contents(shape).update_common(region, after)
    }

    /// Applies a fill: the region becomes a constant, with which no memory has been filled yet.
    pub fn write_constant(&mut self, shape: &[u64], region: &Region, value: ConstantId) {
        let constant = Content::Constant { value, filled: LocationSet::empty() };
        self.change(shape, region, |_| constant);
    }

    /// Forgets the contents of a region: it is as if it had never been written.
    pub fn discard(&mut self, shape: &[u64], region: &Region) {
        self.change(shape, region, |_| Content::Undefined(Undefined::Never));
    }

    /// Records that the copy at `location` is unusable, because it was freed or damaged. Elements
    /// stored only there are lost; other elements become stale at `location`.
    pub fn invalidate(&mut self, shape: &[u64], location: Location, region: &Region, loss: LossId) {
        self.change(shape, region, |content| content.after_invalidation(location, loss));
    }

    /// Like [`apply`](Self::apply), for the whole array.
    #[inline]
    pub fn apply_to_all(&mut self, location: Location, access: Access) {
        match self {
            Self::Uniform(content) => *content = content.after(location, access),
            Self::Parts(contents) => {
                let whole = Region::whole(contents.shape());
                contents.update(&whole, |content| content.after(location, access));
            }
        }
    }

    /// Records that the memory of one location is that of another from now on, at which nothing was
    /// valid: what was valid at the first is valid at the second, and nothing at the first.
    pub fn move_location(&mut self, from: Location, to: Location) {
        match self {
            Self::Uniform(content) => *content = content.after_move(from, to),
            Self::Parts(contents) => {
                let whole = Region::whole(contents.shape());
                contents.update(&whole, |content| content.after_move(from, to));
            }
        }
    }

    /// Changes the contents in a region, in one step if the array is uniform and the region is the
    /// whole array. Makes no map if nothing changes.
    #[inline]
    fn change(&mut self, shape: &[u64], region: &Region, next: impl Fn(Content) -> Content) {
        if let Some(content) = self.uniform_mut() {
            let changed = next(*content);
            if region.is_whole(shape) {
                *content = changed;
                return;
            }
            if changed == *content || region.is_empty() {
                return;
            }
        }
        self.contents(shape).update(region, |content| next(*content));
    }

    /// Whether `f` returns true for any content in the region.
    #[inline]
    pub(super) fn any_content(&self, region: &Region, mut f: impl FnMut(&Content) -> bool) -> bool {
        match self {
            Self::Uniform(content) => !region.is_empty() && f(content),
            Self::Parts(contents) => contents.any_value(region, f),
        }
    }

    /// Whether all of the region can be read at `location` without a copy.
    #[must_use]
    #[inline]
    pub fn is_valid(&self, location: Location, region: &Region) -> bool {
        match self.uniform() {
            Some(content) if content.is_valid(location) => true,
            _ => !self.any_content(region, |content| !content.is_valid(location)),
        }
    }

    /// Whether `location` is the only source of every element of the region.
    #[must_use]
    pub fn is_only_at(&self, location: Location, region: &Region) -> bool {
        !self.any_content(region, |content| !content.is_only_at(location))
    }

    /// The content of every element of the region, if they all have the same one.
    #[must_use]
    pub fn common_content(&self, region: &Region) -> Option<Content> {
        let mut common = None;
        let is_mixed =
            self.any_content(region, |content| *common.get_or_insert(*content) != *content);
        common.filter(|_| !is_mixed)
    }

    /// Calls `f` with each content that elements may have.
    pub fn visit_values(&self, mut f: impl FnMut(&Content)) {
        match self {
            Self::Uniform(content) => f(content),
            Self::Parts(contents) => contents.values().for_each(f),
        }
    }

    /// Calls `f` with disjoint parts that exactly cover the region, and their contents.
    #[inline]
    pub fn visit_contents(&self, region: &Region, mut f: impl FnMut(&Region, Content)) {
        match self {
            Self::Uniform(content) if !region.is_empty() => f(region, *content),
            Self::Uniform(_) => {}
            Self::Parts(contents) => contents.visit(region, |part, content| f(part, *content)),
        }
    }

    /// Calls `f` with disjoint parts that exactly cover the elements of the region that are not
    /// valid at `location`.
    fn visit_stale(
        &self,
        location: Location,
        region: &Region,
        mut f: impl FnMut(&Region, Content),
    ) {
        let is_stale = |content: &Content| !content.is_valid(location);
        match self {
            Self::Uniform(content) if is_stale(content) && !region.is_empty() => {
                f(region, *content);
            }
            Self::Uniform(_) => {}
            Self::Parts(contents) => {
                contents.visit_where(region, is_stale, |part, content| f(part, *content));
            }
        }
    }

    /// Calls `f` with the loss of each part that is lost.
    pub fn visit_losses(&self, mut f: impl FnMut(LossId)) {
        let visit = |content: &Content| {
            if let Content::Undefined(Undefined::Lost(loss)) = content {
                f(*loss);
            }
        };
        match self {
            Self::Uniform(content) => Some(content).into_iter().for_each(visit),
            Self::Parts(contents) => contents.values().for_each(visit),
        }
    }

    /// The number of elements that are valid at `location`, or `u64::MAX` if it is larger.
    #[must_use]
    pub fn valid_elements(&self, shape: &[u64], location: Location) -> u64 {
        let mut elements = 0_u64;
        self.visit_contents(&Region::whole(shape), |part, content| {
            if content.is_valid(location) {
                elements = elements.saturating_add(part.len());
            }
        });
        elements
    }
}
