//! A job as JSON.

use resident_documents::{Document, Flow, Waits};
use serde_json::{Value, json};

use super::Job;
use super::clocks::{Clock, Mark};
use super::summary::{self, Imbalance, Pair, Totals};

pub(super) fn of(job: &Job, clocks: Option<&[Clock]>) -> String {
    let ranks: Vec<Value> =
        job.documents().map(|(rank, document)| of_rank(rank, document)).collect();
    let mut value = json!({
        "version": 1,
        "size": job.size,
        "ranks": ranks,
        "pairs": summary::pairs(job).iter().map(pair).collect::<Vec<_>>(),
        "totals": totals(&summary::totals(job)),
        "imbalances": summary::imbalances(job).iter().map(imbalance).collect::<Vec<_>>(),
    });
    if let Some(clocks) = clocks {
        value["clocks"] = clocks.iter().map(clock).collect();
    }
    value.to_string() + "\n"
}

fn of_rank(rank: u32, document: &Document) -> Value {
    let mut value = totals(&Totals::of(document));
    value["rank"] = json!(rank);
    value["host"] = json!(document.host);
    value["duration_ns"] = json!(document.duration_ns);
    value
}

fn totals(totals: &Totals) -> Value {
    json!({
        "sent": flow(totals.sent),
        "received": flow(totals.received),
        "to_device": flow(totals.to_device),
        "to_host": flow(totals.to_host),
        "between_devices": flow(totals.between_devices),
        "launches": totals.launches,
        "waits": waits(totals.waits),
        "peer_waits": waits(totals.peer_waits),
    })
}

fn flow(Flow { count, bytes }: Flow) -> Value {
    json!({ "count": count, "bytes": bytes })
}

fn waits(Waits { count, nanoseconds }: Waits) -> Value {
    json!({ "count": count, "nanoseconds": nanoseconds })
}

fn pair(pair: &Pair) -> Value {
    let Pair { from, to, sent, received } = pair;
    json!({
        "from": from,
        "to": to,
        "sent": sent.map(flow),
        "received": received.map(flow),
        "differs": pair.differs(),
    })
}

fn imbalance(Imbalance { name, ratio, rank }: &Imbalance) -> Value {
    json!({ "of": name, "largest_over_mean": ratio, "rank": rank })
}

fn clock(clock: &Clock) -> Value {
    let (by, barriers, spread_ns) = match clock.mark {
        Mark::First => ("first", 0, None),
        Mark::Barriers { count, spread_ns } => ("barriers", count, Some(spread_ns)),
        Mark::System => ("system", 0, None),
    };
    json!({
        "rank": clock.rank,
        "shift_ns": clock.shift_ns,
        "by": by,
        "barriers": barriers,
        "spread_ns": spread_ns,
    })
}
