//! Copies to a GPU from pageable memory, which a thread of the host packs into staging memory.

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Tally, Text, Time, copies, finding, quoted};
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// Fewer copies are left alone: page-locking takes longer than a few of them.
const COUNT_MIN: u64 = 4;

/// Fewer bytes in all are left alone.
const BYTES_MIN: u64 = 16 << 20;

/// The array's name, and the call.
pub(super) type Key = (Symbol, Symbol);

pub(super) fn add(copy: &Copied<'_>, symbols: &mut Symbols, groups: &mut Groups<Key>) {
    if copy.is_pageable && copy.direction == "to_device" {
        let (all_bytes, time) = (copy.bytes, Time::of(copy.host_ns));
        let tally = Tally { times: 1, all_bytes, time, ..Tally::default() };
        groups.add((symbols.of(copy.name), symbols.of(copy.site)), &tally);
    }
}

/// From page-locked memory the copies would be queued at once.
pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let large =
        groups.iter().filter(|(_, tally)| tally.times >= COUNT_MIN && tally.all_bytes >= BYTES_MIN);
    let of = |((name, site), tally): (&Key, &Tally)| {
        let name = symbols.text(*name);
        let message = format!(
            "{} bytes of {} are copied from pageable memory, in {}, which the calling thread packs \
             into staging memory",
            grouped(tally.all_bytes),
            quoted(name),
            copies(tally.times)
        );
        let change = "Page-lock the memory once, by `page_lock()`, or make a `PinnedArray`: then \
                      such calls return at once.";
        let text = Text { kind: "pageable_copies", message, change };
        finding(name, text, vec![symbols.text(*site).to_owned()], tally)
    };
    large.map(of).collect()
}
