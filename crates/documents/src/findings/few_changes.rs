//! Whole arrays that are copied back to a device although the host changed nothing, or little.

use std::collections::BTreeMap;

use super::history::{Copied, History, about, copied, each_once, total_ns};
use crate::document::Finding;

/// An array of which a larger part than one of so many has changed is left alone.
const PARTS_MIN: u64 = 8;

/// Smaller copies are left alone: what they cost is the call.
const BYTES_MIN: u64 = 4096;

/// The array's name, the call that wrote it, and whether it changed anything.
type Key<'d> = (&'d str, &'d str, bool);

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<Key<'_>, Vec<(Copied<'_>, u64)>> = BTreeMap::new();
    for copy in history.records().filter_map(copied) {
        let (Some(changed_bytes), Some(writer)) = (copy.changed_bytes, copy.stale_since) else {
            continue;
        };
        let is_few = copy.bytes >= BYTES_MIN && changed_bytes <= copy.bytes / PARTS_MIN;
        if changed_bytes == 0 || is_few {
            let key = (copy.name, writer, changed_bytes > 0);
            found.entry(key).or_default().push((copy, changed_bytes));
        }
    }
    found.iter().map(|(key, copies)| finding(*key, copies)).collect()
}

/// Without changes the copy is not needed; else only the changed elements are.
fn finding((name, writer, is_changed): Key<'_>, copies: &[(Copied<'_>, u64)]) -> Finding {
    let sites = each_once(std::iter::once(writer).chain(copies.iter().map(|(copy, _)| copy.site)));
    let changed: u64 = copies.iter().map(|(_, changed_bytes)| changed_bytes).sum();
    let bytes: u64 = copies.iter().map(|(copy, _)| copy.bytes).sum();
    let text = match is_changed {
        false => (
            "round_trip",
            format!(
                "\"{name}\" is taken to be written on the host and copied back as it was, {} times",
                copies.len()
            ),
            "Take it by `host()`, or write it only if something changes.",
        ),
        true => (
            "few_changes",
            format!(
                "all {bytes} bytes of \"{name}\" are copied in {} copies, of which the host has \
                 changed {changed}",
                copies.len()
            ),
            "Take only the part that changes: `slice_mut(..)` and then `host_mut()`, or `set`.",
        ),
    };
    // The time of a copy grows with its bytes, but for its latency.
    let part_ns = |(copy, changed_bytes): &(Copied<'_>, u64)| {
        let saved = u128::from(copy.bytes - changed_bytes);
        Some((u128::from(copy.duration_ns()?) * saved / u128::from(copy.bytes.max(1))) as u64)
    };
    Finding {
        count: if is_changed { 0 } else { copies.len() as u64 },
        bytes: bytes - changed,
        nanoseconds: total_ns(copies.iter().map(part_ns)),
        ..about(name, text, sites)
    }
}
