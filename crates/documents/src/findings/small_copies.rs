//! Many small copies of one array that could be one.

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Tally, Text, Time, copies, finding, quoted};
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// Fewer copies are left alone.
const COUNT_MIN: u64 = 32;

/// Larger copies are left alone: the link is busy for longer than the call takes.
const BYTES_MAX: u64 = 4096;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    site: Symbol,
    device: Symbol,
    is_to_host: bool,
}

/// A series of copies that one call makes, with no launch between that uses the array, no other
/// write on a device, and no use of which the records do not know. What the host does between them,
/// it can do before or after.
#[derive(Clone, Debug, Default)]
pub(super) struct Series(Option<Running>);

#[derive(Clone, Debug)]
struct Running {
    key: Key,
    tally: Tally,
    /// The longest copy would remain.
    longest_ns: u64,
}

impl Series {
    pub(super) fn add(&mut self, copy: &Copied<'_>, symbols: &mut Symbols, into: &mut Groups<Key>) {
        if copy.bytes > BYTES_MAX || copy.direction == "between_devices" {
            return self.end(into);
        }
        let key = Key {
            name: symbols.of(copy.name),
            site: symbols.of(copy.site),
            device: symbols.of(copy.device),
            is_to_host: copy.direction == "to_host",
        };
        if self.0.as_ref().is_some_and(|running| running.key != key) {
            self.end(into);
        }
        let running = self.0.get_or_insert(Running { key, tally: Tally::default(), longest_ns: 0 });
        running.tally.add(&Tally::copy(copy.bytes, copy.duration_ns()));
        running.longest_ns = running.longest_ns.max(copy.duration_ns().unwrap_or(0));
    }

    pub(super) fn end(&mut self, groups: &mut Groups<Key>) {
        let Some(Running { key, tally, longest_ns }) = self.0.take() else { return };
        if tally.times >= COUNT_MIN {
            let saved_ns = tally.time.get().map(|all_ns| all_ns.saturating_sub(longest_ns));
            let time = Time::of(saved_ns);
            groups.add(key, &Tally { arrays: 1, count: tally.count - 1, bytes: 0, time, ..tally });
        }
    }
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let of = |(key, tally): (&Key, &Tally)| {
        let name = symbols.text(key.name);
        let series = match tally.arrays {
            0 | 1 => String::new(),
            arrays => format!(", in {} series", grouped(arrays)),
        };
        let message = format!(
            "{} of {}, {} bytes together, are made one by one{series}",
            copies(tally.times),
            quoted(name),
            grouped(tally.all_bytes)
        );
        let change = if key.is_to_host {
            "Read all of them at once: `host()` of a slice, or of the array."
        } else {
            "Bring all of them at once: `prefetch` the array or a slice before."
        };
        let text = Text { kind: "small_copies", message, change };
        finding(name, text, vec![symbols.text(key.site).to_owned()], tally)
    };
    groups.iter().map(of).collect()
}
