//! Plans: which copies an access needs.

use super::content::{ConstantId, Content, Undefined};
use super::location::{Holders, Location};
use super::region::Region;
use super::region_map::RegionMap;
use super::span::Span;

/// Where a copy takes its contents from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Source {
    /// The memory of a location.
    Location(Location),
    /// A constant: a fill, from nowhere.
    Constant(ConstantId),
}

/// One copy of a plan. Its destination is the location that the plan was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct PlannedCopy {
    /// Where the contents come from.
    pub(crate) source: Source,
    /// The elements to be written at the destination.
    pub(crate) region: Region,
    /// How many of them are valid at the destination already (see [`CopyCosts::bridges`]).
    pub(crate) padding: u64,
}

/// A read that cannot be served: part of the region has no contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// Why. Lost contents are named before those that never were.
    pub(crate) undefined: Undefined,
    /// The first part found.
    pub(crate) region: Region,
}

/// What the caller knows of the ways between locations.
pub(crate) trait CopyCosts {
    /// The cost of a copy from `from` to the destination of the plan; the least wins, then the
    /// lowest slot.
    fn cost(&self, from: Location) -> u32;

    /// True if two copies from one source should be one that also writes the `gap_elements` between
    /// them. They are valid at the destination and equal at the source, so this changes no value,
    /// but it does write: never asked for the host, whose readers may be reading them.
    fn bridges(&self, _gap_elements: u64) -> bool {
        false
    }
}

/// Adds a piece for each part of the region that is not valid at `location`, or says what is
/// undefined.
pub(super) fn gather(
    contents: &RegionMap<Content>,
    location: Location,
    region: &Region,
    costs: &(impl CopyCosts + ?Sized),
    pieces: &mut Vec<PlannedCopy>,
) -> Result<(), Refusal> {
    let mut refusal: Option<Refusal> = None;
    contents.visit(region, |part, content| {
        if content.is_valid(location) {
            return;
        }
        let source = match *content {
            Content::Undefined(undefined) => return refuse(&mut refusal, undefined, part),
            Content::Constant { value, .. } => Source::Constant(value),
            Content::Stored(holders) => Source::Location(nearest(holders, costs)),
        };
        pieces.push(PlannedCopy { source, region: *part, padding: 0 });
    });
    refusal.map_or(Ok(()), Err)
}

/// The holder from which a copy costs least.
fn nearest(holders: Holders, costs: &(impl CopyCosts + ?Sized)) -> Location {
    holders.nearest(|location| costs.cost(location))
}

/// Remembers the first undefined part, or the first that was lost.
fn refuse(refusal: &mut Option<Refusal>, undefined: Undefined, part: &Region) {
    let lost = matches!(undefined, Undefined::Lost(_));
    match refusal {
        Some(Refusal { undefined: Undefined::Lost(_), .. }) => {}
        Some(_) if !lost => {}
        _ => *refusal = Some(Refusal { undefined, region: *part }),
    }
}

/// Joins pieces of one source whose union is a box, and those whose gap may be bridged. Single rows
/// at equal distances become one strided copy.
///
/// For each axis the pieces are sorted so that those which differ on this axis alone stand side by
/// side, in order; then one pass joins neighbours. A join on one axis can make a join on another
/// possible, so this goes on until a round over all axes joins none.
pub(super) fn join(
    contents: &RegionMap<Content>,
    location: Location,
    costs: &(impl CopyCosts + ?Sized),
    pieces: &mut Vec<PlannedCopy>,
) {
    let mut before = usize::MAX;
    while pieces.len() > 1 && pieces.len() < before {
        before = pieces.len();
        for axis in (0..contents.shape().len()).rev() {
            pieces.sort_unstable_by(|a, b| order_along(axis, a, b));
            pieces.dedup_by(|next, kept| {
                let joined = joined(kept, next)
                    .or_else(|| bridged(contents, location, costs, axis, kept, next));
                joined.map(|piece| *kept = piece).is_some()
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

/// Both pieces as one, if they have one source and their union is a box.
fn joined(a: &PlannedCopy, b: &PlannedCopy) -> Option<PlannedCopy> {
    if a.source != b.source {
        return None;
    }
    let region = a.region.merged_strided(&b.region)?;
    Some(PlannedCopy { source: a.source, region, padding: a.padding + b.padding })
}

/// Both pieces and the gap between them, where that is all right: see [`CopyCosts::bridges`].
fn bridged(
    contents: &RegionMap<Content>,
    location: Location,
    costs: &(impl CopyCosts + ?Sized),
    axis: usize,
    a: &PlannedCopy,
    b: &PlannedCopy,
) -> Option<PlannedCopy> {
    if location == Location::HOST || a.source != b.source {
        return None;
    }
    let (hull, gap) = hull_and_gap(axis, &a.region, &b.region)?;
    if !costs.bridges(gap.len())
        || contents.any_value(&gap, |content| !is_equally_new(content, location, a.source))
    {
        return None;
    }
    Some(PlannedCopy { source: a.source, region: hull, padding: a.padding + b.padding + gap.len() })
}

/// True if an element is valid at the location and the same at the source.
fn is_equally_new(content: &Content, location: Location, source: Source) -> bool {
    content.is_valid(location)
        && match source {
            Source::Location(from) => content.is_valid(from),
            Source::Constant(wanted) => {
                matches!(content, Content::Constant { value, .. } if *value == wanted)
            }
        }
}

/// The box around two that differ on `axis` alone and lie on one lattice, and what is between them.
fn hull_and_gap(axis: usize, a: &Region, b: &Region) -> Option<(Region, Region)> {
    let (first, second) = (a.span(axis), b.span(axis));
    if a.with_span(axis, second) != *b || second.start() < first.end() {
        return None;
    }
    let step = first.step().max(second.step());
    let joins = |span: &Span| span.len() == 1 || span.step() == step;
    if !joins(&first) || !joins(&second) || !(second.start() - first.start()).is_multiple_of(step) {
        return None;
    }
    let hull = Span::new(first.start(), second.end(), step);
    let gap = Span::new(first.end() - 1 + step, second.start(), step);
    Some((a.with_span(axis, hull), a.with_span(axis, gap)))
}
