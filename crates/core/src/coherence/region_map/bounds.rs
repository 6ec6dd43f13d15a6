//! Bounding boxes, and how the R-tree splits a full node.

use crate::coherence::region::AXES_MAX;
use crate::coherence::span::Span;

/// The largest number of children of a node.
pub(super) const FANOUT: usize = 16;

/// The smallest number of children of a node after a split.
const FILL_MIN: usize = 6;

/// The largest number of entries in the first half of a split node.
const FIRST_MAX: usize = FANOUT + 1 - FILL_MIN;

/// The largest coordinate: 31 bits, so that a comparison is the sign of a 32-bit difference. SIMD
/// instructions compute several such differences at once, and a node takes half the memory that
/// 64-bit indices would need.
const COORDINATE_MAX: u32 = i32::MAX as u32;

/// Converts the indices of each axis to 31-bit coordinates: divides them by a power of two, which
/// is 1 on axes of up to 2^30 elements. Lower bounds round down and upper bounds round up, so
/// bounds always contain their box. On longer axes a search can therefore find boxes that do not
/// overlap its query, but it never misses a box that does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    /// The power of two on each axis.
    shifts: [u8; AXES_MAX],
}

impl Scale {
    /// The scale for boxes whose ends are at most about twice these ends.
    pub(super) fn for_ends(ends: &[u64; AXES_MAX]) -> Self {
        Self { shifts: ends.map(|end| (u64::BITS - end.leading_zeros()).saturating_sub(30) as u8) }
    }

    /// Whether all coordinates of this box are below the largest coordinate, which also represents
    /// all larger indices.
    pub(super) fn can_represent(&self, spans: &[Span]) -> bool {
        spans
            .iter()
            .zip(self.shifts)
            .all(|(span, shift)| span.end() >> shift < u64::from(COORDINATE_MAX))
    }
}

/// The range from first to last index on each axis, as coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// The first index on each axis.
    pub(super) low: [u32; AXES_MAX],
    /// The last index on each axis, plus one.
    pub(super) high: [u32; AXES_MAX],
}

impl Bounds {
    /// The bounds of an empty set of boxes: the neutral element of a union. No query overlaps them.
    pub(super) const EMPTY: Self = Self { low: [COORDINATE_MAX; AXES_MAX], high: [0; AXES_MAX] };

    /// The bounds of the non-empty box with these spans.
    pub(super) fn of(spans: &[Span], scale: &Scale) -> Self {
        let mut bounds = Self::EMPTY;
        for ((axis, span), shift) in spans.iter().enumerate().zip(scale.shifts) {
            bounds.low[axis] = u32::try_from(span.start() >> shift)
                .map_or(COORDINATE_MAX - 1, |low| low.min(COORDINATE_MAX - 1));
            let last = span.end().saturating_sub(1) >> shift;
            bounds.high[axis] =
                u32::try_from(last).map_or(COORDINATE_MAX, |last| last.min(COORDINATE_MAX - 1) + 1);
        }
        bounds
    }

    /// The smallest bounds that contain the two bounds.
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut union = *self;
        for axis in 0..AXES_MAX {
            union.low[axis] = union.low[axis].min(other.low[axis]);
            union.high[axis] = union.high[axis].max(other.high[axis]);
        }
        union
    }

    /// Whether the others lie inside these bounds and touch none of them, so that without them the
    /// bounds of a node stay the same.
    pub(super) fn contains_inside(&self, other: &Self, axes: usize) -> bool {
        (0..axes.min(AXES_MAX))
            .all(|axis| self.low[axis] < other.low[axis] && other.high[axis] < self.high[axis])
    }
}

/// The children of a full node and one more, with their bounds.
pub(super) type Entries = [(u32, Bounds); FANOUT + 1];

/// Places in [`Entries`].
type Places = [u8; FANOUT + 1];

/// The places of the entries in their order along an axis, and how many of them to put into the
/// first half, so that the sum of the margins of the two halves is smallest: the sums of their
/// extents along all axes, which unlike volumes cannot overflow. Of splits with equal sums the last
/// is used, so that boxes inserted in order leave well-filled nodes.
pub(super) fn best_split(entries: &Entries, axes: usize) -> (Places, usize) {
    let mut best = (u64::MAX, [0; FANOUT + 1], FILL_MIN);
    for axis in 0..axes {
        let places = places_along(entries, axis);
        let margins = split_margins(entries, &places, axes);
        for (split, margin) in margins.into_iter().enumerate().take(FIRST_MAX + 1).skip(FILL_MIN) {
            if margin <= best.0 {
                best = (margin, places, split);
            }
        }
    }
    (best.1, best.2)
}

/// The places of the entries, sorted by the first index on this axis, then by the last without its
/// lowest bits: so a place fits beside both, and numbers are sorted quickly.
fn places_along(entries: &Entries, axis: usize) -> Places {
    let mut place = 0..;
    let mut keys = entries.each_ref().map(|(_, bounds)| {
        let (low, high) = (u64::from(bounds.low[axis]), u64::from(bounds.high[axis]));
        low << 33 | high >> 3 << 5 | place.next().unwrap_or(0)
    });
    keys.sort_unstable();
    keys.map(|key| key as u8 & 31)
}

/// The sum of the margins of the two halves, for each number of entries in the first half that
/// leaves enough for the second.
fn split_margins(entries: &Entries, places: &Places, axes: usize) -> [u64; FANOUT + 1] {
    let mut margins = [0_u64; FANOUT + 1];
    for axis in 0..axes.min(AXES_MAX) {
        let [mut first, mut second] = [(COORDINATE_MAX, 0); 2];
        let widened = |(low, high): (u32, u32), at: usize| {
            let (_, bounds) = &entries[usize::from(places[at])];
            (low.min(bounds.low[axis]), high.max(bounds.high[axis]))
        };
        for split in 1..=FIRST_MAX {
            first = widened(first, split - 1);
            margins[split] += u64::from(first.1 - first.0);
            let from = FANOUT + 1 - split;
            second = widened(second, from);
            margins[from] += u64::from(second.1 - second.0);
        }
    }
    margins
}
