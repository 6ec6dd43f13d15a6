//! Compares spans with sets of indices.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::Span;
use super::cells::{any_span, indices};

fn set(span: &Span) -> BTreeSet<u64> {
    indices(span).into_iter().collect()
}

fn difference(a: &Span, b: &Span) -> Vec<Span> {
    let mut pieces = Vec::new();
    match a.intersection(b) {
        Some(common) => a.without(&common, |piece| pieces.push(piece)),
        None => pieces.extend((!a.is_empty()).then_some(*a)),
    }
    pieces
}

/// The span, moved to the end of the axis and with its step multiplied.
fn stretched(span: &Span, factor: u64, offset: u64) -> Span {
    if span.is_empty() {
        return Span::EMPTY;
    }
    let last = span.start() + (span.len() - 1) * span.step();
    Span::new(offset + span.start() * factor, offset + last * factor + 1, span.step() * factor)
}

proptest! {
    #[test]
    fn new_keeps_the_indices_and_is_canonical(
        start in 0_u64..20,
        end in 0_u64..20,
        step in 0_u64..7,
    ) {
        let span = Span::new(start, end, step);
        let wanted: BTreeSet<u64> = (start..end).step_by(step.max(1) as usize).collect();
        prop_assert_eq!(set(&span), wanted.clone());
        prop_assert_eq!(span.len(), wanted.len() as u64);
        prop_assert_eq!(span.is_empty(), wanted.is_empty());
        prop_assert!((0..25).all(|index| span.contains(index) == wanted.contains(&index)));
        prop_assert_eq!(span.end(), wanted.last().map_or(0, |last| last + 1));
        prop_assert!(span.len() > 1 || span.step() == 1);
    }

    #[test]
    fn set_operations_agree_with_indices(a in any_span(30), b in any_span(30)) {
        let (cells_a, cells_b) = (set(&a), set(&b));
        let common: BTreeSet<u64> = &cells_a & &cells_b;
        let intersection = a.intersection(&b).map_or(BTreeSet::new(), |span| set(&span));
        prop_assert_eq!(intersection, common.clone());
        prop_assert_eq!(a.intersection(&b).is_some(), !common.is_empty());
        prop_assert_eq!(a.contains_span(&b), cells_b.is_subset(&cells_a));

        let pieces = difference(&a, &b);
        let listed: Vec<u64> = pieces.iter().flat_map(indices).collect();
        prop_assert_eq!(listed.len(), (&cells_a - &cells_b).len());
        prop_assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), &cells_a - &cells_b);
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        if let Some(common) = a.intersection(&b) {
            let stride = if common.len() == 1 { 1 } else { common.step() / a.step() };
            let ends = [cells_a.first() != cells_b.intersection(&cells_a).next(),
                cells_a.last() != cells_b.intersection(&cells_a).last()];
            let ends = ends.map(u64::from).iter().sum::<u64>();
            prop_assert!(pieces.len() as u64 <= ends + (stride - 1).min(common.len() - 1));
        }
        let range = |cells: &BTreeSet<u64>| {
            let ends = cells.first().zip(cells.last());
            ends.map_or(BTreeSet::new(), |(first, last)| (*first..=*last).collect())
        };
        prop_assert_eq!(a.overlaps(&b), !range(&cells_a).is_disjoint(&range(&cells_b)));

        let union: BTreeSet<u64> = &cells_a | &cells_b;
        if let Some(merged) = a.union_without_gap(&b) {
            prop_assert_eq!(set(&merged), union);
        } else {
            let list: Vec<u64> = union.into_iter().collect();
            let is_span = list.windows(2).all(|pair| pair[1] - pair[0] == list[1] - list[0]);
            prop_assert!(!is_span || a.len() == 1 && b.len() == 1, "{a:?} and {b:?} make a span");
        }
        prop_assert_eq!(a.union_without_gap(&b), b.union_without_gap(&a));
        if a.len() + b.len() > 2 {
            prop_assert_eq!(a.union(&b), a.union_without_gap(&b));
        }
    }

    #[test]
    fn set_operations_are_right_near_the_largest_index(
        a in any_span(30),
        b in any_span(30),
        factor in prop::sample::select(vec![1_u64, 3, 1 << 32, (1 << 59) - 1]),
    ) {
        let offset = u64::MAX - 31 * factor;
        let far = |span: &Span| stretched(span, factor, offset);
        prop_assert_eq!(far(&a).intersection(&far(&b)), a.intersection(&b).map(|span| far(&span)));
        let (far_a, far_b) = (far(&a), far(&b));
        let count: u64 = difference(&far_a, &far_b).iter().map(Span::len).sum();
        prop_assert_eq!(count, difference(&a, &b).iter().map(Span::len).sum::<u64>());
        for piece in difference(&far_a, &far_b) {
            prop_assert!(far_a.contains_span(&piece) && far_b.intersection(&piece).is_none());
        }
    }

    #[test]
    fn spans_of_any_64_bit_numbers_intersect(
        start_a: u64, end_a: u64, step_a: u64, start_b: u64, end_b: u64, step_b: u64,
    ) {
        let (a, b) = (Span::new(start_a, end_a, step_a), Span::new(start_b, end_b, step_b));
        if let Some(common) = a.intersection(&b) {
            prop_assert!(a.contains_span(&common) && b.contains_span(&common));
            prop_assert!(!common.is_empty());
        }
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        let _ = a.union_without_gap(&b);
    }
}

#[test]
fn a_difference_is_the_fewest_spans() {
    let even = Span::new(0, 1000, 2);
    assert_eq!(difference(&Span::full(1000), &even), [Span::new(1, 1000, 2)]);
    let pair = Span::new(100, 601, 500);
    assert_eq!(
        difference(&Span::full(1000), &pair),
        [Span::new(0, 100, 1), Span::new(601, 1000, 1), Span::new(101, 600, 1)]
    );
    assert_eq!(
        difference(&even, &Span::new(4, 9, 2)),
        [Span::new(0, 4, 2), Span::new(10, 1000, 2)]
    );
}

#[test]
fn spans_whose_common_step_exceeds_64_bits_meet_once() {
    let (a, b) = (Span::new(0, u64::MAX, (1 << 40) - 1), Span::new(0, u64::MAX, (1 << 40) + 1));
    assert_eq!(a.intersection(&b), Some(Span::single(0)));
}

#[test]
fn phases_merge_and_distant_single_indices_do_not() {
    let (even, odd) = (Span::new(0, 10, 2), Span::new(1, 10, 2));
    assert_eq!(even.union_without_gap(&odd), Some(Span::full(10)));
    assert_eq!(Span::single(3).union_without_gap(&Span::single(4)), Some(Span::new(3, 5, 1)));
    assert_eq!(Span::single(3).union_without_gap(&Span::single(7)), None);
    assert_eq!(Span::single(3).union(&Span::single(7)), Some(Span::new(3, 8, 4)));
    assert_eq!(Span::single(6).union_without_gap(&Span::new(0, 5, 2)), Some(Span::new(0, 7, 2)));
}
