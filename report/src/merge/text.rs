//! A job as text.

use comfy_table::Table;
use resident_documents::{Document, Flow, Waits, grouped, shown};

use super::Job;
use super::clocks::{Clock, Mark};
use super::summary::{self, Imbalance, Pair, Totals};
use crate::table::{COPIES, MESSAGES, new_table, total};

pub(super) fn of(job: &Job, clocks: &[Clock]) -> String {
    let mut text = heading(job) + &format!("{}\n", ranks(job));
    let pairs = summary::pairs(job);
    if !pairs.is_empty() {
        text += &format!("\n{}\n", table_of_pairs(&pairs));
    }
    text += &format!("\n{}", totals(&summary::totals(job)));
    for Imbalance { name, ratio, rank } in summary::imbalances(job) {
        text += &format!("imbalance of {name}: {ratio:.2} (largest over mean; rank {rank})\n");
    }
    text += &clocks.iter().map(clock).collect::<String>();
    // Cells of tables have a common width.
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Says which reports are missing.
fn heading(job: &Job) -> String {
    match job.size {
        Some(size) if (size as usize) > job.reports.len() => {
            format!("reports of {} of {size} ranks\n\n", job.reports.len())
        }
        _ => String::new(),
    }
}

fn ranks(job: &Job) -> Table {
    let (copies, waits) = (["to devices", "to the host"], ["waits", "waited µs", "for ranks µs"]);
    let names =
        [&["rank", "host", "sent", "received"], &copies[..], &["launches"], &waits].concat();
    let mut table = new_table(&names, (0..names.len()).filter(|column| *column != 1));
    for (rank, document) in job.documents() {
        table.add_row(row(rank, document));
    }
    table
}

fn row(rank: u32, document: &Document) -> Vec<String> {
    let totals = Totals::of(document);
    vec![
        rank.to_string(),
        document.host.as_deref().map(shown).unwrap_or_default(),
        grouped(totals.sent.bytes),
        grouped(totals.received.bytes),
        grouped(totals.to_device.bytes),
        grouped(totals.to_host.bytes),
        grouped(totals.launches),
        grouped(totals.waits.count.saturating_add(totals.peer_waits.count)),
        grouped(totals.waited_ns() / 1000),
        grouped(totals.peer_waits.nanoseconds / 1000),
    ]
}

fn table_of_pairs(pairs: &[Pair]) -> Table {
    let header = ["from", "to", "bytes sent", "messages", "bytes received", "messages", ""];
    let mut table = new_table(&header, 0..6);
    for pair in pairs {
        let cells = |flow: Option<Flow>| match flow {
            Some(Flow { count, bytes }) => [grouped(bytes), grouped(count)],
            None => ["no report".to_owned(), String::new()],
        };
        let mut row = vec![pair.from.to_string(), pair.to.to_string()];
        row.extend(cells(pair.sent));
        row.extend(cells(pair.received));
        row.push(if pair.differs() { "DIFFERENT" } else { "" }.to_owned());
        table.add_row(row);
    }
    table
}

fn totals(totals: &Totals) -> String {
    let lines = [
        (COPIES, "to devices", totals.to_device),
        (COPIES, "to the host", totals.to_host),
        (COPIES, "between devices", totals.between_devices),
        (MESSAGES, "sent", totals.sent),
        (MESSAGES, "received", totals.received),
    ];
    let lines = lines.map(|(nouns, name, flow)| total(flow, nouns, 8, name)).concat();
    let waits = [("devices", totals.waits), ("ranks", totals.peer_waits)];
    let waits = waits.map(|(name, Waits { count, nanoseconds })| {
        let (count, micros) = (grouped(count), grouped(nanoseconds / 1000));
        format!("; waits for {name}: {count}, {micros} µs")
    });
    format!("{lines}launches: {}{}\n", grouped(totals.launches), waits.concat())
}

/// By what the clock of a rank was compared.
fn clock(clock: &Clock) -> String {
    let rank = clock.rank;
    match clock.mark {
        Mark::First => String::new(),
        Mark::Barriers { count: 1, .. } => format!("clock of rank {rank}: by 1 barrier\n"),
        Mark::Barriers { count, spread_ns } => {
            let micros = spread_ns as f64 / 1e3;
            format!("clock of rank {rank}: by {count} barriers, within {micros:.1} µs\n")
        }
        Mark::System => format!(
            "clock of rank {rank}: by the time of its host, since no barrier is in common with the \
             first rank (`resident-mpi` records them)\n"
        ),
    }
}
