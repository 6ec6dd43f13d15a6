//! Bounds of boxes, and how the index cuts a full node in two.

use super::region::AXES_MAX;
use super::span::Span;

/// The largest number of children of a node.
pub(super) const FANOUT: usize = 16;

/// The smallest number of children of a node after a split.
const FILL_MIN: usize = 6;

/// The largest coordinate: 31 bits, so that a comparison is the sign of a 32-bit difference. All
/// processors take several of those at once, and a node of the index takes half the room that whole
/// indices would need.
const LIMIT: u32 = i32::MAX as u32;

/// How the indices of an axis become coordinates of 31 bits: divided by a power of two, which is
/// one on axes of up to 2^30. Lows are rounded down and highs up, so bounds cover their box, if
/// with a margin on longer axes: the search then finds a box too many now and then, never one too
/// few.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    /// The power of two on each axis.
    shifts: [u8; AXES_MAX],
}

impl Scale {
    /// The scale for boxes up to these ends, with room for about twice as much.
    pub(super) fn reaching(ends: &[u64; AXES_MAX]) -> Self {
        Self { shifts: ends.map(|end| (u64::BITS - end.leading_zeros()).saturating_sub(30) as u8) }
    }

    /// True if no bounds of this box are cut to the largest coordinate.
    pub(super) fn can_access_peer(&self, spans: &[Span]) -> bool {
        spans.iter().zip(self.shifts).all(|(span, shift)| span.end() >> shift < u64::from(LIMIT))
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
    /// Bounds of nothing: neutral in a union, and overlapped by no query.
    pub(super) const NOTHING: Self = Self { low: [LIMIT; AXES_MAX], high: [0; AXES_MAX] };

    /// The bounds of the box with these spans, which is not empty.
    pub(super) fn of(spans: &[Span], scale: &Scale) -> Self {
        let mut bounds = Self::NOTHING;
        for ((axis, span), shift) in spans.iter().enumerate().zip(scale.shifts) {
            bounds.low[axis] =
                u32::try_from(span.start() >> shift).map_or(LIMIT - 1, |low| low.min(LIMIT - 1));
            let last = span.end().saturating_sub(1) >> shift;
            bounds.high[axis] = u32::try_from(last).map_or(LIMIT, |last| last.min(LIMIT - 1) + 1);
        }
        bounds
    }

    /// The bounds of both.
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut union = *self;
        for axis in 0..AXES_MAX {
            union.low[axis] = union.low[axis].min(other.low[axis]);
            union.high[axis] = union.high[axis].max(other.high[axis]);
        }
        union
    }

    /// The sum of the extents of the first `axes` axes: unlike a volume it tells flat boxes apart.
    pub(super) fn margin(&self, axes: usize) -> u64 {
        (0..axes).map(|axis| u64::from(self.high[axis].saturating_sub(self.low[axis]))).sum()
    }
}

/// Sorts the entries along the axis, and finds the location to cut them in two, for which the
/// margins of the two halves are least. Among equal cuts the last wins: boxes that come in order
/// then leave well-filled nodes behind.
pub(super) fn best_cut(entries: &mut [(u32, Bounds); FANOUT + 1], axes: usize) -> usize {
    let mut best = (u64::MAX, 0, FILL_MIN);
    for axis in 0..axes {
        sort_along(entries, axis);
        let margins = cut_margins(entries, axes);
        for (cut, margin) in
            margins.into_iter().enumerate().skip(FILL_MIN).take(FANOUT + 2 - 2 * FILL_MIN)
        {
            if margin <= best.0 {
                best = (margin, axis, cut);
            }
        }
    }
    sort_along(entries, best.1);
    best.2
}

/// Sorts by the first index on this axis, then by the last.
fn sort_along(entries: &mut [(u32, Bounds); FANOUT + 1], axis: usize) {
    entries.sort_unstable_by_key(|(_, bounds)| (bounds.low[axis], bounds.high[axis]));
}

/// For each number of entries in the first half: the sum of the margins of both halves.
fn cut_margins(entries: &[(u32, Bounds); FANOUT + 1], axes: usize) -> [u64; FANOUT + 1] {
    let mut margins = [0_u64; FANOUT + 1];
    let (mut first, mut second) = (Bounds::NOTHING, Bounds::NOTHING);
    for cut in 1..=FANOUT {
        first = first.union(&entries[cut - 1].1);
        margins[cut] += first.margin(axes);
        let from = FANOUT + 1 - cut;
        second = second.union(&entries[from].1);
        margins[from] += second.margin(axes);
    }
    margins
}
