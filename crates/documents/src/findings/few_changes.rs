//! Whole arrays that are copied back to a device although the host changed nothing, or little.

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Sites, Tally, Text, Time, copies, finding, quoted, times};
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// An array of which a larger part than one of so many has changed is left alone.
const PARTS_MIN: u64 = 8;

/// Smaller copies are left alone: what they cost is the call.
const BYTES_MIN: u64 = 4096;

/// Which finding a copy belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    changes: Changes,
    /// The call that wrote the array, and the one that copies it.
    sites: Sites,
}

/// What the host has changed of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Changes {
    None,
    Few,
}

/// Without changes the copy is not needed; else only the changed elements are.
pub(super) fn add(copy: &Copied<'_>, symbols: &mut Symbols, groups: &mut Groups<Key>) {
    let (Some(changed_bytes), Some(writer)) = (copy.changed_bytes, copy.stale_since) else {
        return;
    };
    let is_few = copy.bytes >= BYTES_MIN && changed_bytes <= copy.bytes / PARTS_MIN;
    let changes = match changed_bytes {
        0 => Changes::None,
        _ if is_few => Changes::Few,
        _ => return,
    };
    let saved = copy.bytes.saturating_sub(changed_bytes);
    // The time of a copy grows with its bytes, but for its latency.
    let part_ns = copy.duration_ns().map(|all_ns| {
        (u128::from(all_ns) * u128::from(saved) / u128::from(copy.bytes.max(1))) as u64
    });
    let tally = Tally {
        arrays: 0,
        times: 1,
        count: u64::from(changes == Changes::None),
        bytes: saved,
        all_bytes: copy.bytes,
        time: Time::of(part_ns),
    };
    let sites = Sites::of(&[symbols.of(writer), symbols.of(copy.site)]);
    groups.add(Key { name: symbols.of(copy.name), changes, sites }, &tally);
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let of = |(key, tally): (&Key, &Tally)| {
        let name = symbols.text(key.name);
        let text = match key.changes {
            Changes::None => Text {
                kind: "round_trip",
                message: format!(
                    "{} is taken to be written on the host and copied back as it was, {}",
                    quoted(name),
                    times(tally.times)
                ),
                change: "Take it by `host()`, or write it only if something changes.",
            },
            Changes::Few => Text {
                kind: "few_changes",
                message: format!(
                    "all {} bytes of {} are copied in {}, of which the host has changed {}",
                    grouped(tally.all_bytes),
                    quoted(name),
                    copies(tally.times),
                    grouped(tally.all_bytes - tally.bytes)
                ),
                change: "Take only the part that changes: `slice_mut(..)` and then `host_mut()`, \
                         or `set`.",
            },
        };
        finding(name, text, key.sites.texts(symbols), tally)
    };
    groups.iter().map(of).collect()
}
