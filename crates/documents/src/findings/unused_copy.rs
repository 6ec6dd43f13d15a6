//! Copies ahead of use that nothing used: prefetches and uploads whose destination is overwritten,
//! made stale or dropped before anything there reads it, and snapshots that are dropped before
//! anybody takes them.

use super::step::{Copied, Memory};
use super::symbols::{Place, Symbol, Symbols};
use super::tally::{Groups, Sites, Tally, Text, finding, repeated, subject};
use super::used::Used;
use crate::document::DocumentFinding;

/// So many copies of one array are looked at that nothing has used yet.
const PENDING_MAX: usize = 64;

/// Which finding a copy belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    /// Where it goes: a device, or the host.
    place: Place,
    site: Symbol,
    way: Way,
}

/// How a copy is wasted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    Superseded,
    /// The array itself is dropped.
    Dropped,
    /// The snapshot is dropped.
    Discarded,
}

/// The copies of one array that nothing has used yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    ahead: Vec<Ahead>,
    snapshots: Vec<Ahead>,
}

#[derive(Clone, Copy, Debug)]
struct Ahead {
    name: Symbol,
    place: Place,
    site: Symbol,
    /// The device, of which the place may be the host.
    device: Symbol,
    bytes: u64,
    duration_ns: Option<u64>,
    /// Whether it is an upload that the program asked for, of which something overwritten is no
    /// waste: the next step of the program may have been to write it.
    is_explicit: bool,
}

impl Pending {
    pub(super) fn add(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        // What it reads is of use.
        let from = symbols.place(copy.from());
        self.ahead.retain(|known| known.place != from);
        let ahead = |symbols: &mut Symbols| Ahead {
            name: symbols.of(copy.name),
            place: symbols.place(copy.to()),
            site: symbols.of(copy.site),
            device: symbols.of(copy.device),
            bytes: copy.bytes,
            duration_ns: copy.duration_ns(),
            is_explicit: copy.cause == "explicit",
        };
        let list = match (copy.cause, copy.direction) {
            ("prefetch", _) | ("explicit", "to_device") => &mut self.ahead,
            ("explicit", "to_host") => &mut self.snapshots,
            _ => return,
        };
        if list.len() == PENDING_MAX {
            list.remove(0);
        }
        list.push(ahead(symbols));
    }

    /// Takes the copies that a use makes stale, if nothing has read them. After a write of a part
    /// it is not known which of them something may still read.
    pub(super) fn add_use(&mut self, used: &Used, groups: &mut Groups<Key>) {
        if used.reads {
            self.ahead.retain(|copy| copy.place != used.place);
        }
        if !used.writes {
            return;
        }
        for copy in self.ahead.drain(..) {
            if used.writes_all && !copy.is_explicit {
                groups.add(copy.key(Way::Superseded), &copy.tally());
            }
        }
    }

    /// Takes the oldest snapshot of those that may be this one.
    pub(super) fn add_discard(
        &mut self,
        memory: &Memory<'_>,
        symbols: &mut Symbols,
        groups: &mut Groups<Key>,
    ) {
        let (site, device) = (symbols.of(memory.site), symbols.of(memory.device));
        let is_this =
            |copy: &Ahead| (copy.site, copy.bytes, copy.device) == (site, memory.bytes, device);
        if let Some(index) = self.snapshots.iter().position(is_this) {
            let copy = self.snapshots.remove(index);
            groups.add(copy.key(Way::Discarded), &copy.tally());
        }
    }

    /// The array is dropped.
    pub(super) fn end(&mut self, groups: &mut Groups<Key>) {
        for (index, copy) in self.ahead.drain(..).enumerate() {
            let arrays = u64::from(index == 0);
            groups.add(copy.key(Way::Dropped), &Tally { arrays, ..copy.tally() });
        }
    }

    /// Something has used the array of which the records do not know.
    pub(super) fn forget(&mut self) {
        self.ahead.clear();
    }
}

impl Ahead {
    fn key(&self, way: Way) -> Key {
        let Self { name, place, site, .. } = *self;
        Key { name, place, site, way }
    }

    fn tally(&self) -> Tally {
        Tally::copy(self.bytes, self.duration_ns)
    }
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    groups.iter().map(|(key, tally)| finding_of(key, tally, symbols)).collect()
}

fn finding_of(key: &Key, tally: &Tally, symbols: &Symbols) -> DocumentFinding {
    let name = symbols.text(key.name);
    let kind = if key.place.is_some() { "overwritten_upload" } else { "unread_download" };
    let kind = match (key.way, key.place) {
        (Way::Dropped, Some(_)) => "unused_upload",
        _ => kind,
    };
    let place = key.place.map_or("the host", |device| symbols.text(device));
    let (message, change) = match key.way {
        Way::Superseded => (
            format!(
                "{} is copied to {place} ahead of use, and changes before anything reads it \
                 there{}",
                subject(name, 1),
                repeated(tally.times)
            ),
            match key.place {
                Some(_) => "Leave out the prefetch: what is written as a whole needs no contents.",
                None => "Leave out the `prefetch_host`, or read the array before it changes.",
            },
        ),
        Way::Dropped => (
            format!(
                "{} {} copied to {place} and dropped before anything reads {} there{}",
                subject(name, tally.arrays),
                if tally.arrays > 1 { "are" } else { "is" },
                if tally.arrays > 1 { "them" } else { "it" },
                repeated(tally.times)
            ),
            "Leave out the copy, or keep the array until something uses it there.",
        ),
        Way::Discarded => (
            format!(
                "a snapshot of {} is dropped before anybody takes it{}",
                subject(name, 1),
                repeated(tally.times)
            ),
            "Leave out the snapshot, or take it by `wait` or `await`.",
        ),
    };
    let sites = Sites::of(&[key.site]).texts(symbols);
    finding(name, Text { kind, message, change }, sites, tally)
}
