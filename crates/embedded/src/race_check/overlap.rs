//! Whether two footprints share a byte. The result is exact if one of them has at most [`RUNS_MAX`]
//! runs within the other's bounds.
//!
//! The search iterates over the runs of the footprint that has fewer. For each run it searches the
//! other footprint axis by axis, and considers only the indices whose boxes can overlap the run.

#![forbid(unsafe_code)]

use std::ops::Range;

use resident_backend::Footprint;

/// After this many runs the search reports no overlap. A search through this many runs takes about
/// a tenth of a second.
const RUNS_MAX: u64 = 1 << 21;

/// Axes, slowest first: count and stride.
type Axes<'a> = &'a [(u64, u64)];

/// Normalises a footprint: the same bytes with as few axes and as long runs as possible. `None` if
/// there is no byte. The offset of the footprint's end must fit 64 bits.
pub(crate) fn normalised(footprint: &Footprint) -> Option<Footprint> {
    let axes = footprint.axes.iter().copied().filter(|axis| axis.0 != 1).collect();
    (footprint.len_bytes() > 0).then(|| Footprint { axes, ..*footprint }.merged())
}

/// The number of runs of a footprint, saturating.
pub(super) fn run_count(footprint: &Footprint) -> u64 {
    footprint.axes.iter().fold(1, |runs, axis| runs.saturating_mul(axis.0))
}

/// The range from the first to the last byte of a normalised footprint.
pub(super) fn bounds(footprint: &Footprint) -> Range<u64> {
    let len_bytes = span_bytes(&footprint.axes, footprint.run_bytes);
    footprint.offset_bytes..footprint.offset_bytes + len_bytes
}

/// One shared run of two normalised footprints, if the search finds any.
pub(crate) fn first_overlap(one: &Footprint, other: &Footprint) -> Option<Range<u64>> {
    let (few, many) = if run_count(one) <= run_count(other) { (one, other) } else { (other, one) };
    let mut runs_left = RUNS_MAX;
    let found = find_run(few, &bounds(many), &mut |run| {
        runs_left -= 1;
        let shared = search(&many.axes, many.offset_bytes, many.run_bytes, &run);
        (shared.is_some() || runs_left == 0).then_some(shared)
    });
    found.flatten()
}

/// Calls `visit` with each run that overlaps `limits`, until it returns a value.
pub(super) fn find_run<T>(
    footprint: &Footprint,
    limits: &Range<u64>,
    visit: &mut impl FnMut(Range<u64>) -> Option<T>,
) -> Option<T> {
    find_run_below(&footprint.axes, footprint.offset_bytes, footprint.run_bytes, limits, visit)
}

fn find_run_below<T>(
    axes: Axes<'_>,
    offset_bytes: u64,
    run_bytes: u64,
    limits: &Range<u64>,
    visit: &mut impl FnMut(Range<u64>) -> Option<T>,
) -> Option<T> {
    intersection(&(offset_bytes..offset_bytes + span_bytes(axes, run_bytes)), limits)?;
    match axes {
        [] => visit(offset_bytes..offset_bytes + run_bytes),
        [(count, stride), inner @ ..] => (0..*count).find_map(|index| {
            find_run_below(inner, offset_bytes + index * stride, run_bytes, limits, visit)
        }),
    }
}

/// The first bytes of `query` that are in the footprint.
fn search(
    axes: Axes<'_>,
    offset_bytes: u64,
    run_bytes: u64,
    query: &Range<u64>,
) -> Option<Range<u64>> {
    let [(count, stride), inner @ ..] = axes else {
        return intersection(&(offset_bytes..offset_bytes + run_bytes), query);
    };
    // Index i covers offset + i * stride .. + inner span. Such a range overlaps the query if it
    // ends after the query's start and starts before the query's end.
    let inner_bytes = span_bytes(inner, run_bytes);
    let first = (query.start + 1).saturating_sub(offset_bytes + inner_bytes).div_ceil(*stride);
    let last = query.end.checked_sub(offset_bytes + 1)? / stride;
    (first..=last.min(count - 1))
        .find_map(|index| search(inner, offset_bytes + index * stride, run_bytes, query))
}

/// The number of bytes from the first to the last byte of a box.
fn span_bytes(axes: Axes<'_>, run_bytes: u64) -> u64 {
    axes.iter().fold(run_bytes, |span_bytes, (count, stride)| {
        span_bytes + count.saturating_sub(1) * stride
    })
}

fn intersection(one: &Range<u64>, other: &Range<u64>) -> Option<Range<u64>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (both.start < both.end).then_some(both)
}
