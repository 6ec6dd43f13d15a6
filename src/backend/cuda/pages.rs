//! Which memory of the host this library has registered with the driver, and which arrays need
//! that. Pure: the driver is somebody's who implements [`Driver`].
//!
//! Arrays share no byte, but neighbours share the page on which one ends and the next begins. A
//! driver that registers whole pages refuses the second of them. That one then joins its
//! neighbour's registration on the page that they share, and registers what lies between such
//! pages. So a registration goes with its last user, and memory under it stays allocated until
//! then, also where its own array has gone: what nobody owns any more the system could give to
//! others, and the device would go on with the old pages.
//!
//! Each array first asks for its bytes as they are. Drivers of today take them beside those of a
//! neighbour (seen on 590.48): nothing is shared then, no copy is cut, and ordinary memory beside
//! an array stays ordinary to the driver.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

/// What registers memory. `K` is what a registration keeps.
pub(super) trait Driver<K> {
    type Refusal;
    /// Registers bytes; `false` if some of them, or of their pages, are registered already.
    fn register(&mut self, bytes: &Range<usize>) -> Result<bool, Self::Refusal>;
    /// Whether all of these bytes, which are contiguous and not empty, can be taken for registered
    /// by one call.
    fn knows(&mut self, bytes: &Range<usize>) -> bool;
    /// Lets go of what was registered from `start` on; `false` if that was refused.
    fn unregister(&mut self, start: usize, kept: &K) -> bool;
}

/// All registrations of this process, by the address at which each starts.
#[derive(Debug)]
pub(super) struct Registrations<K>(BTreeMap<usize, Registration<K>>);

/// Bytes that were registered in one call.
#[derive(Debug)]
struct Registration<K> {
    end: usize,
    /// Arrays that lie in its pages; 0 if the driver refused to let go of it.
    users: usize,
    /// What stays for as long as it does.
    kept: K,
}

/// What one array has of the registrations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Hold {
    /// Its own one, by its start; none if others have all of its pages.
    own: Option<usize>,
    /// Those that it is a user of.
    joined: SmallVec<[usize; 3]>,
    /// The addresses in it where one registration ends and another begins.
    pub(super) seams: SmallVec<[usize; 2]>,
}

/// How an array gets registered of which the driver would not take all.
#[derive(PartialEq, Eq, Debug)]
struct Plan {
    /// Registrations that have its first or its last page.
    neighbours: SmallVec<[usize; 2]>,
    /// What lies between those pages, still to be registered; empty where nothing does.
    missing: Range<usize>,
}

