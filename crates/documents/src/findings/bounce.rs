//! Arrays that go up and down again and again: a loop in which the host changes what a device
//! computes with. Whether the work of the host could be done on the device, nobody can see from
//! outside: the finding says what would be saved if so.

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Sites, Tally, Text, finding, subject, times};
use crate::document::DocumentFinding;

/// So many times down and up again are a loop.
const ROUNDS_MIN: u64 = 3;

/// What the findings about one cause have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    sites: Sites,
    device: Symbol,
}

/// The rounds of one array so far: downloads that one call needed which also made the device's copy
/// stale, each with the upload behind it. What the program copies by itself, or in parts, may be
/// needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounces {
    down: Option<Down>,
    rounds: Option<Rounds>,
}

/// The last download.
#[derive(Clone, Copy, Debug)]
struct Down {
    site: Symbol,
    bytes: u64,
    duration_ns: Option<u64>,
}

#[derive(Clone, Debug)]
struct Rounds {
    key: Key,
    tally: Tally,
}

impl Bounces {
    pub(super) fn add(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        let down = self.down.take();
        if !matches!(copy.cause, "launch" | "host" | "gpu") {
            return;
        }
        match (copy.direction, down) {
            ("to_host", _) => {
                let site = symbols.of(copy.site);
                self.down = Some(Down { site, bytes: copy.bytes, duration_ns: copy.duration_ns() });
            }
            ("to_device", Some(down)) => {
                let is_due_to =
                    copy.stale_since.is_some_and(|since| symbols.of(since) == down.site);
                if is_due_to && copy.bytes == down.bytes {
                    self.add_round(down, copy, symbols);
                }
            }
            _ => {}
        }
    }

    fn add_round(&mut self, down: Down, copy: &Copied<'_>, symbols: &mut Symbols) {
        let (name, device) = (symbols.of(copy.name), symbols.of(copy.device));
        let sites = Sites::of(&[down.site, symbols.of(copy.site)]);
        let mut tally = Tally::copy(down.bytes, down.duration_ns);
        tally.add(&Tally::copy(copy.bytes, copy.duration_ns()));
        tally.times = 1;
        match &mut self.rounds {
            Some(rounds) => {
                rounds.key.sites.add_all(&sites);
                rounds.tally.add(&tally);
            }
            None => {
                let key = Key { name, sites, device };
                self.rounds = Some(Rounds { key, tally: Tally { arrays: 1, ..tally } });
            }
        }
    }

    pub(super) fn close(self, groups: &mut Groups<Key>) {
        if let Some(Rounds { key, tally }) = self.rounds
            && tally.times >= ROUNDS_MIN
        {
            groups.add(key, &tally);
        }
    }
}

/// If the work of the host were done on the device, the first upload and the last download would
/// remain.
pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let of = |(key, tally): (&Key, &Tally)| {
        let name = symbols.text(key.name);
        let (verb, again) =
            if tally.arrays > 1 { ("go", "again, together") } else { ("goes", "again,") };
        let message = format!(
            "{} {verb} down from {} and, changed by the host, up {again} {}",
            subject(name, tally.arrays),
            symbols.text(key.device),
            times(tally.times)
        );
        let change = "If the host's work between the launches can be done on the device, let a \
                      kernel do it, or keep what the host changes in an array of its own.";
        let text = Text { kind: "bounce", message, change };
        finding(name, text, key.sites.texts(symbols), tally)
    };
    groups.iter().map(of).collect()
}
