//! An index space as a list of cells. A box is a condition on a cell's indices.

use arbitrary::Arbitrary;

use resident_core::coherence::{Region, Span};

/// The maximum number of axes in a program. The core handles each axis alike, so three axes
/// exercise all of it.
const AXES_MAX: usize = 3;

/// The largest extent for each number of axes, so that a program has at most about 200 cells.
const EXTENTS_MAX: [u8; AXES_MAX + 1] = [0, 48, 12, 6];

/// Whether each cell is selected.
pub(super) type Mask = Vec<bool>;

/// All cells, in some order.
pub(super) struct Space {
    pub(super) shape: Vec<u64>,
    cells: Vec<Vec<u64>>,
}

/// A box as drawn at random: a choice for each axis.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct Box {
    ranges: [Interval; AXES_MAX],
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Interval {
    start: u8,
    len: u8,
    step: u8,
}

impl Interval {
    /// Start, end and step along an axis: often the whole axis, and sometimes slightly more.
    fn resolve(self, extent: u64) -> (u64, u64, u64) {
        if self.step >= 176 {
            return (0, extent, 1);
        }
        let start = u64::from(self.start) % (extent + 1);
        let len = u64::from(self.len) % (extent + 3 - start);
        (start, start + len, 1 + u64::from(self.step) % 6)
    }
}

impl Space {
    /// A program has one to three axes; an extent may be zero.
    pub(super) fn new(axes: u8, extents: [u8; AXES_MAX]) -> Self {
        let axes = 1 + usize::from(axes) % AXES_MAX;
        let shape: Vec<u64> = extents[..axes]
            .iter()
            .map(|extent| u64::from(extent % (EXTENTS_MAX[axes] + 1)))
            .collect();
        let cells = shape.iter().fold(vec![Vec::new()], |cells: Vec<Vec<u64>>, extent| {
            let extended = |cell: &Vec<u64>| {
                let cell = cell.clone();
                (0..*extent).map(move |index| [cell.as_slice(), &[index]].concat())
            };
            cells.iter().flat_map(extended).collect()
        });
        Self { shape, cells }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn whole(&self) -> Region {
        Region::whole(&self.shape)
    }

    /// The cells of a box, and the box as a region.
    pub(super) fn resolve(&self, part: &Box) -> (Region, Mask) {
        let ranges: Vec<_> = part
            .ranges
            .iter()
            .zip(&self.shape)
            .map(|(range, extent)| range.resolve(*extent))
            .collect();
        let spans: Vec<Span> =
            ranges.iter().map(|(start, end, step)| Span::new(*start, *end, *step)).collect();
        let holds = |cell: &Vec<u64>| {
            let inside = |(index, (start, end, step)): (&u64, &(u64, u64, u64))| {
                index >= start && index < end && (index - start).is_multiple_of(*step)
            };
            cell.iter().zip(&ranges).all(inside)
        };
        let (region, mask) = (Region::new(&spans), self.cells.iter().map(holds).collect());
        assert_eq!(self.mask(&region), mask);
        (region, mask)
    }

    /// As [`resolve`](Self::resolve), of the part of the box that is inside the space. `None` if it
    /// is empty.
    pub(super) fn resolve_inside(&self, part: &Box) -> Option<(Region, Mask)> {
        let (region, mask) = self.resolve(part);
        Some((region.intersection(&self.whole())?, mask))
    }

    /// The cells of a region from the core.
    pub(super) fn mask(&self, region: &Region) -> Mask {
        self.cells.iter().map(|cell| region.contains_point(cell)).collect()
    }

    /// The cells of regions, which must be disjoint, not empty, and inside the space.
    pub(super) fn disjoint(&self, regions: &[Region]) -> Mask {
        let mut seen = vec![false; self.len()];
        for region in regions {
            let mask = self.mask(region);
            assert!(!region.is_empty());
            assert_eq!(
                region.len(),
                mask.iter().filter(|inside| **inside).count() as u64,
                "{region:?} is beyond {:?}",
                self.shape
            );
            for (seen, inside) in seen.iter_mut().zip(mask) {
                assert!(!(*seen && inside), "a cell is in two of {regions:?}");
                *seen |= inside;
            }
        }
        seen
    }
}
