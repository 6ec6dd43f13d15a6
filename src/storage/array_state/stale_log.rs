//! Records which call made the elements of one copy stale.
//!
//! An element's record is written when the element becomes stale at the location, and has no
//! meaning while the element is valid. Most arrays are used as a whole, and then one call site is
//! stored for all elements. If parts become stale by different calls, a log of parts is stored
//! instead: adding to it costs little, since only reports read it. A log with too many different
//! parts forgets its records and then returns [`StaleOrigin::Unreported`].

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use resident_backend::call_site::CallSite;
use resident_core::coherence::Region;

/// The number of records at which older records of the same parts are removed.
const RECORDS_MAX: usize = 1024;

/// A log with more different parts than this forgets its records.
const PARTS_MAX: usize = 512;

/// The origin of stale bytes: which call made them stale.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StaleOrigin<S = CallSite> {
    /// No call: the bytes were never valid there.
    Never,
    /// Unknown: no capture or subscriber was active when the copy was made, or there were too many
    /// calls to record.
    Unreported,
    /// The call at `site`. Later calls have a higher `turn`.
    Call { turn: u64, site: S },
}

/// The records of parts, the oldest first.
#[derive(Debug)]
pub(super) struct StaleLog<S = CallSite> {
    /// The origin of elements that are in no part.
    base: StaleOrigin<S>,
    parts: Vec<StalePart<S>>,
    turn: u64,
    last: Option<S>,
}

#[derive(Debug)]
struct StalePart<S> {
    region: Region,
    turn: u64,
    site: S,
}

impl<S: Copy + PartialEq> StaleLog<S> {
    /// A log of no parts; `whole` made all elements stale.
    pub(super) fn new(whole: Option<S>) -> Self {
        Self { base: StaleOrigin::of_whole(whole), parts: Vec::new(), turn: 0, last: whole }
    }

    /// Records that all elements have become stale.
    pub(super) fn record_all(&mut self, site: S) {
        self.advance(site);
        self.base = StaleOrigin::Call { turn: self.turn, site };
        self.parts.clear();
    }

    /// Records that the elements of a region have become stale.
    ///
    /// Consecutive records of one call have the same `turn`, and a loop over neighbouring parts
    /// makes one record.
    pub(super) fn record(&mut self, region: &Region, site: S) {
        self.advance(site);
        let turn = self.turn;
        if let Some(last) = self.parts.last_mut().filter(|last| last.turn == turn)
            && let Some(union) = union(&last.region, region)
        {
            last.region = union;
            return;
        }
        if self.parts.len() >= RECORDS_MAX {
            self.shorten();
        }
        self.parts.push(StalePart { region: *region, turn, site });
    }

    /// Counts calls.
    fn advance(&mut self, site: S) {
        if self.last.replace(site) != Some(site) {
            self.turn += 1;
        }
    }

    /// Keeps only the last record of each part. Forgets all if there are many different parts.
    fn shorten(&mut self) {
        let (mut is_last, parts) = last_of_each(&self.parts);
        if parts > PARTS_MAX {
            self.base = StaleOrigin::Unreported;
            self.parts.clear();
            return;
        }
        self.parts.retain(|_| is_last.pop().unwrap_or(true));
    }

    /// The last of the calls that made any element of the region stale.
    pub(super) fn latest(&self, region: &Region) -> StaleOrigin<S> {
        let overlaps = |part: &&StalePart<S>| part.region.intersection(region).is_some();
        let last = self.parts.iter().rev().find(overlaps);
        last.map_or(self.base, |part| StaleOrigin::Call { turn: part.turn, site: part.site })
    }
}

/// For each record, the last one first: whether it is the last of its part. Also returns the number
/// of different parts.
fn last_of_each<S>(parts: &[StalePart<S>]) -> (Vec<bool>, usize) {
    let mut seen: HashTable<&Region> = HashTable::with_capacity(parts.len());
    let is_last = parts.iter().rev().map(|part| {
        let is_same = |known: &&Region| **known == part.region;
        match seen.entry(part.region.hash(), is_same, |known| known.hash()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(&part.region);
                true
            }
        }
    });
    let is_last = is_last.collect();
    (is_last, seen.len())
}

/// The union of two regions, if it is a box.
fn union(one: &Region, other: &Region) -> Option<Region> {
    if one == other { Some(*one) } else { one.merged(other) }
}

impl<S> StaleOrigin<S> {
    /// The origin of elements that this call made stale, if there was one.
    pub(super) fn of_whole(whole: Option<S>) -> Self {
        whole.map_or(Self::Never, |site| Self::Call { turn: 0, site })
    }

