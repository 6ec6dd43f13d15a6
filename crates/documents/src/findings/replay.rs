//! Replays the uses of one array with a change, to find out which of its copies it would save: that
//! an `InOut` argument of a kernel were only read.

use std::collections::VecDeque;

use super::step::{Accessed, Copied, Launched};
use super::symbols::{Place, Symbol, Symbols};
use super::tally::{Sites, Tally};

/// So many arguments of kernels are replayed for one array.
const CHANGES_MAX: usize = 32;

/// A parameter of a kernel: one of its array arguments, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Parameter {
    pub(super) kernel: Symbol,
    pub(super) index: usize,
}

/// The places where an array is valid.
#[derive(Clone, Debug, Default)]
struct Valid {
    /// Also at all places of which nothing is known yet.
    is_everywhere: bool,
    places: Vec<Place>,
}

/// The copies that a change would save.
#[derive(Clone, Debug)]
pub(super) struct Saved {
    pub(super) name: Symbol,
    pub(super) sites: Sites,
    pub(super) tally: Tally,
}

/// A copy that the model expects, and the changes that would save it, as bits.
#[derive(Clone, Copy, Debug)]
struct Expected {
    place: Place,
    saved_by: u64,
}

/// The replay with one assumption of where the array is valid at first. It holds if the model
/// expects the copies that were made, in their order.
#[derive(Clone, Debug, Default)]
struct Model {
    is_wrong: bool,
    valid: Valid,
    /// With each change.
    changed: Vec<Valid>,
    saved: Vec<Option<Saved>>,
    /// What was expected and not made yet, or made and not expected yet: one of them is empty.
    expected: VecDeque<Expected>,
    made: VecDeque<Made>,
}

/// A copy that was made.
#[derive(Clone, Copy, Debug)]
struct Made {
    place: Place,
    name: Symbol,
    site: Symbol,
    tally: Tally,
}

/// The replay of one array.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    /// Parts of the array were written or copied by themselves, a use is not known, or something
    /// else happened for which the model is too simple.
    is_unsure: bool,
    has_begun: bool,
    /// The bytes of all copies so far: those of the whole array.
    copy_bytes: Option<u64>,
    changes: Vec<Parameter>,
    /// The array is valid at first where the first step reads it, or everywhere.
    models: [Model; 2],
}

/// A use by a call.
struct Use {
    place: Place,
    reads: bool,
    writes: bool,
    /// Whether it is the whole array.
    is_whole: bool,
    /// The change with which it would not write.
    change: Option<usize>,
}

impl Valid {
    fn contains(&self, place: Place) -> bool {
        self.is_everywhere || self.places.contains(&place)
    }

    /// Returns whether the place was not among them.
    fn insert(&mut self, place: Place) -> bool {
        let is_new = !self.contains(place);
        if is_new {
            self.places.push(place);
        }
        is_new
    }

    fn become_only(&mut self, place: Place) {
        self.is_everywhere = false;
        self.places.clear();
        self.places.push(place);
    }

    /// Brings the contents to a place. Devices exchange contents through the host.
    fn bring(&mut self, place: Place, mut copy: impl FnMut(Place)) {
        if self.contains(place) {
            return;
        }
        if place.is_some() && self.insert(None) {
            copy(None);
        }
        copy(place);
        self.insert(place);
    }
}

impl Replay {
    pub(super) fn become_unsure(&mut self) {
        *self = Self { is_unsure: true, ..Self::default() };
    }

    pub(super) fn add_copy(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        let is_simple = matches!(copy.cause, "launch" | "host" | "gpu" | "prefetch")
            && copy.direction != "between_devices"
            && self.copy_bytes.is_none_or(|bytes| bytes == copy.bytes);
        if self.is_unsure || !is_simple {
            return self.become_unsure();
        }
        self.copy_bytes = Some(copy.bytes);
        let (from, place) = (symbols.place(copy.from()), symbols.place(copy.to()));
        self.begin(from);
        let (name, site) = (symbols.of(copy.name), symbols.of(copy.site));
        let made = Made { place, name, site, tally: Tally::copy(copy.bytes, copy.duration_ns()) };
        for model in &mut self.models {
            model.made.push_back(made);
            if copy.cause == "prefetch" {
                let (reads, writes, is_whole) = (true, false, true);
                model.apply(&Use { place, reads, writes, is_whole, change: None });
            }
            model.compare();
        }
    }

