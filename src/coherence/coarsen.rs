//! Fewer and larger boxes: where many small parts of an array are stale, copying what lies between
//! them too is cheaper.

use smallvec::SmallVec;

use super::content::Content;
use super::location::{Holders, Location, LocationSet};
use super::protocol::Coherence;
use super::region::{AXES_MAX, Region};
use super::region_map::RegionMap;
use super::span::Span;

impl Coherence {
    /// The number of boxes in the state, and one for the rest of the array.
    #[must_use]
    pub(crate) fn box_count(&self) -> usize {
        match self {
            Self::Uniform(_) => 1,
            Self::Parts(contents) => contents.value_count(),
        }
    }

    /// Whether more than `count_max` boxes of the region are not valid at `location`.
    #[must_use]
    pub(crate) fn has_many_stale_boxes(
        &self,
        location: Location,
        region: &Region,
        count_max: usize,
    ) -> bool {
        let mut count = 0;
        self.box_count() > count_max
            && self.any_content(region, |content| {
                count += usize::from(!content.is_valid(location));
                count > count_max
            })
    }

    /// Divides the array into at most `cells_max` cells that are contiguous in memory. In each cell
    /// for whose number of parts and elements `is_cheaper` returns true, withdraws the locations
    /// that do not hold all of it, so that the cell has one content. Returns the number of elements
    /// that became stale somewhere.
    ///
    /// Only locations in `withdrawable` are withdrawn, and never the host, whose views are read
    /// without a lock. A cell that no location holds as a whole stays as it is. So nothing is lost,
    /// and the next copy of a cell to a withdrawn location writes only elements that are not valid
    /// there, like every copy.
    pub(crate) fn coarsen(
        &mut self,
        cells_max: u64,
        withdrawable: LocationSet,
        is_cheaper: impl Fn(usize, u64) -> bool,
    ) -> u64 {
        let withdrawable = withdrawable.without(Location::HOST);
        let Self::Parts(contents) = self else { return 0 };
        let mut coarse = RegionMap::new(contents.shape(), *contents.background());
        let mut withdrawn = 0_u64;
        for_each_cell(contents.shape(), cells_max, |cell| {
            let parts = Parts::of(contents, cell);
            match parts.common_holders(withdrawable).filter(|_| is_cheaper(parts.count, cell.len()))
            {
                Some(holders) => {
                    withdrawn = withdrawn.saturating_add(parts.held_elsewhere);
                    coarse.update(cell, |_| Content::Stored(holders));
                }
                None => contents.visit(cell, |part, content| {
                    coarse.update(part, |_| *content);
                }),
            }
        });
        **contents = coarse;
        withdrawn
    }
}

/// The parts of a cell.
struct Parts {
    count: usize,
    /// The locations that hold all parts.
    common: LocationSet,
    /// The locations that hold any part.
    all: LocationSet,
    /// The number of elements that are held at locations which do not hold all parts.
    held_elsewhere: u64,
}

impl Parts {
    fn of(contents: &RegionMap<Content>, cell: &Region) -> Self {
        let (mut count, mut common, mut all) = (0, LocationSet::ALL, LocationSet::empty());
        // There are few different sets of locations.
        let mut elements_at: SmallVec<[(LocationSet, u64); 4]> = SmallVec::new();
        contents.visit_counts(cell, |content, elements| {
            let locations = stored_at(content);
            (count, common, all) =
                (count + 1, common.intersection(locations), all.union(locations));
            match elements_at.iter_mut().find(|(known, _)| *known == locations) {
                Some((_, sum)) => *sum = sum.saturating_add(elements),
                None => elements_at.push((locations, elements)),
            }
        });
        let elsewhere = elements_at.iter().filter(|(locations, _)| *locations != common);
        let held_elsewhere = elsewhere.fold(0, |sum: u64, (_, more)| sum.saturating_add(*more));
        Self { count, common, all, held_elsewhere }
    }

    /// The locations that hold all parts, if there are several parts and all other locations may be
    /// withdrawn.
    fn common_holders(&self, withdrawable: LocationSet) -> Option<Holders> {
        let kept = self.common.union(withdrawable);
        let may_withdraw = self.all.intersection(kept) == self.all;
        Holders::from_locations(self.common).filter(|_| self.count > 1 && may_withdraw)
    }
}

/// The locations that hold contents. A constant is in no memory that must be kept.
fn stored_at(content: &Content) -> LocationSet {
    match content {
        Content::Stored(holders) => holders.locations(),
        Content::Undefined(_) | Content::Constant { .. } => LocationSet::empty(),
    }
}

/// Calls `visit` with at most `cells_max` disjoint boxes that cover an array of this shape. They
/// are cut along the first axes, which are the slowest in memory.
fn for_each_cell(shape: &[u64], cells_max: u64, mut visit: impl FnMut(&Region)) {
    let mut counts = [1_u64; AXES_MAX];
    let mut cells = 1;
    for (count, extent) in counts.iter_mut().zip(shape) {
        *count = (cells_max / cells).clamp(1, (*extent).max(1));
        cells *= *count;
        if *count < *extent {
            break;
        }
    }
    for number in 0..cells {
        visit(&cell(shape, &counts, number));
    }
}

/// One cell, by its number in row-major order.
fn cell(shape: &[u64], counts: &[u64; AXES_MAX], number: u64) -> Region {
    let mut cell = Region::whole(shape);
    let mut rest = number;
    for axis in (0..shape.len()).rev() {
        let (count, extent) = (counts[axis], shape[axis]);
        let index = rest % count;
        rest /= count;
        let start =
            |index: u64| (u128::from(extent) * u128::from(index) / u128::from(count)) as u64;
        cell = cell.with_span(axis, Span::new(start(index), start(index + 1), 1));
    }
    cell
}
