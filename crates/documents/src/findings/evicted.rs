//! Arrays that a full device gave up, and that were copied to it again.

use super::step::{Copied, Memory};
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Sites, Tally, Text, finding, subject, times};
use crate::document::DocumentFinding;

/// So many evictions of one array may have no upload yet.
const EVICTED_MAX: usize = 64;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    device: Symbol,
    sites: Sites,
}

/// The evictions of one array, and the first upload after each, if nothing but the eviction made it
/// necessary.
#[derive(Clone, Debug, Default)]
pub(super) struct Evictions {
    /// The device, and the call that needed the room.
    evicted: Vec<(Symbol, Symbol)>,
    again: Option<(Key, Tally)>,
}

impl Evictions {
    pub(super) fn add(&mut self, memory: &Memory<'_>, symbols: &mut Symbols) {
        if self.evicted.len() == EVICTED_MAX {
            self.evicted.remove(0);
        }
        self.evicted.push((symbols.of(memory.device), symbols.of(memory.site)));
    }

    /// Adds a copy. Returns whether an eviction made it necessary.
    pub(super) fn add_copy(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) -> bool {
        if copy.direction != "to_device" || self.evicted.is_empty() {
            return false;
        }
        let device = symbols.of(copy.device);
        let own = self.evicted.iter().position(|(evicted, _)| *evicted == device);
        let Some((_, site)) = own.map(|index| self.evicted.remove(index)) else { return false };
        let is_due = copy.stale_since.is_some_and(|since| symbols.of(since) == site);
        if is_due {
            let (name, site) = (symbols.of(copy.name), symbols.of(copy.site));
            let empty = || (Key { name, device, sites: Sites::default() }, Tally::default());
            let (key, tally) = self.again.get_or_insert_with(empty);
            key.sites.add(site);
            tally.add(&Tally::copy(copy.bytes, copy.duration_ns()));
            tally.arrays = 1;
        }
        is_due
    }

    pub(super) fn close(self, groups: &mut Groups<Key>) {
        if let Some((key, tally)) = self.again {
            groups.add(key, &tally);
        }
    }
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let of = |(key, tally): (&Key, &Tally)| {
        let name = symbols.text(key.name);
        let verb = if tally.arrays > 1 { "were" } else { "was" };
        let message = format!(
            "{} {verb} evicted from {}, whose memory was full, and copied there again, {}",
            subject(name, tally.arrays),
            symbols.text(key.device),
            times(tally.times)
        );
        let change = "Drop or release arrays that are not needed there any more, or work on parts \
                      that fit together.";
        let text = Text { kind: "evicted", message, change };
        finding(name, text, key.sites.texts(symbols), tally)
    };
    groups.iter().map(of).collect()
}
