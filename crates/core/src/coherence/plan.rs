//! Plans: which copies a read needs, and from which sources.

use super::content::{ConstantId, Content, Undefined};
use super::location::Location;
use super::region::Region;
use super::span::Span;

/// Where a copy takes its contents from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// The memory of a location.
    Location(Location),
    /// A constant: the copy is a fill.
    Constant(ConstantId),
}

/// One copy of a plan. Its destination is the location for which the plan was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct PlannedCopy {
    /// Where the contents come from.
    pub source: Source,
    /// The elements to write at the destination.
    pub region: Region,
}

/// Why a read has no plan: part of the region has no contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndefinedRead {
    /// Why that part has no contents. A lost part is reported before one that was never written.
    pub undefined: Undefined,
    /// The first such part found.
    pub region: Region,
}

/// The costs of copies to the destination of a plan.
pub trait CopyCosts {
    /// The cost of a copy from `from`. The source with the lowest cost is used; of equal ones, the
    /// one in the lowest slot.
    fn cost(&self, from: Location) -> u32;
}

/// Adds one copy for each part of a region that is not valid at the destination. `visit` calls its
/// argument with these parts, which are disjoint.
///
/// # Errors
/// Part of the region is undefined.
pub(super) fn collect_copies(
    visit: impl FnOnce(&mut dyn FnMut(&Region, Content)),
    costs: &(impl CopyCosts + ?Sized),
    copies: &mut Vec<PlannedCopy>,
) -> Result<(), UndefinedRead> {
    let mut undefined_read: Option<UndefinedRead> = None;
    visit(&mut |part, content| {
        let source = match content {
            Content::Undefined(undefined) => {
                return keep_first_or_lost(&mut undefined_read, undefined, part);
            }
            Content::Constant { value, .. } => Source::Constant(value),
            Content::Stored(holders) => {
                Source::Location(holders.cheapest(|location| costs.cost(location)))
            }
        };
        copies.push(PlannedCopy { source, region: *part });
    });
    undefined_read.map_or(Ok(()), Err)
}

/// Keeps the first lost part, or the first undefined part if none is lost.
fn keep_first_or_lost(kept: &mut Option<UndefinedRead>, undefined: Undefined, part: &Region) {
    let is_lost = matches!(undefined, Undefined::Lost(_));
    match kept {
        Some(UndefinedRead { undefined: Undefined::Lost(_), .. }) => {}
        Some(_) if !is_lost => {}
        _ => *kept = Some(UndefinedRead { undefined, region: *part }),
    }
}

/// Joins copies that have the same source and whose union is a box. Single rows at equal distances
/// become one strided copy.
///
/// For each axis, the copies are sorted so that copies that differ only on this axis are adjacent
/// and in order. One pass then joins neighbours. A join on one axis can make a join on another
/// possible, so this repeats until a round over all axes joins none.
pub fn join_copies(axes: usize, copies: &mut Vec<PlannedCopy>) {
    let mut count_before = usize::MAX;
    while copies.len() > 1 && copies.len() < count_before {
        count_before = copies.len();
        for axis in (0..axes).rev() {
            copies.sort_unstable_by(|a, b| order_along(axis, a, b));
            copies.dedup_by(|next, kept| {
                let joined = joined(kept, next);
                joined.map(|copy| *kept = copy).is_some()
            });
        }
    }
}

/// Orders by source, then the spans of all other axes, then the span of `axis`.
fn order_along(axis: usize, a: &PlannedCopy, b: &PlannedCopy) -> std::cmp::Ordering {
    let key = |span: Span| (span.start(), span.end(), span.step());
    let others = || (0..a.region.axes()).filter(|other| *other != axis);
    a.source
        .cmp(&b.source)
        .then_with(|| {
            others()
                .map(|other| key(a.region.span(other)))
                .cmp(others().map(|other| key(b.region.span(other))))
        })
        .then_with(|| key(a.region.span(axis)).cmp(&key(b.region.span(axis))))
}

/// The two copies as one, if they have the same source and their union is a box.
fn joined(a: &PlannedCopy, b: &PlannedCopy) -> Option<PlannedCopy> {
    if a.source != b.source {
        return None;
    }
    Some(PlannedCopy { source: a.source, region: a.region.merged(&b.region)? })
}
