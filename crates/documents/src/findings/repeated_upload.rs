//! Equal contents that are uploaded again and again: weights or tables that each round makes anew.
//! Only where contents were asked for.

use std::collections::{HashMap, hash_map::Entry};

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Tally, Text, finding, quoted, times};
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// Smaller copies are left alone: what they cost is the call.
const BYTES_MIN: u64 = 4096;

/// Fewer uploads beside the first are left alone.
const AGAIN_MIN: u64 = 2;

/// So many different contents are remembered.
const CONTENTS_MAX: usize = 1 << 14;

/// The array's name, the call, and the device.
pub(super) type Key = (Symbol, Symbol, Symbol);

/// Contents that were uploaded: their hash and their length, and the device.
#[derive(Clone, Debug, Default)]
pub(super) struct Uploads {
    seen: HashMap<(u64, u64, Symbol), u64>,
    again: Groups<Key>,
}

impl Uploads {
    /// Adds a copy that no eviction made necessary.
    pub(super) fn add(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        let Some(hash) = copy.contents_hash.filter(|_| copy.bytes >= BYTES_MIN) else { return };
        // What went down and up again as it was is another finding.
        if copy.direction != "to_device" || copy.changed_bytes == Some(0) {
            return;
        }
        let device = symbols.of(copy.device);
        let is_full = self.seen.len() >= CONTENTS_MAX;
        match self.seen.entry((hash, copy.bytes, device)) {
            Entry::Occupied(mut seen) => {
                *seen.get_mut() += 1;
                let tally = Tally::copy(copy.bytes, copy.duration_ns());
                self.again.add((symbols.of(copy.name), symbols.of(copy.site), device), &tally);
            }
            Entry::Vacant(new) if !is_full => _ = new.insert(1),
            Entry::Vacant(_) => {}
        }
    }

    /// The first upload would remain.
    pub(super) fn findings(&self, symbols: &Symbols) -> Vec<DocumentFinding> {
        let large = self.again.iter().filter(|(_, tally)| tally.times >= AGAIN_MIN);
        let of = |((name, site, device), tally): (&Key, &Tally)| {
            let name = symbols.text(*name);
            let message = format!(
                "contents that {} has already are copied there again as {}, {}: {} bytes",
                symbols.text(*device),
                quoted(name),
                times(tally.times),
                grouped(tally.bytes)
            );
            let change = "Make the array once, outside the loop, and pass it each time; where \
                          kernels change it, copy it on the device (`assign`, `try_clone`).";
            let text = Text { kind: "repeated_upload", message, change };
            finding(name, text, vec![symbols.text(*site).to_owned()], tally)
        };
        large.map(of).collect()
    }
}
