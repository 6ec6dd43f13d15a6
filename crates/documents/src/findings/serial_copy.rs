//! Copies that waited for kernels of their stream with which they have nothing to do.

use std::collections::BTreeMap;

use super::history::{CallOnStream, Copied, History, copied};
use crate::document::{DocumentRecord, Finding};

/// Fewer copies are left alone.
const COUNT_MIN: u64 = 4;

/// Smaller parts of the whole time are left alone.
const PART_MIN: u64 = 20;

/// A kernel that has run.
#[derive(Clone)]
struct Kernel {
    started_ns: u64,
    finished_ns: u64,
    arrays: Vec<u64>,
}

/// The copies of one call on one stream.
#[derive(Default)]
struct Serial {
    count: u64,
    overlap_ns: u64,
    array: String,
}

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    // The last kernel of each stream.
    let mut kernels: BTreeMap<(&str, u32), Kernel> = BTreeMap::new();
    let mut serial: BTreeMap<CallOnStream<'_>, Serial> = BTreeMap::new();
    for record in history.records() {
        if let DocumentRecord::Launch { device, stream, arguments, .. } = record
            && let Some((started_ns, finished_ns)) = times(record)
        {
            let arrays = arguments.iter().map(|argument| argument.array).collect();
            kernels.insert((device, *stream), Kernel { started_ns, finished_ns, arrays });
        }
        let Some(copy) = copied(record) else { continue };
        let kernel = kernels.get(&(copy.device, copy.stream));
        if let Some(overlap_ns) = kernel.and_then(|kernel| overlap(kernel, &copy)) {
            let Copied { site, device, stream, .. } = copy;
            let entry = serial.entry(CallOnStream { site, device, stream }).or_default();
            entry.count += 1;
            entry.overlap_ns += overlap_ns;
            copy.name.clone_into(&mut entry.array);
        }
    }
    let least_ns = history.document.duration_ns / PART_MIN;
    let is_large = |serial: &Serial| serial.count >= COUNT_MIN && serial.overlap_ns >= least_ns;
    let large = serial.into_iter().filter(|(_, serial)| is_large(serial));
    large.map(|(call, serial)| finding(call, serial)).collect()
}

fn times(record: &DocumentRecord) -> Option<(u64, u64)> {
    match record {
        DocumentRecord::Launch { started_ns, finished_ns, .. } => started_ns.zip(*finished_ns),
        _ => None,
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

fn finding(call: CallOnStream<'_>, serial: Serial) -> Finding {
    let CallOnStream { site, device, stream } = call;
    Finding {
        kind: "serial_copy".to_owned(),
        message: format!(
            "{} copies of \"{}\" wait for kernels on stream {stream} of {device} that do not use \
             it",
            serial.count, serial.array
        ),
        change: "Queue them on another stream (`prefetch`): the library orders the kernels that \
                 use them."
            .to_owned(),
        sites: vec![site.to_owned()],
        array: Some(serial.array),
        count: 0,
        bytes: 0,
        nanoseconds: Some(serial.overlap_ns),
    }
}
