//! Overlap and sets of written bytes, compared with sets of single bytes.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::fixtures::Random;
use crate::race_check::overlap;
use crate::race_check::written::ByteSet;
use resident_backend::Footprint;

const CASES: u64 = if cfg!(miri) { 50 } else { 20_000 };

/// A random footprint of up to about 300 bytes. Repetitions may interleave.
fn random_footprint(random: &mut Random) -> Footprint {
    let run_bytes = random.below(5);
    let mut axes: SmallVec<[(u64, u64); 3]> = SmallVec::new();
    let mut span = run_bytes.max(1);
    for _ in 0..random.below(4) {
        let count = random.below(4);
        let stride = span + random.below(4);
        axes.insert(0, (count, stride));
        span += count.saturating_sub(1) * stride;
    }
    if axes.len() > 1 && random.below(2) == 0 {
        axes.swap(0, 1);
    }
    Footprint { offset_bytes: random.below(40), run_bytes, axes }
}

fn bytes_of(footprint: &Footprint) -> BTreeSet<u64> {
    let total: u64 = footprint.axes.iter().map(|axis| axis.0).product();
    let mut bytes = BTreeSet::new();
    for mut number in 0..total {
        let mut start = footprint.offset_bytes;
        for (count, stride) in footprint.axes.iter().rev() {
            start += number % count * stride;
            number /= count;
        }
        bytes.extend(start..start + footprint.run_bytes);
    }
    bytes
}

#[test]
fn ends_and_lengths_match_sets_of_bytes() {
    let random = &mut Random::new(1);
    for _ in 0..CASES {
        let footprint = random_footprint(random);
        let bytes = bytes_of(&footprint);
        assert_eq!(
            footprint.end_bytes(),
            Some(bytes.last().map_or(0, |last| last + 1)),
            "{footprint:?}"
        );
        let mut walked = BTreeSet::new();
        footprint.for_each_run(&mut |start, len| walked.extend(start..start + len));
        assert_eq!(walked, bytes, "{footprint:?}");
    }
}

#[test]
fn an_end_beyond_64_bits_is_none() {
    let axes = |axis| SmallVec::from_slice(&[axis]);
    assert_eq!(
        Footprint { offset_bytes: u64::MAX, run_bytes: 1, axes: SmallVec::new() }.end_bytes(),
        None
    );
    assert_eq!(
        Footprint { offset_bytes: 0, run_bytes: 1, axes: axes((3, u64::MAX / 2 + 1)) }.end_bytes(),
        None
    );
    assert_eq!(
        Footprint { offset_bytes: 0, run_bytes: 1, axes: axes((2, u64::MAX - 1)) }.end_bytes(),
        Some(u64::MAX)
    );
}

#[test]
fn overlap_matches_sets_of_bytes() {
    let random = &mut Random::new(2);
    let mut hits = 0;
    for _ in 0..CASES {
        let (one, other) = (random_footprint(random), random_footprint(random));
        let shared: BTreeSet<u64> =
            bytes_of(&one).intersection(&bytes_of(&other)).copied().collect();
        let found = match (overlap::normalised(&one), overlap::normalised(&other)) {
            (Some(one), Some(other)) => overlap::first_overlap(&one, &other),
            _ => None,
        };
        assert_eq!(found.is_some(), !shared.is_empty(), "{one:?} {other:?}");
        assert!(
            found.into_iter().flatten().all(|byte| shared.contains(&byte)),
            "{one:?} {other:?}"
        );
        hits += u64::from(!shared.is_empty());
    }
    assert!(hits > CASES / 20 && hits < CASES, "both outcomes occur: {hits} of {CASES}");
}

#[test]
fn the_overlap_of_large_boxes_is_found_without_walking_them() {
    let interior = |offset: u64| Footprint {
        offset_bytes: offset,
        run_bytes: 4,
        axes: SmallVec::from_slice(&[(1 << 20, 1 << 14), (1 << 10, 16)]),
    };
    assert_eq!(
        overlap::first_overlap(&interior(0), &interior(4)),
        None,
        "interleaved columns share nothing, and are too many to walk"
    );
    let one = Footprint { offset_bytes: (1 << 33) + 2, run_bytes: 1, axes: SmallVec::new() };
    assert_eq!(
        overlap::first_overlap(&interior(0), &one),
        Some(one.offset_bytes..one.offset_bytes + 1)
    );
    // The first byte lies in a gap, and the box has too many runs between it and the second.
    let two = Footprint {
        offset_bytes: 8,
        run_bytes: 1,
        axes: SmallVec::from_slice(&[(2, one.offset_bytes - 8)]),
    };
    for (first, second) in [(&interior(0), &two), (&two, &interior(0))] {
        let shared = overlap::first_overlap(first, second);
        assert_eq!(shared, Some(one.offset_bytes..one.offset_bytes + 1));
    }
}

#[test]
fn written_bytes_match_sets_of_bytes() {
    let random = &mut Random::new(3);
    for _ in 0..CASES / 20 {
        let (mut set, mut model) = (ByteSet::default(), BTreeSet::new());
        for _ in 0..20 {
            let footprint = random_footprint(random);
            let Some(normal) = overlap::normalised(&footprint) else { continue };
            let bytes = bytes_of(&footprint);
            let missing: BTreeSet<u64> = bytes.difference(&model).copied().collect();
            let found = set.first_missing(&normal);
            assert_eq!(found.is_some(), !missing.is_empty());
            assert!(found.into_iter().flatten().all(|byte| missing.contains(&byte)));
            let range = normal.offset_bytes..normal.end_bytes().expect("short");
            assert_eq!(
                set.contains(range.clone()),
                range.clone().all(|byte| model.contains(&byte))
            );
            assert_eq!(set.overlaps(&range), range.clone().any(|byte| model.contains(&byte)));
            if random.below(3) == 0 {
                set.remove(&normal);
                model = model.difference(&bytes).copied().collect();
            } else {
                set.insert(&normal);
                model.extend(bytes);
            }
        }
    }
}

#[test]
fn footprints_of_very_many_runs_are_approximated() {
    let many =
        Footprint { offset_bytes: 0, run_bytes: 1, axes: SmallVec::from_slice(&[(1 << 20, 2)]) };
    let mut set = ByteSet::default();
    assert_eq!(set.first_missing(&many), None, "too many runs to check");
    set.insert(&many);
    let gap = Footprint { offset_bytes: 1, run_bytes: 1, axes: SmallVec::new() };
    assert_eq!(set.first_missing(&gap), None, "gaps count as written");
}
