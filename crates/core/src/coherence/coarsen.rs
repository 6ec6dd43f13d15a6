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
    #[inline]
    pub fn box_count(&self) -> usize {
        match self {
            Self::Uniform(_) => 1,
            Self::Parts(contents) => contents.value_count(),
        }
    }

    /// Whether more than `count_max` boxes of the region are not valid at `location`.
    #[must_use]
    pub fn has_many_stale_boxes(
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
    pub fn coarsen(
        &mut self,
        cells_max: u64,
        withdrawable: LocationSet,
        is_cheaper: impl Fn(usize, u64) -> bool,
    ) -> u64 {
        let withdrawable = withdrawable.without(Location::HOST);
        let Self::Parts(contents) = self else { return 0 };
        let cells = Cells::of(contents.shape(), cells_max);
        let mut withdrawn = 0_u64;
        let mut coarse_cells: Vec<Option<Holders>> = vec![None; cells.count()];
        for (number, parts) in cells.parts(contents).iter().enumerate() {
            let holders = parts.common_holders(withdrawable);
            if holders.is_some() && is_cheaper(parts.count, cells.cell(number).len()) {
                withdrawn = withdrawn.saturating_add(parts.held_elsewhere());
                coarse_cells[number] = holders;
            }
        }
        **contents = cells.coarsened(contents, &coarse_cells);
        withdrawn
    }
}

/// The parts of a cell.
#[derive(Clone)]
struct Parts {
    count: usize,
    /// The locations that hold all parts.
    common: LocationSet,
    /// The locations that hold any part.
    all: LocationSet,
    /// The number of elements at each set of locations. There are few different sets.
    elements_at: SmallVec<[(LocationSet, u64); 2]>,
}

impl Parts {
    fn new() -> Self {
        let (common, all) = (LocationSet::ALL, LocationSet::empty());
        Self { count: 0, common, all, elements_at: SmallVec::new() }
    }

    fn add(&mut self, content: &Content, elements: u64) {
        let locations = stored_at(content);
        self.count += 1;
        self.common = self.common.intersection(locations);
        self.all = self.all.union(locations);
        match self.elements_at.iter_mut().find(|(known, _)| *known == locations) {
            Some((_, sum)) => *sum = sum.saturating_add(elements),
            None => self.elements_at.push((locations, elements)),
        }
    }

    fn elements(&self) -> u64 {
        self.elements_at.iter().fold(0, |sum: u64, (_, more)| sum.saturating_add(*more))
    }

    /// The number of elements that are held at locations which do not hold all parts.
    fn held_elsewhere(&self) -> u64 {
        let elsewhere = self.elements_at.iter().filter(|(locations, _)| *locations != self.common);
        elsewhere.fold(0, |sum: u64, (_, more)| sum.saturating_add(*more))
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

/// Disjoint boxes that cover an array. They are cut along the first axes, which are the slowest in
/// memory.
struct Cells<'a> {
    shape: &'a [u64],
    /// The number of cells along each axis.
    counts: [u64; AXES_MAX],
}

impl<'a> Cells<'a> {
    /// At most `cells_max` cells.
    fn of(shape: &'a [u64], cells_max: u64) -> Self {
        let mut counts = [1_u64; AXES_MAX];
        let mut cells = 1;
        for (count, extent) in counts.iter_mut().zip(shape) {
            *count = (cells_max / cells).clamp(1, (*extent).max(1));
            cells *= *count;
            if *count < *extent {
                break;
            }
        }
        Self { shape, counts }
    }

    fn count(&self) -> usize {
        self.counts.iter().product::<u64>() as usize
    }

    /// One cell, by its number in row-major order.
    fn cell(&self, number: usize) -> Region {
        let mut cell = Region::whole(self.shape);
        let mut rest = number as u64;
        for axis in (0..self.shape.len()).rev() {
            let index = rest % self.counts[axis];
            rest /= self.counts[axis];
            cell = cell.with_span(axis, self.span(axis, index));
        }
        cell
    }

    fn span(&self, axis: usize, index: u64) -> Span {
        let (count, extent) = (u128::from(self.counts[axis]), u128::from(self.shape[axis]));
        let start = |index: u64| (extent * u128::from(index) / count) as u64;
        Span::new(start(index), start(index + 1), 1)
    }

    /// The index along the axis of the cell that has the elements with this index.
    fn index_of(&self, axis: usize, element: u64) -> u64 {
        let (count, extent) = (self.counts[axis], self.shape[axis]);
        match (element + 1).checked_mul(count) {
            Some(product) => (product - 1) / extent,
            None => {
                (((u128::from(element) + 1) * u128::from(count) - 1) / u128::from(extent)) as u64
            }
        }
    }

    /// The parts of each cell. Each box is looked at once: cells are long and thin, and a search
    /// for the boxes of each would pass the same nodes of the tree many times.
    fn parts(&self, contents: &RegionMap<Content>) -> Vec<Parts> {
        let mut parts = vec![Parts::new(); self.count()];
        contents.for_each_box(|region, content| {
            self.visit(region, |number, part| parts[number].add(content, part.len()));
        });
        for (number, parts) in parts.iter_mut().enumerate() {
            let rest = self.cell(number).len() - parts.elements();
            if rest > 0 {
                parts.add(contents.background(), rest);
            }
        }
        parts
    }

    /// The map in which each cell that has holders here is stored at them as a whole.
    fn coarsened(
        &self,
        contents: &RegionMap<Content>,
        coarse_cells: &[Option<Holders>],
    ) -> RegionMap<Content> {
        if let [Some(holders), rest @ ..] = coarse_cells
            && rest.iter().all(|other| *other == Some(*holders))
        {
            return RegionMap::new(self.shape, Content::Stored(*holders));
        }
        let mut coarse = RegionMap::new(self.shape, *contents.background());
        for (number, holders) in coarse_cells.iter().enumerate() {
            if let Some(holders) = holders {
                coarse.update(&self.cell(number), |_| Content::Stored(*holders));
            }
        }
        contents.for_each_box(|region, content| {
            self.visit(region, |number, part| {
                if coarse_cells[number].is_none() {
                    coarse.update(part, |_| *content);
                }
            });
        });
        coarse
    }

    /// Calls `f` with the number of each cell that has elements of the region, and with the part of
    /// the region in it.
    fn visit(&self, region: &Region, mut f: impl FnMut(usize, &Region)) {
        self.visit_from(0, 0, region, &mut f);
    }

    /// As [`visit`](Self::visit), for the part of a region in a cell along the axes before `axis`;
    /// `number` is the number of this cell, counted along these axes.
    fn visit_from(
        &self,
        axis: usize,
        number: usize,
        part: &Region,
        f: &mut impl FnMut(usize, &Region),
    ) {
        let Some(span) = part.spans().get(axis) else { return f(number, part) };
        let number = number * self.counts[axis] as usize;
        let (first, last) =
            (self.index_of(axis, span.start()), self.index_of(axis, span.end() - 1));
        if first == last {
            return self.visit_from(axis + 1, number + first as usize, part, f);
        }
        for index in first..=last {
            if let Some(common) = span.intersection(&self.span(axis, index)) {
                let part = part.with_span(axis, common);
                self.visit_from(axis + 1, number + index as usize, &part, f);
            }
        }
    }
}