    pub(super) fn add_access(&mut self, access: &Accessed<'_>, symbols: &mut Symbols) {
        let place = symbols.place(access.device);
        let (reads, writes) = (access.access != "out", access.access != "in");
        let is_whole = access.is_whole;
        self.add_use(&Use { place, reads, writes, is_whole, change: None });
    }

    pub(super) fn add_launch(&mut self, launch: &Launched<'_>, array: u64, symbols: &mut Symbols) {
        if self.is_unsure {
            return;
        }
        let mut own = launch.arguments.iter().enumerate().filter(|(_, it)| it.array == array);
        let Some((index, argument)) = own.next() else { return };
        if own.next().is_some() {
            return self.become_unsure();
        }
        let place = symbols.place(Some(launch.device));
        self.begin(place);
        let change = if argument.access == "in_out" {
            self.change(Parameter { kernel: symbols.of(launch.kernel), index })
        } else {
            None
        };
        let (reads, writes) = (argument.access != "out", argument.access != "in");
        let is_whole = argument.is_whole;
        self.add_use(&Use { place, reads, writes, is_whole, change });
    }

    fn add_use(&mut self, used: &Use) {
        if self.is_unsure || used.writes && !used.is_whole {
            return self.become_unsure();
        }
        self.begin(used.place);
        for model in &mut self.models {
            model.apply(used);
            model.compare();
        }
    }

    /// Notes where the array is valid at first.
    fn begin(&mut self, place: Place) {
        if !self.has_begun {
            self.has_begun = true;
            let [one, all] = &mut self.models;
            one.valid.insert(place);
            all.valid.is_everywhere = true;
        }
    }

    /// The number of the change that a parameter were only read. Before it makes a difference the
    /// copies are those of the program as it is.
    fn change(&mut self, parameter: Parameter) -> Option<usize> {
        let known = self.changes.iter().position(|known| *known == parameter);
        if known.is_none() && self.changes.len() < CHANGES_MAX {
            self.changes.push(parameter);
            for model in &mut self.models {
                model.changed.push(model.valid.clone());
                model.saved.push(None);
            }
            return Some(self.changes.len() - 1);
        }
        known
    }

    /// The copies that each change would save, if that is sure.
    pub(super) fn saved(self) -> impl Iterator<Item = (Parameter, Saved)> {
        let is_right =
            |model: &Model| !model.is_wrong && model.expected.is_empty() && model.made.is_empty();
        let model = self.models.into_iter().find(is_right).unwrap_or_default();
        self.changes.into_iter().zip(model.saved).filter_map(|(of, saved)| Some((of, saved?)))
    }
}

impl Model {
    fn apply(&mut self, used: &Use) {
        if self.is_wrong {
            return;
        }
        let first = self.expected.len();
        let saved_by = (1 << self.changed.len()) - 1;
        if used.reads {
            let expected = &mut self.expected;
            self.valid.bring(used.place, |place| {
                expected.push_back(Expected { place, saved_by });
            });
        }
        for (index, valid) in self.changed.iter_mut().enumerate() {
            if used.reads {
                let expected = self.expected.range_mut(first..);
                let mut expected: Vec<&mut Expected> = expected.collect();
                valid.bring(used.place, |place| {
                    for copy in expected.iter_mut().filter(|copy| copy.place == place) {
                        copy.saved_by &= !(1 << index);
                    }
                });
            }
            if used.writes && used.change != Some(index) {
                valid.become_only(used.place);
            }
        }
        if used.writes {
            self.valid.become_only(used.place);
        }
    }

    /// Compares what was made with what was expected.
    fn compare(&mut self) {
        while !self.is_wrong
            && let (Some(expected), Some(made)) = (self.expected.front(), self.made.front())
        {
            if expected.place != made.place {
                *self = Self { is_wrong: true, ..Self::default() };
                return;
            }
            for (index, saved) in self.saved.iter_mut().enumerate() {
                if expected.saved_by & (1 << index) != 0 {
                    made.add_to(saved);
                }
            }
            self.expected.pop_front();
            self.made.pop_front();
        }
        if self.is_wrong || self.made.len() > MADE_MAX {
            *self = Self { is_wrong: true, ..Self::default() };
        }
    }
}

/// So many copies may be made before the use that needs them.
const MADE_MAX: usize = 64;

impl Made {
    fn add_to(&self, saved: &mut Option<Saved>) {
        let Self { name, site, tally, .. } = *self;
        let empty = || Saved { name, sites: Sites::default(), tally: Tally::default() };
        let saved = saved.get_or_insert_with(empty);
        saved.sites.add(site);
        saved.tally.add(&tally);
    }
}
