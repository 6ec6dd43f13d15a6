//! Spans over all 64 bits, where cells cannot be listed: set operations are checked at single
//! indices.

use arbitrary::Arbitrary;

use resident_core::coherence::Span;

/// A span as drawn at random; `narrow` makes its numbers small, so that two spans often overlap.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct WideSpan {
    start: u64,
    len: u64,
    step: u64,
    narrow: bool,
}

/// The numbers of which the core makes a span.
#[derive(Clone, Copy)]
struct Resolved {
    start: u64,
    end: u64,
    step: u64,
}

impl WideSpan {
    fn resolve(self) -> Resolved {
        let bound = if self.narrow { 1 << 12 } else { u64::MAX };
        let start = self.start % bound;
        let end = start.saturating_add(self.len % bound);
        Resolved { start, end, step: self.step % bound.min(1 << 40) }
    }
}

impl Resolved {
    fn span(self) -> Span {
        Span::new(self.start, self.end, self.step)
    }

    fn holds(self, index: u64) -> bool {
        let Self { start, end, step } = self;
        index >= start && index < end && (index - start).is_multiple_of(step.max(1))
    }
}

/// Checks that intersection, union and containment of two spans are right at each tested index.
pub(super) fn check(one: WideSpan, other: WideSpan) {
    let (first, second) = (one.resolve(), other.resolve());
    let (a, b) = (first.span(), second.span());
    let (common, union) = (a.intersection(&b), a.union(&b));
    let tried = [a, b, common.unwrap_or(a), union.unwrap_or(b)].into_iter().flat_map(indices);
    for index in tried {
        let (in_a, in_b) = (first.holds(index), second.holds(index));
        assert_eq!((a.contains(index), b.contains(index)), (in_a, in_b), "{index}");
        assert_eq!(
            common.is_some_and(|span| span.contains(index)),
            in_a && in_b,
            "{index} of {a:?} and {b:?}"
        );
        assert!(
            union.is_none_or(|span| span.contains(index) == (in_a || in_b)),
            "{index} of {a:?} or {b:?}"
        );
        assert!(!a.contains_span(&b) || in_a || !in_b);
    }
    assert_eq!(a.contains_span(&b), b.is_empty() || common == Some(b));
    assert_eq!(common, b.intersection(&a));
    assert!(
        common.is_none_or(|span| !span.is_empty()
            && a.contains_span(&span)
            && b.contains_span(&span))
    );
}

/// Indices in and around a span: its ends, and some in between.
fn indices(span: Span) -> impl Iterator<Item = u64> {
    let (start, step, len) = (span.start(), span.step(), span.len());
    let positions = [0, 1, 2, len / 3, len / 2, len.saturating_sub(2), len.saturating_sub(1), len];
    let near = move |position: u64| {
        let index = start.saturating_add(position.saturating_mul(step));
        [index.saturating_sub(1), index, index.saturating_add(1)]
    };
    positions.into_iter().flat_map(near)
}
