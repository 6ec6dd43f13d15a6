//! Messages between processes, which other crates record.

use std::time::Duration;

use resident::audit::{self, Cause, Direction, DocumentRecord, GroupBy, Ledger};
use resident::internal::{Transfer, mark_barrier, record_transfer};
use resident::{Budget, Error, Result, SmartArray, Traffic};
use support::lab::lab;
use tracing_subscriber::layer::SubscriberExt;

use crate::report_of;

/// As a crate beside the library does it: the site is the line of its caller.
#[track_caller]
fn exchange(name: &str, peer: u32) {
    record_transfer(Transfer::sent(100, name, peer));
    let received = Transfer::received(60, name, peer).waited(Duration::from_micros(5));
    record_transfer(received);
}

#[test]
fn messages_have_sites_and_totals_and_are_no_copies() -> Result<()> {
    let array = SmartArray::from(vec![1_u8; 8]).named("edge");
    let stream = lab().stream();
    let line = line!() + 4;
    let report = report_of(|| {
        array.prefetch(&stream)?;
        for peer in [1, 2, 1] {
            exchange("edge", peer);
        }
        Ok(())
    })?;
    assert_eq!((report.sent().count, report.sent().bytes), (3, 300));
    assert_eq!((report.received().count, report.received().bytes), (3, 180));
    let traffic = report.traffic();
    assert_eq!((traffic.moved().count, traffic.moved().bytes), (1, 8), "the upload only");
    let waits = report.peer_waits();
    assert_eq!((waits.count, waits.nanoseconds, report.waits().count), (3, 15_000, 0));
    let sites: Vec<_> = report.sites().into_iter().filter(|site| site.peer.is_some()).collect();
    let seen: Vec<_> = sites.iter().map(|it| (it.direction, it.peer, it.flow.bytes)).collect();
    let (sent, received) = (Direction::Sent, Direction::Received);
    let expected = [
        (sent, Some(1), 200),
        (sent, Some(2), 100),
        (received, Some(1), 120),
        (received, Some(2), 60),
    ];
    assert_eq!(seen, expected);
    for site in &sites {
        assert_eq!((site.location.line(), site.location.file()), (line, file!()));
        assert_eq!((site.cause, &*site.device, &*site.array), (Cause::Mpi, "host", "edge"));
    }
    for group in [GroupBy::CallSite, GroupBy::Array, GroupBy::Device, GroupBy::Stream] {
        let total: Traffic = report.group_by(group).iter().map(|(_, traffic)| *traffic).sum();
        assert_eq!((report.group_by(group).len(), total), (1, traffic), "{group:?}");
    }
    Ok(())
}

#[test]
fn text_names_the_peers_and_totals_of_messages() {
    let ((), report) = audit::capture(|| exchange("edge", 3));
    let text = report.to_string();
    for part in [
        "sent       host -> rank 3  mpi    edge",
        "received   rank 3 -> host  mpi    edge",
        "100 bytes in    1 message sent to other processes",
        "60 bytes in    1 message received from other processes",
        "waits for other processes: 1, 5 µs",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(report.sites()[0].to_string().contains("100 bytes in 1 copy sent for mpi, host -> "));
    let ((), without) = audit::capture(|| ());
    assert!(!without.to_string().contains("process") && without.is_empty() && !report.is_empty());
}

#[test]
fn documents_have_a_record_of_each_message_and_barrier() {
    let device = lab();
    let ((), report) = audit::capture(|| {
        record_transfer(Transfer::sent(100, "edge", 7).on(&device));
        mark_barrier(Duration::from_nanos(30));
        mark_barrier(Duration::ZERO);
    });
    let document = report.to_document();
    assert_eq!((document.sent.bytes, document.received.bytes), (100, 0));
    assert_eq!((document.peer_waits.count, document.peer_waits.nanoseconds), (1, 30));
    assert!(document.started_unix_ns > 1 << 60, "it is after 2006");
    let [
        DocumentRecord::Message(message),
        DocumentRecord::Barrier(one),
        DocumentRecord::Barrier(two),
    ] = &document.records[..]
    else {
        panic!("three records: {:?}", document.records);
    };
    assert_eq!((&*message.name, message.peer, message.bytes), ("edge", Some(7), 100));
    assert_eq!(
        (&*message.direction, &*message.cause, &*message.device),
        ("sent", "mpi", &*device.name())
    );
    assert_eq!((one.number + 1, one.waited_ns, two.waited_ns), (two.number, 30, 0));
    assert!(message.queued_ns <= one.queued_ns && one.queued_ns <= two.queued_ns);
    let json = report.to_json();
    assert!(json.contains(r#""direction": "sent", "device""#), "{json}");
    assert!(json.contains(r#""peer": 7"#) && json.contains(r#""kind": "barrier""#), "{json}");
}

#[test]
fn budgets_count_messages_only_if_they_are_asked_to() {
    let none = Budget::new().to_device(0).to_host(0).between_devices(0).exactly();
    none.enforce(|| exchange("edge", 1)).expect("messages are no copies");
    let ample = Budget::new().sent(100).received(60).copies(Direction::Sent, 1).exactly();
    ample.enforce(|| exchange("edge", 1)).expect("it is within the limits");
    for (budget, words) in [
        (Budget::new().sent(99), "100 bytes sent of at most 99"),
        (Budget::new().received(59), "60 bytes received of at most 59"),
        (Budget::new().copies(Direction::Received, 0), "1 copies received of at most 0"),
    ] {
        let Err(Error::OverBudget { spent, sites, .. }) = budget.enforce(|| exchange("edge", 1))
        else {
            panic!("over budget: {words}");
        };
        assert_eq!((&*spent, sites.len()), (words, 1));
    }
}

#[test]
fn ledgers_see_messages_with_a_subscriber_and_without() {
    support::own_process!();
    let attached = Ledger::attach();
    let ledger = Ledger::new();
    let subscriber = tracing_subscriber::registry().with(ledger.layer());
    tracing::subscriber::with_default(subscriber, || exchange("seen by ledgers", 5));
    for (report, is_own) in [(attached.report(), false), (ledger.report(), true)] {
        let sites = report.sites();
        let own: Vec<_> = sites.iter().filter(|site| site.array == "seen by ledgers").collect();
        let [sent, received] = own[..] else { panic!("two sites: {sites:?}") };
        assert_eq!((sent.peer, sent.flow.bytes), (Some(5), 100));
        assert_eq!((received.peer, received.flow.bytes), (Some(5), 60));
        assert!(!is_own || sites.len() == 2);
    }
}

/// Messages of other threads count where their copies would.
#[test]
fn messages_count_to_the_captures_of_their_threads() {
    let ((), report) = audit::capture(|| {
        let scope = audit::scope();
        std::thread::scope(|threads| {
            threads.spawn(|| exchange("not counted", 1));
            threads.spawn(|| scope.run(|| exchange("counted", 1)));
        });
    });
    assert!(report.sites().iter().all(|site| site.array == "counted"), "{report}");
    assert_eq!(report.sent().count, 1);
}
