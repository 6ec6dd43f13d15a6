//! The reports of the ranks of one job, joined.

mod scratch;

use std::fs;
use std::path::Path;
use std::time::Duration;

use resident::audit::{self, Document, DocumentBarrier, DocumentRecord, DocumentSite, Flow, Waits};
use resident::internal;
use scratch::{Scratch, assert_refused, run, stdout};
use serde_json::{Value, json};

/// A barrier with this number, left at this time.
fn barrier(number: u64, queued_ns: u64) -> DocumentRecord {
    let (thread, site) = ("main".to_owned(), "src/main.rs:3:3".to_owned());
    DocumentRecord::Barrier(DocumentBarrier { queued_ns, waited_ns: 10, thread, site, number })
}

fn site(direction: &str, peer: u32, bytes: u64) -> DocumentSite {
    DocumentSite {
        site: "src/main.rs:5:5".to_owned(),
        array: "edge".to_owned(),
        direction: direction.to_owned(),
        device: "host".to_owned(),
        source: None,
        cause: "mpi".to_owned(),
        count: 2,
        bytes,
        stale_since: None,
        never_there: false,
        peer: Some(peer),
    }
}

/// The report of a rank, which sends to and receives from the others, and was late by as many
/// thousands of nanoseconds as its rank.
fn report(rank: u32, size: u32, sent: &[(u32, u64)], received: &[(u32, u64)]) -> Document {
    let total = |flows: &[(u32, u64)]| Flow {
        count: 2 * flows.len() as u64,
        bytes: flows.iter().map(|(_, bytes)| bytes).sum(),
    };
    let waited = |times: u64| Waits { count: times, nanoseconds: 1000 * times };
    let late_ns = 1000 * u64::from(rank);
    let mut document = Document::default();
    document.version = 1;
    (document.rank, document.ranks) = (Some(rank), Some(size));
    document.host = Some(format!("node{}", rank / 2));
    (document.sent, document.received) = (total(sent), total(received));
    document.to_device = Flow { count: 1, bytes: 100 * u64::from(rank) };
    document.launches = 3;
    (document.waits, document.peer_waits) = (waited(1), waited(u64::from(rank)));
    document.sites.extend(sent.iter().map(|(peer, bytes)| site("sent", *peer, *bytes)));
    document.sites.extend(received.iter().map(|(peer, bytes)| site("received", *peer, *bytes)));
    document.records =
        vec![barrier(0, 9000 - late_ns), barrier(1, 19_000 - late_ns + u64::from(rank))];
    document.started_unix_ns = 1_700_000_000_000_000_000 + 7 * late_ns;
    document
}

fn write(name: &str, document: &Document) -> Scratch {
    Scratch::new(name, &document.to_json())
}

/// Three ranks in a ring; rank 2 misses half of a message.
fn ring() -> [Scratch; 3] {
    [
        write("ring0.json", &report(0, 3, &[(1, 800), (2, 800)], &[(1, 800), (2, 1600)])),
        write("ring1.json", &report(1, 3, &[(0, 800), (2, 800)], &[(0, 800), (2, 800)])),
        write("ring2.json", &report(2, 3, &[(0, 1600), (1, 800)], &[(0, 400), (1, 800)])),
    ]
}

fn merge<'a>(options: &[&'a str], files: &'a [Scratch]) -> Vec<&'a str> {
    let files = files.iter().map(Scratch::path);
    ["merge"].into_iter().chain(options.iter().copied()).chain(files).collect()
}

fn merged(options: &[&str], files: &[Scratch]) -> Value {
    serde_json::from_str(&stdout(&run(&merge(options, files)))).expect("JSON")
}

#[test]
fn ranks_pairs_totals_and_imbalances_are_shown() {
    let ring = ring();
    insta::assert_snapshot!(stdout(&run(&merge(&[], &ring))));
}

