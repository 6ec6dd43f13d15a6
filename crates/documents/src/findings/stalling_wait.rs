//! Waits of the host between two pieces of work of one stream, after which the host reads nothing:
//! meanwhile the stream has nothing to do.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{CallOnStream, History};
use crate::document::{DocumentBarrier, DocumentMessage, DocumentRecord, Finding};

/// Fewer waits are left alone: a program may wait a few times for the sake of its own order.
const COUNT_MIN: u64 = 8;

/// If streams were idle for a smaller part of the whole time, the waits are left alone.
const PART_MIN: u64 = 20;

/// A wait of a thread that nothing followed yet.
#[derive(Clone, Copy)]
struct Pending<'d> {
    call: CallOnStream<'d>,
    /// When the stream had nothing more to do.
    idle_since_ns: u64,
}

/// The waits of one call.
#[derive(Clone, Copy, Default)]
struct Stalls {
    count: u64,
    idle_ns: u64,
}

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    let mut pending: BTreeMap<&str, Pending<'_>> = BTreeMap::new();
    let mut finished: BTreeMap<(&str, u32), u64> = BTreeMap::new();
    // The streams that have copied to the host since the last wait that counts.
    let mut read: BTreeSet<(&str, u32)> = BTreeSet::new();
    let mut stalls: BTreeMap<CallOnStream<'_>, Stalls> = BTreeMap::new();
    for record in history.records() {
        match record {
            // A wait for contents is needed.
            DocumentRecord::Wait { thread, reason, .. } if reason != "synchronize" => {
                pending.remove(&**thread);
            }
            DocumentRecord::Wait { thread, device, stream, site, finished_ns, .. } => {
                // A wait for an earlier part of the work leaves the stream busy.
                let idle_since_ns = finished.get(&(&**device, *stream)).copied();
                let call = CallOnStream { site, device, stream: *stream };
                let wait = idle_since_ns
                    .filter(|time_ns| time_ns <= finished_ns)
                    .map(|idle_since_ns| Pending { call, idle_since_ns });
                pending.remove(&**thread);
                pending.extend(wait.map(|wait| (&**thread, wait)));
            }
            DocumentRecord::Launch { thread, device, stream, started_ns, finished_ns, .. } => {
                // The host may have read what came down before it waited.
                let has_read = read.remove(&(&**device, *stream));
                if let Some(wait) = pending.remove(&**thread)
                    && (wait.call.device, wait.call.stream) == (device, *stream)
                    && !has_read
                {
                    let stall = stalls.entry(wait.call).or_default();
                    stall.count += 1;
                    let until_ns = started_ns.unwrap_or(wait.idle_since_ns);
                    stall.idle_ns += until_ns.saturating_sub(wait.idle_since_ns);
                }
                finished.extend(finished_ns.map(|time| ((&**device, *stream), time)));
            }
            // The host may have waited for what it copies, and for its sake.
            DocumentRecord::Copy { thread, direction, device, stream, .. } => {
                pending.remove(&**thread);
                if direction == "to_host" {
                    read.insert((device, *stream));
                }
            }
            // It may have waited for what it sends, or for all processes.
            DocumentRecord::Message(DocumentMessage { thread, .. })
            | DocumentRecord::Barrier(DocumentBarrier { thread, .. }) => {
                pending.remove(&**thread);
            }
            DocumentRecord::Allocation(_)
            | DocumentRecord::Eviction(_)
            | DocumentRecord::Discard(_)
            | DocumentRecord::Access(_) => {}
        }
    }
    let least_ns = (history.document.duration_ns / PART_MIN).max(1);
    let is_large = |stall: &Stalls| stall.count >= COUNT_MIN && stall.idle_ns >= least_ns;
    let large = stalls.into_iter().filter(|(_, stall)| is_large(stall));
    large.map(|(call, stalls)| finding(call, stalls)).collect()
}

fn finding(call: CallOnStream<'_>, stalls: Stalls) -> Finding {
    let CallOnStream { site, device, stream } = call;
    Finding {
        kind: "stalling_wait".to_owned(),
        message: format!(
            "the host waits {} times for stream {stream} of {device}, and then queues more work \
             there without having read anything",
            stalls.count
        ),
        change: "Leave out the wait, if nothing else depends on it: work of one stream runs in \
                 order, and reading an array waits for the work that it needs."
            .to_owned(),
        sites: vec![site.to_owned()],
        array: None,
        count: 0,
        bytes: 0,
        nanoseconds: Some(stalls.idle_ns),
    }
}
