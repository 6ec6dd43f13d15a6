//! Host memory of arrays that a device changes, and that the host does not use again before they
//! are dropped. `release_host` frees it earlier.
//!
//! Reads by the host of contents that are valid there leave no record, since they cost nothing. So
//! only arrays count of which a device has changed all: what the host then reads is copied first.

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Sites, Tally, Text, Time, finding, subject};
use super::used::Used;
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// Arrays with less host memory give no finding.
const BYTES_MIN: u64 = 16 << 20;

/// So many uses on devices from the change on are many.
const USES_MIN: u64 = 8;

/// What the findings about one cause have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    name: Symbol,
    device: Symbol,
    uploaded: Symbol,
    changed: Symbol,
}

/// The upload of one array since which the host has not used it, as far as the records know.
#[derive(Clone, Debug, Default)]
pub(super) struct HostMemory {
    upload: Option<Upload>,
}

#[derive(Clone, Copy, Debug)]
struct Upload {
    name: Symbol,
    device: Symbol,
    site: Symbol,
    bytes: u64,
    /// The first call that changed the whole array on a device.
    changed: Option<Symbol>,
    /// The number of uses from then on.
    uses: u64,
}

impl HostMemory {
    pub(super) fn add_copy(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        self.upload = match (copy.direction, copy.cause) {
            ("between_devices", _) => return,
            ("to_device", "launch" | "gpu" | "prefetch") if copy.bytes >= BYTES_MIN => {
                let (name, device) = (symbols.of(copy.name), symbols.of(copy.device));
                let (site, bytes) = (symbols.of(copy.site), copy.bytes);
                Some(Upload { name, device, site, bytes, changed: None, uses: 0 })
            }
            // An upload of `release_host`, too, after which the memory is free.
            _ => None,
        };
    }

    pub(super) fn add_use(&mut self, used: &Used) {
        if used.place.is_none() {
            self.upload = None;
        }
        let Some(upload) = &mut self.upload else { return };
        if used.writes_all {
            upload.changed.get_or_insert(used.site);
        }
        upload.uses += u64::from(upload.changed.is_some());
    }

    /// The array is dropped.
    pub(super) fn end(&mut self, groups: &mut Groups<Key>) {
        let Some(upload) = self.upload.take() else { return };
        let Upload { name, device, site: uploaded, bytes, changed, uses } = upload;
        if let Some(changed) = changed
            && uses >= USES_MIN
        {
            let (count, time) = (0, Time::of(None));
            let tally = Tally { arrays: 1, times: uses, count, bytes: 0, all_bytes: bytes, time };
            groups.add(Key { name, device, uploaded, changed }, &tally);
        }
    }

    /// Something has used the array of which the records do not know.
    pub(super) fn forget(&mut self) {
        self.upload = None;
    }
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let of = |(key, tally): (&Key, &Tally)| {
        let (name, bytes) = (symbols.text(key.name), tally.all_bytes);
        let has = if tally.arrays > 1 { "keep" } else { "keeps" };
        let message = format!(
            "{} {has} {} bytes of host memory through {} uses on {}, after which the array is \
             dropped and not read on the host",
            subject(name, tally.arrays),
            grouped(bytes),
            grouped(tally.times),
            symbols.text(key.device)
        );
        let change = "Call `release_host()` on it after the first of these uses.";
        let text = Text { kind: "idle_host_memory", message, change };
        let sites = Sites::of(&[key.changed, key.uploaded]).texts(symbols);
        DocumentFinding { host_memory_bytes: bytes, ..finding(name, text, sites, tally) }
    };
    groups.iter().map(of).collect()
}
