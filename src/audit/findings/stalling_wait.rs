//! Waits of the host between two pieces of work of one stream, after which the host reads nothing:
//! meanwhile the stream has nothing to do.

use std::collections::BTreeMap;

use super::history::History;
use crate::audit::document::{DocumentRecord, Finding};

/// Fewer waits are left alone: a program may wait a few times for the sake of its own order.
const COUNT_MIN: u64 = 8;

/// A wait of a thread that nothing followed yet.
#[derive(Clone, Copy)]
struct Pending<'d> {
    device: &'d str,
    stream: u32,
    site: &'d str,
    /// When the stream had nothing more to do.
    idle_since_ns: Option<u64>,
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
    let mut stalls: BTreeMap<(&str, &str, u32), Stalls> = BTreeMap::new();
    for record in history.records() {
        match record {
            // A wait for contents is needed.
            DocumentRecord::Wait { thread, reason, .. } if reason != "synchronize" => {
                pending.remove(&**thread);
            }
            DocumentRecord::Wait { thread, device, stream, site, .. } => {
                let idle_since_ns = finished.get(&(&**device, *stream)).copied();
                let wait = Pending { device, stream: *stream, site, idle_since_ns };
                pending.insert(thread, wait);
            }
            DocumentRecord::Launch { thread, device, stream, started_ns, finished_ns, .. } => {
                if let Some(wait) = pending.remove(&**thread)
                    && (wait.device, wait.stream) == (device, *stream)
                {
                    let stall = stalls.entry((wait.site, wait.device, wait.stream)).or_default();
                    stall.count += 1;
                    let idle = wait.idle_since_ns.zip(*started_ns);
                    stall.idle_ns += idle.map_or(0, |(since, until)| until.saturating_sub(since));
                }
                finished.extend(finished_ns.map(|time| ((&**device, *stream), time)));
            }
            // The host may have waited for what it copies, and for its sake.
            DocumentRecord::Copy { thread, .. } => {
                pending.remove(&**thread);
            }
            DocumentRecord::Allocation(_) | DocumentRecord::Eviction(_) => {}
        }
    }
    stalls.into_iter().filter(|(_, stall)| stall.count >= COUNT_MIN).map(finding).collect()
}

fn finding(((site, device, stream), stalls): ((&str, &str, u32), Stalls)) -> Finding {
    Finding {
        kind: "stalling_wait".to_owned(),
        message: format!(
            "the host waits {} times for stream {stream} of {device}, and then queues more work \
             there without having read anything",
            stalls.count
        ),
        change: "Leave out the wait: work of one stream runs in order, and reading an array waits \
                 for the work that it needs."
            .to_owned(),
        sites: vec![site.to_owned()],
        array: None,
        count: 0,
        bytes: 0,
        nanoseconds: (stalls.idle_ns > 0).then_some(stalls.idle_ns),
    }
}
