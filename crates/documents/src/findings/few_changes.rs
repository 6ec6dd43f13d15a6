//! Whole arrays that are copied back to a device although the host changed nothing, or little.

use std::collections::BTreeMap;

use super::history::{Copied, History, Text, about, copied, each_once, total_ns};
use crate::document::Finding;

/// An array of which a larger part than one of so many has changed is left alone.
const PARTS_MIN: u64 = 8;

/// Smaller copies are left alone: what they cost is the call.
const BYTES_MIN: u64 = 4096;

/// Which finding a copy belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key<'d> {
    array: &'d str,
    /// The call that wrote the array.
    writer: &'d str,
    changes: Changes,
}

/// What the host has changed of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Changes {
    None,
    Few,
}

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<Key<'_>, Vec<(Copied<'_>, u64)>> = BTreeMap::new();
    for copy in history.records().filter_map(copied) {
        let (Some(changed_bytes), Some(writer)) = (copy.changed_bytes, copy.stale_since) else {
            continue;
        };
        let is_few = copy.bytes >= BYTES_MIN && changed_bytes <= copy.bytes / PARTS_MIN;
        let changes = match changed_bytes {
            0 => Changes::None,
            _ if is_few => Changes::Few,
            _ => continue,
        };
        let key = Key { array: copy.name, writer, changes };
        found.entry(key).or_default().push((copy, changed_bytes));
    }
    found.iter().map(|(key, copies)| finding(*key, copies)).collect()
}

/// Without changes the copy is not needed; else only the changed elements are.
fn finding(key: Key<'_>, copies: &[(Copied<'_>, u64)]) -> Finding {
    let Key { array: name, writer, changes } = key;
    let sites = each_once(std::iter::once(writer).chain(copies.iter().map(|(copy, _)| copy.site)));
    let changed: u64 = copies.iter().map(|(_, changed_bytes)| changed_bytes).sum();
    let bytes: u64 = copies.iter().map(|(copy, _)| copy.bytes).sum();
    let text = match changes {
        Changes::None => Text {
            kind: "round_trip",
            message: format!(
                "\"{name}\" is taken to be written on the host and copied back as it was, {} times",
                copies.len()
            ),
            change: "Take it by `host()`, or write it only if something changes.",
        },
        Changes::Few => Text {
            kind: "few_changes",
            message: format!(
                "all {bytes} bytes of \"{name}\" are copied in {} copies, of which the host has \
                 changed {changed}",
                copies.len()
            ),
            change: "Take only the part that changes: `slice_mut(..)` and then `host_mut()`, or \
                     `set`.",
        },
    };
    // The time of a copy grows with its bytes, but for its latency.
    let part_ns = |(copy, changed_bytes): &(Copied<'_>, u64)| {
        let saved = u128::from(copy.bytes - changed_bytes);
        Some((u128::from(copy.duration_ns()?) * saved / u128::from(copy.bytes.max(1))) as u64)
    };
    Finding {
        count: if changes == Changes::None { copies.len() as u64 } else { 0 },
        bytes: bytes - changed,
        nanoseconds: total_ns(copies.iter().map(part_ns)),
        ..about(name, text, sites)
    }
}