impl<K> Registrations<K> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Registers an array's bytes, which are not empty, or joins those who have their pages;
    /// nothing if others than arrays have some of them, and not all.
    pub(super) fn lock<D: Driver<K>>(
        &mut self,
        bytes: &Range<usize>,
        page_bytes: usize,
        driver: &mut D,
        kept: impl FnOnce() -> K,
    ) -> Result<Option<Hold>, D::Refusal> {
        if driver.register(bytes)? {
            self.enter(bytes, kept());
            return Ok(Some(Hold {
                own: Some(bytes.start),
                joined: SmallVec::from_slice(&[bytes.start]),
                seams: SmallVec::new(),
            }));
        }
        let Plan { neighbours, missing } = self.plan(bytes, page_bytes);
        if neighbours.is_empty() {
            return Ok(driver.knows(bytes).then(Hold::default));
        }
        let edges = [bytes.start..missing.start, missing.end..bytes.end];
        let is_known = edges.iter().filter(|edge| !edge.is_empty()).all(|edge| driver.knows(edge));
        if !is_known || !missing.is_empty() && !driver.register(&missing)? {
            return Ok(None);
        }
        neighbours.iter().for_each(|start| self.join(*start));
        let mut seams = SmallVec::from([missing.start, missing.end]);
        seams.retain(|seam| bytes.start < *seam && *seam < bytes.end);
        seams.dedup();
        let own = (!missing.is_empty()).then_some(missing.start);
        if own.is_some() {
            self.enter(&missing, kept());
        }
        Ok(Some(Hold { own, joined: neighbours.into_iter().chain(own).collect(), seams }))
    }

    /// Ends an array's use of all that it has joined, and lets go of registrations whose last user
    /// it was. Says what these kept.
    pub(super) fn unlock(&mut self, hold: &mut Hold, driver: &mut impl Driver<K>) -> Vec<K> {
        let mut given_back = Vec::new();
        for start in std::mem::take(&mut hold.joined) {
            if self.leave(start) {
                given_back.extend(self.defer_drop(start, driver));
            }
        }
        given_back
    }

    /// Lets go of what was refused before, where `is_worth` says that it may go better now. Says
    /// what that kept.
    pub(super) fn let_go_again(
        &mut self,
        driver: &mut impl Driver<K>,
        is_worth: impl Fn(&K) -> bool,
    ) -> Vec<K> {
        let unused = self
            .0
            .iter()
            .filter(|(_, registration)| registration.users == 0 && is_worth(&registration.kept));
        let starts: Vec<usize> = unused.map(|(start, _)| *start).collect();
        starts.into_iter().filter_map(|start| self.defer_drop(start, driver)).collect()
    }

    /// What an array's own registration keeps, for as long as there is one: then its memory has to
    /// stay, too.
    pub(super) fn kept(&mut self, hold: &Hold) -> Option<&mut K> {
        self.0.get_mut(&hold.own?).map(|registration| &mut registration.kept)
    }

    /// What others have of the first and the last page of `bytes`; those in between belong to it
    /// alone.
    fn plan(&self, bytes: &Range<usize>, page_bytes: usize) -> Plan {
        let page_of = |address: usize| address / page_bytes * page_bytes;
        let (first, last) = (page_of(bytes.start), page_of(bytes.end - 1));
        let has = |page: usize| self.around(page..page.saturating_add(page_bytes));
        let (before, behind) = (has(first), has(last));
        let start = if before.is_some() {
            first.saturating_add(page_bytes).min(bytes.end)
        } else {
            bytes.start
        };
        let end = if behind.is_some() { last.max(start) } else { bytes.end };
        let mut neighbours: SmallVec<[usize; 2]> = before.into_iter().chain(behind).collect();
        neighbours.dedup();
        Plan { neighbours, missing: start..end }
    }

    /// A registration that has some of these bytes.
    fn around(&self, bytes: Range<usize>) -> Option<usize> {
        let (start, found) = self.0.range(..bytes.end).next_back()?;
        (found.end > bytes.start).then_some(*start)
    }

    fn enter(&mut self, bytes: &Range<usize>, kept: K) {
        self.0.insert(bytes.start, Registration { end: bytes.end, users: 1, kept });
    }

    fn join(&mut self, start: usize) {
        self.0.entry(start).and_modify(|registration| registration.users += 1);
    }

    /// One user less; says whether that was the last.
    fn leave(&mut self, start: usize) -> bool {
        let Some(registration) = self.0.get_mut(&start) else { return false };
        registration.users = registration.users.saturating_sub(1);
        registration.users == 0
    }

    fn defer_drop(&mut self, start: usize, driver: &mut impl Driver<K>) -> Option<K> {
        let is_gone = driver.unregister(start, &self.0.get(&start)?.kept);
        if is_gone { self.0.remove(&start).map(|registration| registration.kept) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::convert::Infallible;
    use std::ops::Range;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Driver, Hold, Registrations};

    const PAGE_BYTES: usize = 4;

    fn pages(bytes: &Range<usize>) -> Range<usize> {
        bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES)
    }

    /// A driver that registers whole pages, or one that looks at bytes. It may refuse to let go.
    #[derive(Default)]
    struct Model {
        looks_at_bytes: bool,
        refuses: bool,
        registered: BTreeMap<usize, Range<usize>>,
    }

    impl Model {
        fn reach(&self, bytes: &Range<usize>) -> Range<usize> {
            if self.looks_at_bytes { bytes.clone() } else { pages(bytes) }
        }
    }

    impl Driver<Vec<usize>> for Model {
        type Refusal = Infallible;

        fn register(&mut self, bytes: &Range<usize>) -> Result<bool, Infallible> {
            assert!(!bytes.is_empty());
            let new = self.reach(bytes);
            let is_free = self
                .registered
                .values()
                .map(|old| self.reach(old))
                .all(|old| old.end <= new.start || new.end <= old.start);
            if is_free {
                self.registered.insert(bytes.start, bytes.clone());
            }
            Ok(is_free)
        }

        fn knows(&mut self, bytes: &Range<usize>) -> bool {
            let asked = self.reach(bytes);
            self.registered
                .values()
                .map(|old| self.reach(old))
                .any(|old| old.start <= asked.start && asked.end <= old.end)
        }

        fn unregister(&mut self, start: usize, _kept: &Vec<usize>) -> bool {
            !self.refuses && self.registered.remove(&start).is_some()
        }
    }

    /// Arrays side by side, each with what it has of the registrations while it is locked.
    struct World {
        driver: Model,
        table: Registrations<Vec<usize>>,
        arrays: Vec<Range<usize>>,
        holds: Vec<Option<Hold>>,
        /// Memory of arrays that are gone, but not given back.
        kept: BTreeSet<usize>,
    }

    impl World {
        /// Arrays of these lengths, with so many bytes in front of each.
        fn new(looks_at_bytes: bool, gaps_and_lengths: &[(usize, usize)]) -> Self {
            let mut end = PAGE_BYTES;
            let place = |(gap, len): &(usize, usize)| {
                let start = end + gap;
                end = start + len;
                start..end
            };
            let arrays: Vec<Range<usize>> = gaps_and_lengths.iter().map(place).collect();
            let holds = vec![None; arrays.len()];
            let driver = Model { looks_at_bytes, ..Model::default() };
            Self { driver, table: Registrations::new(), arrays, holds, kept: BTreeSet::new() }
        }

        fn give_back(&mut self, memories: Vec<Vec<usize>>) {
            for number in memories.into_iter().flatten() {
                assert!(self.kept.remove(&number), "given back twice");
            }
        }

        /// Locks an array, or drops one that is locked. Memory that was not given back is nobody's
        /// to make an array of.
        fn turn(&mut self, number: usize) {
            match self.holds[number].take() {
                Some(mut hold) => {
                    let given_back = self.table.unlock(&mut hold, &mut self.driver);
                    if let Some(kept) = self.table.kept(&hold) {
                        kept.push(number);
                        self.kept.insert(number);
                    }
                    self.give_back(given_back);
                }
                None if !self.kept.contains(&number) => {
                    let again = self.table.let_go_again(&mut self.driver, |_| true);
                    self.give_back(again);
                    let Ok(hold) = self.table.lock(
                        &self.arrays[number],
                        PAGE_BYTES,
                        &mut self.driver,
                        Vec::new,
                    );
                    assert!(hold.is_some(), "nobody else registers anything");
                    self.holds[number] = hold;
                }
                None => {}
            }
            self.check();
        }

        /// Page by page: how many locked arrays have a byte there, and who owns it.
        fn check(&self) {
            let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
            for (array, _) in self.arrays.iter().zip(&self.holds).filter(|(_, hold)| hold.is_some())
            {
                pages(array).for_each(|page| *counts.entry(page).or_default() += 1);
            }
            let kept: BTreeSet<usize> =
                self.kept.iter().flat_map(|number| pages(&self.arrays[*number])).collect();
            let registered: BTreeSet<usize> =
                self.driver.registered.values().flat_map(pages).collect();
            for page in counts.keys() {
                assert!(
                    registered.contains(page),
                    "page {page} of a locked array is not registered"
                );
            }
            for page in &registered {
                assert!(
                    counts.contains_key(page) || kept.contains(page),
                    "page {page} is registered and nobody's"
                );
            }
            let is_idle = counts.is_empty() && !self.driver.refuses;
            assert!(
                !is_idle || self.table.0.values().all(|registration| registration.users == 0),
                "users are left over"
            );
            self.check_seams();
        }

        /// Between two seams an array lies in one registration.
        fn check_seams(&self) {
            for (array, hold) in self.arrays.iter().zip(&self.holds) {
                let Some(hold) = hold else { continue };
                assert!(
                    !self.driver.looks_at_bytes || hold.seams.is_empty(),
                    "nothing is shared where bytes are looked at"
                );
                let ends: Vec<usize> = [array.start]
                    .into_iter()
                    .chain(hold.seams.iter().copied())
                    .chain([array.end])
                    .collect();
                for piece in ends.windows(2) {
                    assert!(piece[0] < piece[1], "{hold:?} of {array:?}");
                    let asked = self.driver.reach(&(piece[0]..piece[1]));
                    let holds =
                        |old: &Range<usize>| old.start <= asked.start && asked.end <= old.end;
                    assert!(
                        self.driver
                            .registered
                            .values()
                            .map(|old| self.driver.reach(old))
                            .any(|old| holds(&old)),
                        "{hold:?} of {array:?}"
                    );
                }
            }
        }

        fn end(mut self) {
            self.driver.refuses = false;
            for number in 0..self.arrays.len() {
                if self.holds[number].is_some() {
                    self.turn(number);
                }
            }
            let again = self.table.let_go_again(&mut self.driver, |_| true);
            self.give_back(again);
            assert!(
                self.driver.registered.is_empty()
                    && self.kept.is_empty()
                    && self.table.0.is_empty()
            );
        }
    }

    #[test]
    fn neighbours_in_every_order() {
        // Three arrays within a page, of one, and over several, in all ways in which they can lie;
        // locked and dropped in every order of five turns.
        for lengths in 0..4_usize.pow(3) {
            for first_gap in 0..PAGE_BYTES {
                let [one, two, three] =
                    [lengths % 4, lengths / 4 % 4, lengths / 16].map(|nth| [1, 4, 6, 9][nth]);
                for turns in 0..3_usize.pow(5) {
                    let mut world = World::new(false, &[(first_gap, one), (0, two), (0, three)]);
                    (0..5).for_each(|nth| world.turn(turns / 3_usize.pow(nth) % 3));
                    world.end();
                }
            }
        }
    }

    proptest! {
        #[test]
        fn arrays_anywhere(
            looks_at_bytes: bool,
            places in vec((0_usize..6, 1_usize..14), 1..8),
            turns in vec((0_usize..8, prop::bool::weighted(0.2)), 0..60),
        ) {
            let mut world = World::new(looks_at_bytes, &places);
            for (number, refuses) in turns {
                world.driver.refuses = refuses;
                world.turn(number % places.len());
            }
            world.end();
        }
    }

    #[test]
    fn memory_that_others_registered_is_theirs() {
        let (mut driver, mut table) = (Model::default(), Registrations::<Vec<usize>>::new());
        driver.registered.insert(8, 8..24);
        let mut lock = |bytes: Range<usize>| {
            let Ok(hold) = table.lock(&bytes, PAGE_BYTES, &mut driver, Vec::new);
            hold
        };
        assert_eq!(lock(9..22), Some(Hold::default()), "all of it");
        assert_eq!(lock(9..30), None, "a part of it");
    }
}