#[test]
fn json_has_what_the_text_has() {
    let ring = ring();
    let merged = merged(&["--json"], &ring);
    assert_eq!((&merged["version"], &merged["size"]), (&json!(1), &json!(3)));
    let flow = |count: u64, bytes: u64| json!({"count": count, "bytes": bytes});
    let pair = |from: u32, to: u32, sent: u64, received: u64| {
        json!({
            "from": from, "to": to, "sent": flow(2, sent), "received": flow(2, received),
            "differs": sent != received,
        })
    };
    let expected = [
        pair(0, 1, 800, 800),
        pair(0, 2, 800, 400),
        pair(1, 0, 800, 800),
        pair(1, 2, 800, 800),
        pair(2, 0, 1600, 1600),
        pair(2, 1, 800, 800),
    ];
    assert_eq!(merged["pairs"], json!(expected));
    assert_eq!(merged["totals"]["sent"], flow(12, 5600));
    assert_eq!(merged["totals"]["peer_waits"], json!({"count": 3, "nanoseconds": 3000}));
    assert_eq!(merged["ranks"][2]["host"], json!("node1"));
    assert_eq!(merged["ranks"][1]["to_device"], flow(1, 100));
    // 4000, 3200 and 3600 bytes of messages; 0, 100 and 200 of copies; 1, 2 and 3 microseconds.
    let imbalance = |of: &str, ratio: f64, rank: u32| -> Value {
        json!({"of": of, "largest_over_mean": ratio, "rank": rank})
    };
    let expected = [
        imbalance("bytes of messages", 4000.0 / 3600.0, 0),
        imbalance("bytes of copies", 2.0, 2),
        imbalance("time waited", 1.5, 2),
    ];
    assert_eq!(merged["imbalances"], json!(expected));
    assert_eq!(merged.get("clocks"), None);
}

