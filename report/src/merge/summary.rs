//! What the ranks of a job moved and waited, together.

use std::collections::BTreeMap;

use resident_documents::{Document, Flow, Waits};

use super::Job;
use crate::table::sum;

/// The totals of one rank, or of all.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) sent: Flow,
    pub(super) received: Flow,
    pub(super) to_device: Flow,
    pub(super) to_host: Flow,
    pub(super) between_devices: Flow,
    pub(super) launches: u64,
    /// For devices.
    pub(super) waits: Waits,
    /// For other processes.
    pub(super) peer_waits: Waits,
}

impl Totals {
    pub(super) fn of(document: &Document) -> Self {
        Self {
            sent: document.sent,
            received: document.received,
            to_device: document.to_device,
            to_host: document.to_host,
            between_devices: document.between_devices,
            launches: document.launches,
            waits: document.waits,
            peer_waits: document.peer_waits,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            sent: sum(self.sent, other.sent),
            received: sum(self.received, other.received),
            to_device: sum(self.to_device, other.to_device),
            to_host: sum(self.to_host, other.to_host),
            between_devices: sum(self.between_devices, other.between_devices),
            launches: self.launches.saturating_add(other.launches),
            waits: sum_of_waits(self.waits, other.waits),
            peer_waits: sum_of_waits(self.peer_waits, other.peer_waits),
        }
    }

    /// The bytes between this process and others.
    pub(super) fn messages_bytes(&self) -> u64 {
        self.sent.bytes.saturating_add(self.received.bytes)
    }

    /// The bytes between the host and devices.
    pub(super) fn copied_bytes(&self) -> u64 {
        sum(sum(self.to_device, self.to_host), self.between_devices).bytes
    }

    /// The time in which threads waited for devices and for other processes.
    pub(super) fn waited_ns(&self) -> u64 {
        self.waits.nanoseconds.saturating_add(self.peer_waits.nanoseconds)
    }
}

fn sum_of_waits(one: Waits, other: Waits) -> Waits {
    Waits {
        count: one.count.saturating_add(other.count),
        nanoseconds: one.nanoseconds.saturating_add(other.nanoseconds),
    }
}

/// The totals of all ranks.
pub(super) fn totals(job: &Job) -> Totals {
    job.documents().map(|(_, it)| Totals::of(it)).fold(Totals::default(), Totals::plus)
}

/// The messages from one rank to another, as each of both reports them; `None` if the job has no
/// report of it.
pub(super) struct Pair {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) sent: Option<Flow>,
    pub(super) received: Option<Flow>,
}

impl Pair {
    /// Whether both tell, and not the same.
    pub(super) fn differs(&self) -> bool {
        self.sent.zip(self.received).is_some_and(|(sent, received)| sent != received)
    }
}

/// All pairs between which messages went.
pub(super) fn pairs(job: &Job) -> Vec<Pair> {
    let mut flows: BTreeMap<(u32, u32), [Flow; 2]> = BTreeMap::new();
    for (rank, document) in job.documents() {
        for site in &document.sites {
            let Some(peer) = site.peer else { continue };
            let is_sent = site.direction == "sent";
            let pair = if is_sent { (rank, peer) } else { (peer, rank) };
            let flow = &mut flows.entry(pair).or_default()[usize::from(!is_sent)];
            *flow = sum(*flow, Flow { count: site.count, bytes: site.bytes });
        }
    }
    let known = |rank: u32, flow: Flow| job.reports.contains_key(&rank).then_some(flow);
    let pair = |((from, to), [sent, received]): ((u32, u32), [Flow; 2])| Pair {
        from,
        to,
        sent: known(from, sent),
        received: known(to, received),
    };
    flows.into_iter().map(pair).collect()
}

/// How unevenly the ranks share something.
pub(super) struct Imbalance {
    pub(super) name: &'static str,
    /// The largest share over the mean of all: 1 if all are equal.
    pub(super) ratio: f64,
    /// The rank that has the largest share.
    pub(super) rank: u32,
}

/// What the ranks share unevenly or evenly, without what no rank has.
pub(super) fn imbalances(job: &Job) -> Vec<Imbalance> {
    let shares = [
        imbalance(job, "bytes of messages", Totals::messages_bytes),
        imbalance(job, "bytes of copies", Totals::copied_bytes),
        imbalance(job, "time waited", Totals::waited_ns),
    ];
    shares.into_iter().flatten().collect()
}

fn imbalance(job: &Job, name: &'static str, share: fn(&Totals) -> u64) -> Option<Imbalance> {
    let shares = || job.documents().map(|(rank, it)| (share(&Totals::of(it)), rank));
    // Of equal ones the first.
    let (largest, rank) = shares().max_by_key(|(share, rank)| (*share, u32::MAX - rank))?;
    let mean = shares().map(|(share, _)| share as f64).sum::<f64>() / job.reports.len() as f64;
    (largest > 0).then(|| Imbalance { name, ratio: largest as f64 / mean, rank })
}
