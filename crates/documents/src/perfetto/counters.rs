//! Numbers over time: bytes moved, and device memory in use.

use std::collections::BTreeMap;

use super::tracks::{Counter, Packets};
use crate::document::{Document, DocumentMemoryUse, DocumentRecord};

pub(super) fn add(packets: &mut Packets, document: &Document) {
    for (direction, flow) in flows(document) {
        packets.counter(&moved(direction, flow));
    }
    for memory in &document.memory {
        packets.counter(&in_use(memory, document.duration_ns));
    }
}

/// When a copy was done, as far as that is known, or a message recorded; and its bytes.
type Flows<'d> = BTreeMap<&'d str, Vec<(u64, u64)>>;

fn flows(document: &Document) -> Flows<'_> {
    let mut flows = Flows::new();
    for record in &document.records {
        let (direction, time_ns, bytes) = match record {
            DocumentRecord::Copy { direction, queued_ns, finished_ns, bytes, .. } => {
                (direction, finished_ns.unwrap_or(*queued_ns), *bytes)
            }
            DocumentRecord::Message(message) => {
                (&message.direction, message.queued_ns, message.bytes)
            }
            _ => continue,
        };
        flows.entry(direction).or_default().push((time_ns, bytes));
    }
    flows
}

/// The bytes of a direction since the first record.
fn moved(direction: &str, mut flow: Vec<(u64, u64)>) -> Counter {
    flow.sort_unstable();
    let mut sum = 0_u64;
    for (_, bytes) in &mut flow {
        sum = sum.saturating_add(*bytes);
        *bytes = sum;
    }
    let name = format!("bytes {}", direction.replace('_', " "));
    Counter { group: "link".to_owned(), name, points: flow }
}

fn in_use(memory: &DocumentMemoryUse, end_ns: u64) -> Counter {
    let mut points = vec![(0, memory.before)];
    points.extend(memory.series.iter().map(|point| (point.at_ns, point.bytes)));
    let last_ns = points.last().map_or(0, |(time_ns, _)| *time_ns);
    points.push((end_ns.max(last_ns), memory.in_use));
    let name = match &*memory.device {
        "host" => "pinned memory in use",
        _ => "memory in use",
    };
    Counter { group: memory.device.clone(), name: name.to_owned(), points }
}