    /// The later of two origins at one location; `self` if they are equal. `Never` is before all
    /// others. `Unreported` is before every recorded call, because a map that is too large forgets
    /// all calls recorded so far.
    pub(crate) fn or_later(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    fn rank(&self) -> u64 {
        match self {
            Self::Never => 0,
            Self::Unreported => 1,
            Self::Call { turn, .. } => turn + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{RECORDS_MAX, StaleLog, StaleOrigin};
    use resident_core::coherence::{Region, Span};

    const ROWS: u64 = 6;
    const COLUMNS: u64 = 5;

    /// For each element, the number of its last record (from 1) and the call site.
    #[derive(Clone)]
    struct Model([Option<(usize, u8)>; (ROWS * COLUMNS) as usize]);

    fn region(rows: Range<u64>, columns: Range<u64>, step: u64) -> Region {
        Region::new(&[
            Span::new(rows.start, rows.end, 1),
            Span::new(columns.start, columns.end, step),
        ])
    }

    fn within() -> impl Strategy<Value = Region> {
        let range = |len: u64| {
            (0..len).prop_flat_map(move |start| (start + 1..=len).prop_map(move |end| start..end))
        };
        prop_oneof![
            4 => (range(ROWS), range(COLUMNS), 1_u64..3)
                .prop_map(|(rows, columns, step)| region(rows, columns, step)),
            1 => Just(Region::whole(&[ROWS, COLUMNS])),
        ]
    }

    fn indices(region: &Region) -> impl Iterator<Item = usize> + '_ {
        let points = (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| [row, column]));
        points
            .filter(|point| region.contains_point(point))
            .map(|[row, column]| (row * COLUMNS + column) as usize)
    }

    impl Model {
        fn latest(&self, region: &Region) -> Option<u8> {
            indices(region).filter_map(|index| self.0[index]).max().map(|(_, site)| site)
        }
    }

    fn site(since: StaleOrigin<u8>) -> Option<u8> {
        match since {
            StaleOrigin::Never => None,
            StaleOrigin::Call { site, .. } => Some(site),
            StaleOrigin::Unreported => panic!("there are few boxes"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn each_part_knows_the_last_call_that_made_any_of_it_stale(
            records in vec((within(), 0_u8..3), 1..40),
            asked in vec(within(), 8),
        ) {
            let mut stale = StaleLog::new(None);
            let mut model = Model([None; (ROWS * COLUMNS) as usize]);
            for (number, (region, site_number)) in records.iter().enumerate() {
                stale.record(region, *site_number);
                indices(region).for_each(|index| model.0[index] = Some((number + 1, *site_number)));
                for asked in &asked {
                    prop_assert_eq!(site(stale.latest(asked)), model.latest(asked));
                }
            }
        }
    }

    #[test]
    fn a_loop_over_neighbouring_parts_is_one_record() {
        let mut stale = StaleLog::new(Some(7_u8));
        for row in 0..ROWS - 1 {
            stale.record(&region(row..row + 1, 0..COLUMNS, 1), 8);
            stale.record(&region(row..row + 1, 0..COLUMNS, 1), 8);
            assert_eq!(stale.parts.len(), 1, "the rows so far");
        }
        assert_eq!(site(stale.latest(&region(ROWS - 1..ROWS, 0..COLUMNS, 1))), Some(7));
        stale.record_all(9);
        assert_eq!(stale.parts.len(), 0);
        assert_eq!(site(stale.latest(&region(0..1, 0..1, 1))), Some(9));
    }

    #[test]
    fn repeated_records_of_the_same_parts_are_never_forgotten() {
        let mut stale = StaleLog::new(None);
        for turn in 0..20 * RECORDS_MAX {
            let row = turn as u64 * 7 % 300;
            stale.record(&Region::new(&[Span::new(10 * row, 10 * row + 9, 1)]), turn % 3);
            assert!(stale.parts.len() <= RECORDS_MAX);
        }
        for row in 0..300 {
            let origin = stale.latest(&Region::new(&[Span::single(10 * row)]));
            assert!(matches!(origin, StaleOrigin::Call { .. }), "row {row}: {origin:?}");
        }
    }

    #[test]
    fn too_many_different_parts_are_forgotten_and_said_to_be() {
        let shape = [u64::MAX >> 1];
        let element = |index: u64| Region::new(&[Span::single(index * index)]);
        let mut stale = StaleLog::new(None);
        for index in 0..2 * RECORDS_MAX as u64 + 2 {
            stale.record(&element(index), 1_u8);
        }
        assert_eq!(stale.latest(&element(0)), StaleOrigin::Unreported);
        stale.record(&element(3), 2);
        assert!(
            matches!(stale.latest(&Region::whole(&shape)), StaleOrigin::Call { site: 2, .. }),
            "what is known came later"
        );
        assert_eq!(stale.latest(&element(4)), StaleOrigin::Unreported);
        stale.record_all(3);
        assert!(matches!(stale.latest(&element(4)), StaleOrigin::Call { site: 3, .. }));
    }
}
