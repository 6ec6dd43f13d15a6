//! Since when one location's copy is stale: for each element the last call that made it so. Reports
//! read it, and nothing else does.
//!
//! An element's entry is written when it ceases to be valid at the location, and means nothing
//! while it is valid. Most arrays are used as a whole, and one call for all elements is one pointer
//! in the state. Where parts are used the map here takes its place, and is kept once made. What it
//! would take too many boxes for is forgotten, and said to be: [`StaleOrigin::Unreported`].

use crate::coherence::{Region, RegionMap};

/// A map with more boxes than this forgets what it knows.
const PIECES_MAX: usize = 1024;

/// What made bytes stale that were copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StaleOrigin<S> {
    /// They had never been there.
    Never,
    /// Nobody asked, or too many calls to remember made parts of it stale.
    Unreported,
    /// This call did; `turn` orders calls on one location.
    Call { turn: u64, site: S },
}

/// Calls that made parts stale. A call that comes several times in a row is one turn, so that a
/// loop over neighbouring parts is one box.
#[derive(Debug)]
pub(super) struct Parts<S> {
    sites: RegionMap<StaleOrigin<S>>,
    turn: u64,
    last: Option<S>,
}

impl<S: Copy + PartialEq> Parts<S> {
    /// Of a copy that one call made stale as a whole, or none.
    pub(super) fn new(shape: &[u64], whole: Option<S>) -> Self {
        Self { sites: RegionMap::new(shape, StaleOrigin::of_whole(whole)), turn: 0, last: whole }
    }

    fn next(&mut self, site: S) -> StaleOrigin<S> {
        if self.last.replace(site) != Some(site) {
            self.turn += 1;
        }
        StaleOrigin::Call { turn: self.turn, site }
    }

    /// A part of the copy has just become stale.
    pub(super) fn note(&mut self, region: &Region, site: S) {
        let next = self.next(site);
        self.sites.update(region, |_| next);
        if self.sites.value_count() > PIECES_MAX {
            self.sites.set_all(StaleOrigin::Unreported);
        }
    }

    /// The last of the calls that made any of these elements stale.
    pub(super) fn latest(&self, region: &Region) -> StaleOrigin<S> {
        let mut latest = StaleOrigin::Never;
        let _ = self.sites.any_value(region, |since| {
            latest = latest.or_later(*since);
            false
        });
        latest
    }
}

impl<S> StaleOrigin<S> {
    /// Of a copy that one call made stale as a whole, or none.
    pub(super) fn of_whole(whole: Option<S>) -> Self {
        whole.map_or(Self::Never, |site| Self::Call { turn: 0, site })
    }

    /// Of two parts of one copy the later call: what is forgotten came before all that is known.
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

    use super::{PIECES_MAX, Parts, StaleOrigin};
    use crate::coherence::{Region, Span};

    const ROWS: u64 = 6;
    const COLUMNS: u64 = 5;

    /// For each element the number of the last note, from 1, and its site.
    #[derive(Clone)]
    struct Model([Option<(usize, u8)>; (ROWS * COLUMNS) as usize]);

    fn region(rows: (u64, u64), columns: (u64, u64), step: u64) -> Region {
        Region::new(&[Span::new(rows.0, rows.1, 1), Span::new(columns.0, columns.1, step)])
    }

    fn within() -> impl Strategy<Value = Region> {
        let range = |len: u64| (0..len).prop_flat_map(move |start| (Just(start), start + 1..=len));
        prop_oneof![
            4 => (range(ROWS), range(COLUMNS), 1_u64..3).prop_map(|(rows, columns, step)| region(rows, columns, step)),
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
            notes in vec((within(), 0_u8..3), 1..40),
            asked in vec(within(), 8),
        ) {
            let (mut stale, mut model) = (Parts::new(&[ROWS, COLUMNS], None), Model([None; (ROWS * COLUMNS) as usize]));
            for (number, (region, site_number)) in notes.iter().enumerate() {
                stale.note(region, *site_number);
                indices(region).for_each(|index| model.0[index] = Some((number + 1, *site_number)));
                for asked in &asked {
                    prop_assert_eq!(site(stale.latest(asked)), model.latest(asked));
                }
            }
        }
    }

    #[test]
    fn a_loop_over_neighbouring_parts_is_one_box() {
        let mut stale = Parts::new(&[ROWS, COLUMNS], Some(7_u8));
        for row in 0..ROWS - 1 {
            stale.note(&region((row, row + 1), (0, COLUMNS), 1), 8);
            assert_eq!(stale.sites.value_count(), 2, "what was there, and the rows so far");
        }
        assert_eq!(site(stale.latest(&region((ROWS - 1, ROWS), (0, COLUMNS), 1))), Some(7));
        stale.note(&Region::whole(&[ROWS, COLUMNS]), 9);
        assert_eq!(
            (stale.sites.value_count(), site(stale.latest(&region((0, 1), (0, 1), 1)))),
            (1, Some(9))
        );
    }

    #[test]
    fn what_takes_too_many_boxes_is_forgotten_and_said_to_be() {
        let shape = [4 * PIECES_MAX as u64];
        let element = |index: u64| Region::new(&[Span::single(index)]);
        let mut stale = Parts::new(&shape, None);
        for index in 0..=PIECES_MAX as u64 {
            stale.note(&element(2 * index), 1_u8);
        }
        assert_eq!(stale.latest(&element(0)), StaleOrigin::Unreported);
        stale.note(&element(3), 2);
        assert!(
            matches!(stale.latest(&Region::whole(&shape)), StaleOrigin::Call { site: 2, .. }),
            "what is known came later"
        );
        assert_eq!(stale.latest(&element(4)), StaleOrigin::Unreported);
        stale.note(&Region::whole(&shape), 3);
        assert!(matches!(stale.latest(&element(4)), StaleOrigin::Call { site: 3, .. }));
    }
}
