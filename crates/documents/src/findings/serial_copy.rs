//! Copies that waited for kernels of their stream with which they have nothing to do.

use std::collections::BTreeMap;

use super::step::{Copied, Launched};
use super::stream_calls::CallOnStream;
use super::symbols::{Symbol, Symbols};
use super::tally::{Tally, Text, copies, finding, quoted};
use crate::document::DocumentFinding;

/// Fewer copies are left alone.
const COUNT_MIN: u64 = 4;

/// Smaller parts of the whole time are left alone.
const PART_MIN: u64 = 20;

/// So many streams, and calls on streams, are distinguished.
const STREAMS_MAX: usize = 1 << 12;

/// A kernel that has run.
#[derive(Clone, Debug, Default)]
struct Kernel {
    started_ns: u64,
    finished_ns: u64,
    arrays: Vec<u64>,
}

/// The copies of one call on one stream.
#[derive(Clone, Copy, Debug)]
struct Serial {
    count: u64,
    overlap_ns: u64,
    array: Symbol,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SerialCopies {
    /// The last kernel of each stream.
    kernels: BTreeMap<(Symbol, u32), Kernel>,
    calls: BTreeMap<CallOnStream, Serial>,
}

impl SerialCopies {
    pub(super) fn add_launch(&mut self, launch: &Launched<'_>, symbols: &mut Symbols) {
        let stream = (symbols.of(launch.device), launch.stream);
        let Some((started_ns, finished_ns)) = launch.times else { return };
        if self.kernels.len() >= STREAMS_MAX && !self.kernels.contains_key(&stream) {
            self.kernels.clear();
        }
        let kernel = self.kernels.entry(stream).or_default();
        (kernel.started_ns, kernel.finished_ns) = (started_ns, finished_ns);
        kernel.arrays.clear();
        kernel.arrays.extend(launch.arguments.iter().map(|argument| argument.array));
    }

    pub(super) fn add_copy(&mut self, copy: &Copied<'_>, symbols: &mut Symbols) {
        let device = symbols.of(copy.device);
        let kernel = self.kernels.get(&(device, copy.stream));
        let Some(overlap_ns) = kernel.and_then(|kernel| overlap(kernel, copy)) else { return };
        let call = CallOnStream { site: symbols.of(copy.site), device, stream: copy.stream };
        if self.calls.len() >= STREAMS_MAX && !self.calls.contains_key(&call) {
            return;
        }
        let array = symbols.of(copy.name);
        let serial = self.calls.entry(call).or_insert(Serial { count: 0, overlap_ns: 0, array });
        serial.count += 1;
        serial.overlap_ns += overlap_ns;
        serial.array = array;
    }

    pub(super) fn findings(&self, duration_ns: u64, symbols: &Symbols) -> Vec<DocumentFinding> {
        let least_ns = duration_ns / PART_MIN;
        let is_large = |serial: &Serial| serial.count >= COUNT_MIN && serial.overlap_ns >= least_ns;
        let large = self.calls.iter().filter(|(_, serial)| is_large(serial));
        large.map(|(call, serial)| finding_of(*call, *serial, symbols)).collect()
    }
}

/// The time for which the copy could have run beside the kernel, had it been on another stream.
fn overlap(kernel: &Kernel, copy: &Copied<'_>) -> Option<u64> {
    let (started_ns, finished_ns) = copy.times?;
    let is_behind = started_ns >= kernel.finished_ns && copy.queued_ns < kernel.finished_ns;
    let is_free = !kernel.arrays.contains(&copy.array);
    let window_ns =
        kernel.finished_ns - kernel.started_ns.max(copy.queued_ns).min(kernel.finished_ns);
    let overlap_ns = window_ns.min(finished_ns.saturating_sub(started_ns));
    (is_behind && is_free && overlap_ns > 0).then_some(overlap_ns)
}

fn finding_of(call: CallOnStream, serial: Serial, symbols: &Symbols) -> DocumentFinding {
    let CallOnStream { site, device, stream } = call;
    let name = symbols.text(serial.array);
    let message = format!(
        "{} of {} wait for kernels on stream {stream} of {} that do not use it",
        copies(serial.count),
        quoted(name),
        symbols.text(device)
    );
    let change = "Queue them on another stream (`prefetch`): the library orders the kernels that \
                  use them.";
    let text = Text { kind: "serial_copy", message, change };
    let found = finding(name, text, vec![symbols.text(site).to_owned()], &Tally::default());
    DocumentFinding { nanoseconds: Some(serial.overlap_ns), ..found }
}