#[test]
fn a_rank_without_a_report_is_told_from_one_that_got_nothing() {
    let [zero, one, _two] = ring();
    let files = [one, zero];
    let text = stdout(&run(&merge(&[], &files)));
    assert!(text.starts_with("reports of 2 of 3 ranks\n"), "{text}");
    let line = |start: &str| {
        let line = text.lines().find(|line| line.split_whitespace().collect::<String>() == start);
        line.unwrap_or_else(|| panic!("{start} in {text}"))
    };
    line("128002noreport");
    line("20noreport1_6002");
    assert!(!text.contains("DIFFERENT"), "{text}");
    let merged = stdout(&run(&merge(&["--json"], &files)));
    assert!(merged.contains(r#""sent":null,"to":0"#), "{merged}");
}

/// The names of the processes and the times at which their barriers end.
#[test]
fn one_trace_has_the_ranks_by_one_clock() {
    let ring = ring();
    let output = Scratch::new("ring.pftrace", "");
    let options = ["--json", "--perfetto", output.path()];
    let merged = merged(&options, &ring);
    // By the middle of the two barriers: that of rank 1 is the second of 1000 and 999.
    let clock = |rank: u32, shift_ns: u64, spread_ns: u64| {
        json!({
            "rank": rank, "shift_ns": shift_ns, "by": "barriers", "barriers": 2,
            "spread_ns": spread_ns,
        })
    };
    let first = json!({
        "rank": 0, "shift_ns": 0, "by": "first", "barriers": 0, "spread_ns": null,
    });
    assert_eq!(merged["clocks"], json!([first, clock(1, 1000, 1), clock(2, 2000, 2)]));
    let trace = fs::read(Path::new(output.path())).expect("it was written");
    for name in ["rank 0 on node0", "rank 1 on node0", "rank 2 on node1"] {
        assert!(trace.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    let text = stdout(&run(&merge(&["--perfetto", output.path()], &ring)));
    assert!(text.contains("clock of rank 2: by 2 barriers, within 0.0 µs"), "{text}");
}

#[test]
fn ranks_without_a_common_barrier_have_the_clocks_of_their_hosts() {
    let mut other = report(1, 2, &[], &[]);
    other.records = vec![barrier(7, 5)];
    other.started_unix_ns -= 9000;
    let files = [write("clock0.json", &report(0, 2, &[], &[])), write("clock1.json", &other)];
    let output = Scratch::new("clocks.pftrace", "");
    let options = ["--json", "--perfetto", output.path()];
    let merged = merged(&options, &files);
    let clocks = merged["clocks"].as_array().expect("a list");
    let shifts: Vec<_> = clocks.iter().map(|clock| (&clock["by"], &clock["shift_ns"])).collect();
    // The other began 2000 ns earlier.
    assert_eq!(shifts, [(&json!("first"), &json!(2000)), (&json!("system"), &json!(0))]);
    let text = stdout(&run(&merge(&["--perfetto", output.path()], &files)));
    assert!(text.contains("clock of rank 1: by the time of its host"), "{text}");
}

#[test]
fn reports_that_are_not_of_one_job_are_refused_with_their_name() {
    let first = write("first.json", &report(0, 2, &[], &[]));
    let again = write("again.json", &report(0, 2, &[], &[]));
    let larger = write("larger.json", &report(1, 3, &[], &[]));
    let mut unknown = report(0, 2, &[], &[]);
    unknown.rank = None;
    let unknown = write("unknown.json", &unknown);
    let text = Scratch::new("text.json", "no report");
    for (other, words) in [
        (&again, "again.json: a report of rank 0, as "),
        (&larger, "larger.json: of a job of 3 processes, and those before are of 2"),
        (&unknown, "unknown.json: the report does not name its rank: run"),
        (&text, "text.json: not JSON"),
    ] {
        assert_refused(&run(&["merge", first.path(), other.path()]), words);
    }
    assert_refused(&run(&["merge", "/no/such/report.json"]), "/no/such/report.json: ");
    let unwritten = ["merge", "--perfetto", "/no/such/folder/a.pftrace", first.path()];
    assert_refused(&run(&unwritten), "/no/such/folder/a.pftrace: ");
    assert_eq!(run(&["merge"]).status.code(), Some(2), "no report is named");
}

#[test]
fn what_the_library_records_is_joined() {
    let files = [0, 1].map(|rank| {
        internal::set_rank(rank, 2);
        let ((), report) = audit::capture(|| {
            internal::record_transfer(internal::Transfer::sent(500, "edge", 1 - rank));
            internal::record_transfer(internal::Transfer::received(500, "halo", 1 - rank));
            internal::mark_barrier(Duration::from_micros(9));
        });
        Scratch::new(&format!("library{rank}.json"), &report.to_json())
    });
    let text = stdout(&run(&merge(&[], &files)));
    assert!(text.contains("1_000 bytes in      2 messages  sent"), "{text}");
    assert!(text.contains("waits for ranks: 2, 18 µs") && !text.contains("DIFFERENT"), "{text}");
}

/// Reports may be wrong: sums of what they say do not overflow.
#[test]
fn numbers_that_are_too_large_are_added_up_as_the_largest() {
    let mut huge = report(0, 2, &[(1, u64::MAX)], &[]);
    huge.sites.push(site("sent", 1, u64::MAX));
    huge.to_device = Flow { count: u64::MAX, bytes: u64::MAX };
    huge.started_unix_ns = u64::MAX;
    let mut other = report(1, 2, &[], &[]);
    other.to_device = huge.to_device;
    other.records = vec![barrier(0, u64::MAX)];
    let files = [write("huge0.json", &huge), write("huge1.json", &other)];
    let output = Scratch::new("huge.pftrace", "");
    let merged = stdout(&run(&merge(&["--json", "--perfetto", output.path()], &files)));
    assert!(merged.contains(&format!(r#""to_device":{{"bytes":{0},"count":{0}}}"#, u64::MAX)));
}
