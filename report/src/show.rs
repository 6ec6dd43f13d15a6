//! Reports as text.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use comfy_table::Table;
use resident_documents::{
    Document, DocumentChecked, DocumentSite, Flow, NOT_COMPARED, Waits, compared, grouped, saving,
    shown, visible,
};

use crate::command_line::By;
use crate::table::{COPIES, MESSAGES, new_table, sum, total};

/// The bytes and the copies.
const NUMBERS: [usize; 2] = [0, 1];

/// The report as text. An error says what the report lacks.
pub(crate) fn text(document: &Document, by: By) -> Result<String, String> {
    let table = match by {
        By::Site if is_empty(document) => {
            let nothing = "Nothing was copied, launched or waited for.\n";
            return Ok(nothing.to_owned() + &checked(document));
        }
        By::Site => sites(document),
        By::Array => groups(document, "array", |site| &site.array),
        By::Device => groups(document, "device", |site| &site.device),
        By::Stream => streams(document)?,
    };
    let table = if table.is_empty() { String::new() } else { format!("{table}\n\n") };
    Ok(table + &totals(document) + &checked(document) + &findings(document))
}

/// Whether the report has nothing to show.
fn is_empty(document: &Document) -> bool {
    document.sites.is_empty() && document.launches == 0 && document.waits.count == 0
}

fn sites(document: &Document) -> Table {
    let mut sites: Vec<&DocumentSite> = document.sites.iter().collect();
    sites.sort_by_key(|site| Reverse(site.bytes));
    let header = ["bytes", "copies", "direction", "device", "cause", "array", "call site"];
    let mut table = new_table(&header, NUMBERS);
    for site in sites {
        table.add_row([
            grouped(site.bytes),
            grouped(site.count),
            shown(&site.direction),
            shown(&devices(site)),
            shown(&site.cause),
            shown(&site.array),
            visible(&site.site),
        ]);
    }
    table
}

/// Where the bytes go or come from.
fn devices(site: &DocumentSite) -> String {
    let device = &site.device;
    let peer = site.peer.map_or_else(|| String::from("all ranks"), |rank| format!("rank {rank}"));
    match (&site.source, site.direction.as_str()) {
        (Some(source), _) => format!("{source} -> {device}"),
        (None, "sent") => format!("{device} -> {peer}"),
        (None, "received") => format!("{peer} -> {device}"),
        (None, _) => device.clone(),
    }
}

fn groups(document: &Document, what: &str, key: fn(&DocumentSite) -> &String) -> Table {
    let mut groups: BTreeMap<(&str, &str), Flow> = BTreeMap::new();
    for site in &document.sites {
        let flow = groups.entry((key(site), &site.direction)).or_default();
        *flow = sum(*flow, Flow { count: site.count, bytes: site.bytes });
    }
    let row = |((name, direction), flow): ((&str, _), Flow)| (name.to_owned(), direction, flow);
    group_table(what, groups.into_iter().map(row).collect())
}

/// The copies by stream. Reports of earlier versions of the library do not have them.
fn streams(document: &Document) -> Result<Table, String> {
    let has_copies = document.sites.iter().any(|site| site.cause != "mpi");
    if document.streams.is_empty() && has_copies {
        let lacking = "the report does not have its copies by stream: the program that wrote it \
                       uses an earlier version of the library; use `--by device`";
        return Err(lacking.to_owned());
    }
    let rows = document.streams.iter().flat_map(|of| {
        let name = match of.stream {
            Some(number) => format!("{} stream {number}", of.device),
            None => format!("{} other streams", of.device),
        };
        let flows = [
            ("to_device", of.to_device),
            ("to_host", of.to_host),
            ("between_devices", of.between_devices),
        ];
        flows.map(|(direction, flow)| (name.clone(), direction, flow))
    });
    Ok(group_table("stream", rows.filter(|(.., flow)| flow.count > 0).collect()))
}

/// A table of groups, the largest first.
fn group_table(what: &str, mut groups: Vec<(String, &str, Flow)>) -> Table {
    groups.sort_by_key(|(.., flow)| Reverse(flow.bytes));
    let mut table = new_table(&["bytes", "copies", "direction", what], NUMBERS);
    for (name, direction, flow) in groups {
        let bytes = grouped(flow.bytes);
        table.add_row([bytes, grouped(flow.count), shown(direction), shown(&name)]);
    }
    table
}

fn totals(document: &Document) -> String {
    let lines = [
        ("to devices", document.to_device),
        ("to the host", document.to_host),
        ("between devices", document.between_devices),
    ];
    let totals = lines.map(|(name, flow)| total(flow, COPIES, 6, name));
    let waits = grouped(document.waits.count);
    let micros = grouped(document.waits.nanoseconds / 1000);
    let work = format!("launches: {}; waits: {waits}, {micros} µs\n", grouped(document.launches));
    let compared = match (document.conservative.count, document.avoided.count) {
        (0, 0) => String::new(),
        // Reports of earlier libraries do not say what it is compared with.
        (0, _) => format!("avoided at launches: {}\n", document.avoided),
        _ => compared(document.conservative, document.avoided) + "\n",
    };
    totals.concat() + &messages(document) + &work + &compared
}

/// What went to other processes and came from them, if anything did.
fn messages(document: &Document) -> String {
    let flows = [("sent to ranks", document.sent), ("received from ranks", document.received)];
    let flows = flows.map(|(name, flow)| match flow.count {
        0 => String::new(),
        _ => total(flow, MESSAGES, 8, name),
    });
    let Waits { count, nanoseconds } = document.peer_waits;
    let micros = grouped(nanoseconds / 1000);
    let waits = || format!("waits for other processes: {}, {micros} µs\n", grouped(count));
    flows.concat() + &if count > 0 { waits() } else { String::new() }
}

/// What the checker of CUDA C has checked, if it ran.
fn checked(document: &Document) -> String {
    let Some(kernels) = &document.checked else { return String::new() };
    let launches: u64 = kernels.iter().map(|kernel| kernel.launches).sum();
    let lines = kernels.iter().map(|of_kernel| {
        let DocumentChecked { kernel, launches, accesses, errors, notes } = of_kernel;
        let launches = counted(*launches, "launch", "launches");
        let accesses = counted(*accesses, "access", "accesses");
        let errors = counted(*errors, "error", "errors");
        let notes = counted(*notes, "note", "notes");
        format!("  {}: {launches}, {accesses}, {errors}, {notes}\n", shown(kernel))
    });
    let head = format!("checked kernels: {}; launches: {}\n", kernels.len(), grouped(launches));
    head + &lines.collect::<String>()
}

/// `1 note`, `2 notes`.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

fn findings(document: &Document) -> String {
    let text = document.findings.iter().map(|finding| {
        format!(
            "\n{}\n    {}\n    {} At {}.\n",
            visible(&finding.message),
            visible(&finding.change),
            saving(finding),
            visible(&finding.sites.join(", "))
        )
    });
    let note = match document.compared_contents {
        Some(false) => format!("\n{NOT_COMPARED}\n"),
        _ => String::new(),
    };
    text.collect::<String>() + &note
}
