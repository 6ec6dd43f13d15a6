//! Records which call made the elements of one copy stale.
//!
//! An element's record is written when the element becomes stale at the location, and has no
//! meaning while the element is valid. Most arrays are used as a whole, and then one call site is
//! stored for all elements. If parts become stale by different calls, a map is stored instead. A
//! map with too many boxes forgets its records and then returns [`StaleOrigin::Unreported`].

use crate::call_site::CallSite;
use crate::coherence::{Region, RegionMap};

/// A map with more boxes than this forgets its records.
const BOXES_MAX: usize = 1024;

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

/// The records of one location.
#[derive(Debug)]
pub(super) struct StaleRecord<S = CallSite> {
    /// The call that made all elements stale, unless there is a map.
    whole: Option<S>,
    map: Option<Box<StaleMap<S>>>,
}

#[derive(Debug)]
struct StaleMap<S> {
    origins: RegionMap<StaleOrigin<S>>,
    turn: u64,
    last: Option<S>,
}

impl<S> Default for StaleRecord<S> {
    fn default() -> Self {
        Self { whole: None, map: None }
    }
}

impl<S: Copy + PartialEq> StaleRecord<S> {
    /// Records that all elements have become stale.
    #[inline]
    pub(super) fn record_all(&mut self, site: S) {
        match &mut self.map {
            None => self.whole = Some(site),
            Some(map) => map.record(&Region::whole(map.origins.shape()), site),
        }
    }

    /// Records that the elements of a region have become stale, in an array of `shape`.
    pub(super) fn record(&mut self, shape: &[u64], region: &Region, site: S) {
        let whole = self.whole;
        let new_map = || Box::new(StaleMap::new(shape, whole));
        self.map.get_or_insert_with(new_map).record(region, site);
    }

    /// The last of the calls that made any element of the region stale.
    pub(super) fn latest(&self, region: &Region) -> StaleOrigin<S> {
        match &self.map {
            None => StaleOrigin::of_whole(self.whole),
            Some(map) => map.latest(region),
        }
    }
}

impl<S: Copy + PartialEq> StaleMap<S> {
    fn new(shape: &[u64], whole: Option<S>) -> Self {
        Self { origins: RegionMap::new(shape, StaleOrigin::of_whole(whole)), turn: 0, last: whole }
    }

    /// Consecutive records of one call have the same `turn`, so that a loop over neighbouring parts
    /// makes one box.
    fn record(&mut self, region: &Region, site: S) {
        if self.last.replace(site) != Some(site) {
            self.turn += 1;
        }
        let origin = StaleOrigin::Call { turn: self.turn, site };
        self.origins.update(region, |_| origin);
        if self.origins.value_count() > BOXES_MAX {
            self.origins.set_all(StaleOrigin::Unreported);
        }
    }

    fn latest(&self, region: &Region) -> StaleOrigin<S> {
        let mut latest = StaleOrigin::Never;
        let _ = self.origins.any_value(region, |origin| {
            latest = latest.or_later(*origin);
            false
        });
        latest
    }
}

impl<S> StaleOrigin<S> {
    fn of_whole(whole: Option<S>) -> Self {
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{BOXES_MAX, StaleMap, StaleOrigin};
    use crate::coherence::{Region, Span};

    const ROWS: u64 = 6;
    const COLUMNS: u64 = 5;

    /// For each element, the number of its last record (from 1) and the call site.
    #[derive(Clone)]
    struct Model([Option<(usize, u8)>; (ROWS * COLUMNS) as usize]);

    fn region(rows: (u64, u64), columns: (u64, u64), step: u64) -> Region {
        Region::new(&[Span::new(rows.0, rows.1, 1), Span::new(columns.0, columns.1, step)])
    }

    fn within() -> impl Strategy<Value = Region> {
        let range = |len: u64| (0..len).prop_flat_map(move |start| (Just(start), start + 1..=len));
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
            let mut stale = StaleMap::new(&[ROWS, COLUMNS], None);
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
    fn a_loop_over_neighbouring_parts_is_one_box() {
        let mut stale = StaleMap::new(&[ROWS, COLUMNS], Some(7_u8));
        for row in 0..ROWS - 1 {
            stale.record(&region((row, row + 1), (0, COLUMNS), 1), 8);
            assert_eq!(stale.origins.value_count(), 2, "what was there, and the rows so far");
        }
        assert_eq!(site(stale.latest(&region((ROWS - 1, ROWS), (0, COLUMNS), 1))), Some(7));
        stale.record(&Region::whole(&[ROWS, COLUMNS]), 9);
        assert_eq!(
            (stale.origins.value_count(), site(stale.latest(&region((0, 1), (0, 1), 1)))),
            (1, Some(9))
        );
    }

    #[test]
    fn what_takes_too_many_boxes_is_forgotten_and_said_to_be() {
        let shape = [4 * BOXES_MAX as u64];
        let element = |index: u64| Region::new(&[Span::single(index)]);
        let mut stale = StaleMap::new(&shape, None);
        for index in 0..=BOXES_MAX as u64 {
            stale.record(&element(2 * index), 1_u8);
        }
        assert_eq!(stale.latest(&element(0)), StaleOrigin::Unreported);
        stale.record(&element(3), 2);
        assert!(
            matches!(stale.latest(&Region::whole(&shape)), StaleOrigin::Call { site: 2, .. }),
            "what is known came later"
        );
        assert_eq!(stale.latest(&element(4)), StaleOrigin::Unreported);
        stale.record(&Region::whole(&shape), 3);
        assert!(matches!(stale.latest(&element(4)), StaleOrigin::Call { site: 3, .. }));
    }
}
