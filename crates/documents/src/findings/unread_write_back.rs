//! Contents that were copied elsewhere because their memory was freed, and that nothing read again:
//! they are overwritten, or dropped with the array. `discard` spares that copy.

use super::step::Copied;
use super::symbols::{Place, Symbol, Symbols};
use super::tally::{Groups, Sites, Tally, Text, finding, repeated, subject};
use super::used::Used;
use crate::document::DocumentFinding;

/// So many write-backs of one array are looked at that nothing has read yet.
const UNREAD_MAX: usize = 64;

/// Which finding a write-back belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    device: Symbol,
    /// Where it goes: to the device if the host's memory is freed, else to the host.
    place: Place,
    /// The last use before, or else the call that wrote the contents; and the call that needed the
    /// room.
    sites: Sites,
    end: End,
}

/// What becomes of contents that nothing reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Overwritten,
    /// The array itself is dropped.
    Dropped,
}

/// The write-backs of one array that nothing has read yet.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBacks {
    last_use: Option<Symbol>,
    unread: Vec<(Key, Tally)>,
}

impl WriteBacks {
    pub(super) fn add_copy(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        if copy.cause != "evict" {
            // It may read what was written back.
            self.unread.clear();
            return;
        }
        if self.unread.len() == UNREAD_MAX {
            self.unread.remove(0);
        }
        let writer = copy.stale_since.map(|since| symbols.of(since));
        let mut sites = Sites::default();
        let before = self.last_use.or(writer);
        before.into_iter().for_each(|site| sites.add(site));
        sites.add(symbols.of(copy.site));
        let (name, device) = (symbols.of(copy.name), symbols.of(copy.device));
        let place = symbols.place(copy.to());
        let key = Key { name, device, place, sites, end: End::Overwritten };
        self.unread.push((key, Tally::copy(copy.bytes, copy.duration_ns())));
    }

    /// Takes the write-backs whose contents a use overwrites, if nothing has read them.
    pub(super) fn add_use(&mut self, used: &Used, groups: &mut Groups<Key>) {
        self.last_use = Some(used.site);
        if used.reads {
            self.unread.clear();
        } else if used.writes_all {
            self.take(End::Overwritten, groups);
        }
    }

    /// The array is dropped.
    pub(super) fn end(&mut self, groups: &mut Groups<Key>) {
        self.take(End::Dropped, groups);
    }

    fn take(&mut self, end: End, groups: &mut Groups<Key>) {
        for (index, (key, tally)) in self.unread.drain(..).enumerate() {
            let arrays = u64::from(end == End::Dropped && index == 0);
            groups.add(Key { end, ..key }, &Tally { arrays, ..tally });
        }
    }

    /// Something has used the array of which the records do not know.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    groups.iter().map(|(key, tally)| finding_of(key, tally, symbols)).collect()
}

fn finding_of(key: &Key, tally: &Tally, symbols: &Symbols) -> DocumentFinding {
    let name = symbols.text(key.name);
    let device = symbols.text(key.device);
    let (to, from) = if key.place.is_some() { (device, "the host") } else { ("the host", device) };
    let (are, they) = if tally.arrays > 1 { ("are", "them") } else { ("is", "it") };
    let then = match key.end {
        End::Overwritten => "overwritten",
        End::Dropped => "dropped",
    };
    let message = format!(
        "{} {are} copied to {to} when the memory on {from} is freed, and {then} before anything \
         reads {they}{}",
        subject(name, tally.arrays),
        repeated(tally.times)
    );
    let change = "Call `discard()` on it after its last use: then its memory is freed without a \
                  copy.";
    let text = Text { kind: "unread_write_back", message, change };
    finding(name, text, key.sites.texts(symbols), tally)
}
