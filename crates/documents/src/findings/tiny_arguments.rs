//! Tiny arrays that are uploaded for one launch after the other: parameters of kernels.

use super::step::Copied;
use super::symbols::{Symbol, Symbols};
use super::tally::{Groups, Tally, Text, finding, quoted};
use super::used::Used;
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// Fewer uploads are left alone.
const COUNT_MIN: u64 = 32;

/// Larger arrays are left alone: so many scalars are too many parameters.
const BYTES_MAX: u64 = 64;

/// The array's name, and the launch.
pub(super) type Key = (Symbol, Symbol);

/// The upload of an array for a launch that was not recorded yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TinyUpload(Option<(Key, Tally)>);

impl TinyUpload {
    pub(super) fn add(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        let is_tiny =
            copy.bytes <= BYTES_MAX && (copy.direction, copy.cause) == ("to_device", "launch");
        self.0 = is_tiny.then(|| {
            let key = (symbols.of(copy.name), symbols.of(copy.site));
            (key, Tally::copy(copy.bytes, copy.duration_ns()))
        });
    }

    /// A launch that only reads the array could get its elements as scalars.
    pub(super) fn add_use(&mut self, used: &Used, groups: &mut Groups<Key>) {
        if let Some((key, tally)) = self.0.take().filter(|_| used.is_launch && !used.writes) {
            groups.add(key, &tally);
        }
    }
}

pub(super) fn findings(groups: &Groups<Key>, symbols: &Symbols) -> Vec<DocumentFinding> {
    let many = groups.iter().filter(|(_, tally)| tally.times >= COUNT_MIN);
    let of = |((name, site), tally): (&Key, &Tally)| {
        let name = symbols.text(*name);
        let message = format!(
            "{} launches upload {}, {} bytes on average, each for itself",
            grouped(tally.times),
            quoted(name),
            grouped(tally.all_bytes / tally.times.max(1))
        );
        let change = "Pass the values as scalars of the kernel: they need no copy. Values that are \
                      known before can be rows of one array, of which each launch gets a slice.";
        let text = Text { kind: "tiny_arguments", message, change };
        finding(name, text, vec![symbols.text(*site).to_owned()], &Tally { bytes: 0, ..*tally })
    };
    many.map(of).collect()
}
