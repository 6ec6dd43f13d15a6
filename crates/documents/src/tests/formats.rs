//! Every kind of record in JSON and in a trace.

use std::collections::BTreeMap;

use super::samples::{Copy, Launch, access, argument, barrier, memory, message, wait};
use crate::document::{
    Document, DocumentArray, DocumentChecked, DocumentFinding, DocumentMemoryHolder,
    DocumentMemoryMoment, DocumentMemoryPoint, DocumentMemoryUse, DocumentMessage, DocumentProcess,
    DocumentRecord, DocumentSite, DocumentStream,
};
use crate::perfetto;
use crate::totals::{Flow, Waits};

/// One record of each kind, and a copy without optional values.
fn records() -> Vec<DocumentRecord> {
    let mut there = access(Some("gpu"), "in", 3);
    there.queued_ns = 70;
    let at = |queued_ns| {
        let mut memory = memory("memory.rs:8:8", 400);
        memory.queued_ns = queued_ns;
        memory
    };
    let launch = Launch {
        id: 7,
        called_ns: Some(20),
        queued_ns: 25,
        times: Some((31, 35)),
        ..Launch::of(&[argument(1, "in_out", 1)])
    };
    let full = Copy {
        stream: 2,
        direction: "between_devices",
        source: Some("other"),
        stale_since: Some("stale.rs:9:9"),
        launch: Some(7),
        queued_ns: 22,
        times: Some((23, 29)),
        changed_bytes: Some(5),
        host_ns: Some(6),
        is_pageable: true,
        ..Copy::UP
    };
    vec![
        Copy { use_number: None, queued_ns: 5, times: None, ..Copy::UP }.record(),
        full.record(),
        launch.record(),
        wait("synchronize", 30..36),
        DocumentRecord::Allocation(at(40)),
        DocumentRecord::Eviction(at(50)),
        DocumentRecord::Discard(at(60)),
        DocumentRecord::Access(there),
        DocumentRecord::Access(access(None, "out", 4)),
        DocumentRecord::Message(DocumentMessage { waited_ns: 0, ..message("sent", 2, 90) }),
        DocumentRecord::Message(message("received", 3, 95)),
        DocumentRecord::Barrier(barrier(4, 99)),
    ]
}

/// The fields of a message of protocol buffers, by their numbers.
#[derive(Debug, Default)]
struct Fields {
    numbers: BTreeMap<u64, Vec<u64>>,
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl Fields {
    fn of(mut bytes: &[u8]) -> Self {
        let mut fields = Self::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            match key & 7 {
                0 => fields.numbers.entry(key >> 3).or_default().push(varint(&mut bytes)),
                1 => {
                    let value = first(&mut bytes, 8).try_into().expect("eight bytes");
                    fields.numbers.entry(key >> 3).or_default().push(u64::from_le_bytes(value));
                }
                2 => {
                    let len = varint(&mut bytes) as usize;
                    let value = first(&mut bytes, len).to_vec();
                    fields.bytes.entry(key >> 3).or_default().push(value);
                }
                other => panic!("wire type {other}"),
            }
        }
        fields
    }

    fn number(&self, field: u64) -> u64 {
        self.numbers[&field][0]
    }

    fn text(&self, field: u64) -> String {
        String::from_utf8(self.bytes[&field][0].clone()).expect("UTF-8")
    }

    fn message(&self, field: u64) -> Self {
        Self::of(&self.bytes[&field][0])
    }
}

/// Takes the first bytes.
fn first<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (value, rest) = bytes.split_at(len);
    *bytes = rest;
    value
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = first(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

/// The events of a trace, a line for each: the track, the category, the title, the times, the
/// arrows and the details.
fn events(trace: &[u8]) -> Vec<String> {
    read(trace).0
}

/// The numbers over time of a trace, a line for each: the track, the bytes and the time.
fn counters(trace: &[u8]) -> Vec<String> {
    read(trace).1
}

/// The events and the counters.
fn read(trace: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut counters = Vec::<String>::new();
    let mut tracks = BTreeMap::<u64, String>::new();
    let mut events = Vec::<String>::new();
    for packet in &Fields::of(trace).bytes[&1] {
        let packet = Fields::of(packet);
        if packet.bytes.contains_key(&60) {
            let track = packet.message(60);
            let group = track.numbers.get(&5).map(|parent| format!("{}/", tracks[&parent[0]]));
            let name = group.unwrap_or_default() + &track.text(2);
            tracks.insert(track.number(1), name);
            continue;
        }
        let (time_ns, event) = (packet.number(8), packet.message(11));
        match event.number(9) {
            4 => {
                let (track, bytes) = (&tracks[&event.number(11)], event.number(30));
                counters.push(format!("{track} {bytes} at {time_ns}"));
            }
            // The end of the event before it.
            2 => *events.last_mut().expect("it began") += &format!(" until {time_ns}"),
            kind => {
                let kind = if kind == 1 { "from" } else { "at" };
                let flows = event.numbers.get(&47).cloned().unwrap_or_default();
                let details = event.bytes.get(&4).into_iter().flatten();
                let details: Vec<String> =
                    details.map(|detail| detail_of(&Fields::of(detail))).collect();
                let (category, title) = (event.text(22), event.text(23));
                let track = &tracks[&event.number(11)];
                events.push(format!(
                    "{track} {category} \"{title}\" {flows:?} {} {kind} {time_ns}",
                    details.join(" ")
                ));
            }
        }
    }
    (events, counters)
}

fn detail_of(detail: &Fields) -> String {
    let value = match detail.numbers.get(&3) {
        Some(number) => number[0].to_string(),
        None => detail.text(6),
    };
    format!("{}={value}", detail.text(10))
}

#[test]
fn each_kind_of_record_has_its_events_in_a_trace() {
    let document = Document { records: records(), ..Document::default() };
    let details = |cause: &str, direction: &str| {
        format!(
            "array=x bytes=100 padding=4 direction={direction} cause={cause} site=copy.rs:1:1 \
             thread=main"
        )
    };
    let (up, between) = (details("launch", "to_device"), details("launch", "between_devices"));
    let between = between + " stale_since=stale.rs:9:9 source=other";
    let memory = "device=gpu site=memory.rs:8:8 bytes=400";
    let [to, from] = [2, 3].map(|peer| {
        format!("array=x bytes=100 peer={peer} device=host cause=mpi site=send.rs:5:5 thread=main")
    });
    let launch = "kernel=kernel site=launch.rs:2:2 thread=main";
    let expected = [
        "host/main access \"access x\" [] device=host site=access.rs:4:4 access=out at 0"
            .to_owned(),
        // From its call on: a copy that it needed was queued after that.
        format!("host/main launch \"launch kernel\" [7] {launch} from 20 until 25"),
        "host/main wait \"wait for gpu stream 0\" [] site=wait.rs:3:3 reason=synchronize from 30 \
         until 36"
            .to_owned(),
        format!("host/main memory \"allocate x\" [] {memory} at 40"),
        format!("host/main memory \"evict x\" [] {memory} at 50"),
        format!("host/main memory \"discard a copy of x\" [] {memory} at 60"),
        "host/main access \"access x\" [] device=gpu site=access.rs:4:4 access=in at 70".to_owned(),
        "host/main barrier \"barrier\" [] site=barrier.rs:6:6 number=4 from 79 until 99".to_owned(),
        format!("link/between devices copy \"x between_devices\" [] {between} from 23 until 29"),
        format!("link/received message \"x received, rank 3\" [] {from} from 85 until 95"),
        format!("link/sent message \"x sent, rank 2\" [] {to} at 90"),
        format!("link/to device copy \"x to_device\" [] {up} at 5"),
        format!("gpu/stream 0 copy \"x to_device\" [] {up} at 5"),
        format!("gpu/stream 0 kernel \"kernel\" [7] {launch} from 31 until 35"),
        format!("gpu/stream 2 copy \"x between_devices\" [7] {between} from 23 until 29"),
    ];
    assert_eq!(events(&perfetto::trace(&document)), expected);
}

/// A launch begins with its call, or with the first copy that it needs if that was queued before.
#[test]
fn a_trace_has_the_bytes_moved_and_the_memory_in_use_over_time() {
    let point = |at_ns, bytes| DocumentMemoryPoint { at_ns, bytes };
    let memory = |device: &str| DocumentMemoryUse {
        device: device.to_owned(),
        before: 10,
        in_use: 0,
        peak: DocumentMemoryMoment::default(),
        out_of_memory: None,
        series: vec![point(5, 90), point(7, 40)],
    };
    let copies =
        records().into_iter().filter(|record| matches!(record, DocumentRecord::Copy { .. }));
    let copies: Vec<_> = copies.collect();
    let document = Document {
        records: [copies.clone(), copies].concat(),
        memory: vec![memory("cpu:0"), memory("host")],
        duration_ns: 100,
        ..Document::default()
    };
    let expected = [
        "link/bytes between devices 100 at 29",
        "link/bytes between devices 200 at 29",
        "link/bytes to device 100 at 5",
        "link/bytes to device 200 at 5",
        "cpu:0/memory in use 10 at 0",
        "cpu:0/memory in use 90 at 5",
        "cpu:0/memory in use 40 at 7",
        "cpu:0/memory in use 0 at 100",
        "host/pinned memory in use 10 at 0",
        "host/pinned memory in use 90 at 5",
        "host/pinned memory in use 40 at 7",
        "host/pinned memory in use 0 at 100",
    ];
    assert_eq!(counters(&perfetto::trace(&document)), expected);
}

#[test]
fn a_trace_of_nothing_and_one_that_lacks_records_say_so() {
    let nothing = Document::default();
    let expected = r#"notes/note note "nothing was copied, launched or waited for" []  at 0"#;
    assert_eq!(events(&perfetto::trace(&nothing)), [expected]);
    let lacking = Document { records: records(), records_forgotten: 1234, ..nothing };
    let expected = r#"notes/note note "1_234 earlier records are not in this trace" []  at 0"#;
    assert_eq!(events(&perfetto::trace(&lacking))[0], expected);
}

#[test]
fn hostile_names_are_escaped_and_shortened_in_a_trace() {
    let hostile = "\u{1b}[31m\u{202e}\n".to_owned() + &"x".repeat(5000);
    let mut records = records();
    for record in &mut records {
        match record {
            DocumentRecord::Copy { name, thread, device, site, direction, .. } => {
                for text in [name, thread, device, site, direction] {
                    text.clone_from(&hostile);
                }
            }
            DocumentRecord::Launch { name, .. } => name.clone_from(&hostile),
            _ => {}
        }
    }
    let trace = perfetto::trace(&Document { records, ..Document::default() });
    for event in events(&trace).into_iter().chain(counters(&trace)) {
        assert!(!event.contains(['\u{1b}', '\u{202e}', '\n']), "{event}");
        let title = event.split('"').nth(1).unwrap_or_default();
        assert!(title.chars().count() < 200, "{title}");
    }
}

#[test]
fn a_launch_in_a_trace_begins_with_its_first_copy() {
    let begins = |called_ns, copied_ns: u64| {
        let launch = Launch { called_ns, queued_ns: 50, ..Launch::of(&[]) };
        let copy = Copy { launch: Some(1), queued_ns: copied_ns, ..Copy::UP };
        let records = vec![launch.record(), copy.record()];
        let events = events(&perfetto::trace(&Document { records, ..Document::default() }));
        let call = events.into_iter().find(|event| event.contains("launch kernel"));
        call.expect("it is an event").split_once("from ").map(|times| times.1.to_owned())
    };
    assert_eq!(begins(Some(20), 30).as_deref(), Some("20 until 50"));
    assert_eq!(begins(Some(20), 10).as_deref(), Some("10 until 50"));
    assert_eq!(begins(None, 30).as_deref(), Some("30 until 50"));
    assert_eq!(begins(None, 60).as_deref(), Some("50 until 50"));
}

/// Each process has its own tracks, times and arrows.
#[test]
fn a_trace_of_several_processes_has_a_group_of_tracks_for_each() {
    let launch = Launch { queued_ns: 20, times: Some((30, 40)), ..Launch::of(&[]) };
    let document = Document { records: vec![launch.record()], ..Document::default() };
    let process = |number, name, shift_ns| perfetto::ProcessTrace {
        number,
        name,
        document: &document,
        shift_ns,
    };
    let trace = perfetto::trace_of_processes(&[process(1, "rank 0", 0), process(2, "rank 1", 500)]);
    let details = "kernel=kernel site=launch.rs:2:2 thread=main";
    let [first, second] = [1, 2].map(|number: u64| number << 40 ^ 1);
    let expected = [
        format!("rank 0/host/main launch \"launch kernel\" [{first}] {details} from 20 until 20"),
        format!("rank 0/gpu/stream 0 kernel \"kernel\" [{first}] {details} from 30 until 40"),
        format!(
            "rank 1/host/main launch \"launch kernel\" [{second}] {details} from 520 until 520"
        ),
        format!("rank 1/gpu/stream 0 kernel \"kernel\" [{second}] {details} from 530 until 540"),
    ];
    assert_eq!(events(&trace), expected);
    let packets = &Fields::of(&trace).bytes[&1];
    let tracks = packets.iter().map(|packet| Fields::of(packet));
    let tracks = tracks.filter(|packet| packet.bytes.contains_key(&60));
    let processes = tracks.map(|packet| packet.message(60)).filter(|it| it.bytes.contains_key(&3));
    let processes: Vec<_> = processes.map(|track| track.message(3)).collect();
    let named: Vec<_> = processes.iter().map(|it| (it.number(1), it.text(6))).collect();
    assert_eq!(named, [(1, "rank 0".to_owned()), (2, "rank 1".to_owned())]);
}

/// The same copy on a stream is joined with its launch only if the records have the launch.
#[test]
fn a_copy_for_a_launch_that_is_forgotten_has_no_arrow() {
    let copy = Copy { launch: Some(3), ..Copy::UP };
    let document = Document { records: vec![copy.record()], ..Document::default() };
    assert!(events(&perfetto::trace(&document)).iter().all(|event| event.contains(" [] ")));
}

#[test]
fn each_kind_of_record_has_its_fields_in_json() {
    let document = Document { records: records(), ..Document::default() };
    let json = document.to_json();
    let here = r#""thread": "main", "device": "gpu""#;
    let array = r#""array": 1, "name": "x""#;
    let memory = format!(r#"{here}, "site": "memory.rs:8:8", "bytes": 400, {array}}}"#);
    let message = r#""thread": "main", "device": "host", "site": "send.rs:5:5", "name": "x", "#;
    let expected = [
        format!(
            r#"{{"kind": "copy", "queued_ns": 5, "started_ns": null, "finished_ns": null, {here}, "#
        ) + &format!(r#""stream": 0, "site": "copy.rs:1:1", {array}, "direction": "to_device", "#)
            + r#""source": null, "bytes": 100, "padding": 4, "cause": "launch", "#
            + r#""stale_since": null, "launch": null, "use_number": null, "changed_bytes": null, "#
            + r#""host_ns": null, "is_pageable": false, "contents_hash": null}"#,
        format!(
            r#"{{"kind": "copy", "queued_ns": 22, "started_ns": 23, "finished_ns": 29, {here}, "#
        ) + &format!(r#""stream": 2, "site": "copy.rs:1:1", {array}, "#)
            + r#""direction": "between_devices", "source": "other", "bytes": 100, "padding": 4, "#
            + r#""cause": "launch", "stale_since": "stale.rs:9:9", "launch": 7, "use_number": 0, "#
            + r#""changed_bytes": 5, "host_ns": 6, "is_pageable": true, "#
            + r#""contents_hash": null}"#,
        r#"{"kind": "launch", "id": 7, "called_ns": 20, "queued_ns": 25, "started_ns": 31, "#
            .to_owned()
            + &format!(r#""finished_ns": 35, {here}, "stream": 0, "site": "launch.rs:2:2", "#)
            + r#""name": "kernel", "arguments": [{"array": 1, "access": "in_out", "#
            + r#""is_whole": true, "use_number": 1, "changed_bytes": null}]}"#,
        format!(r#"{{"kind": "wait", "queued_ns": 30, "finished_ns": 36, {here}, "stream": 0, "#)
            + r#""site": "wait.rs:3:3", "reason": "synchronize"}"#,
        format!(r#"{{"kind": "allocation", "queued_ns": 40, {memory}"#),
        format!(r#"{{"kind": "eviction", "queued_ns": 50, {memory}"#),
        format!(r#"{{"kind": "discard", "queued_ns": 60, {memory}"#),
        format!(r#"{{"kind": "access", "queued_ns": 70, {here}, "site": "access.rs:4:4", "#)
            + &format!(r#"{array}, "access": "in", "is_whole": true, "use_number": 3}}"#),
        r#"{"kind": "access", "queued_ns": 0, "thread": "main", "device": null, "#.to_owned()
            + r#""site": "access.rs:4:4", "#
            + &format!(r#"{array}, "access": "out", "is_whole": true, "use_number": 4}}"#),
        format!(r#"{{"kind": "message", "queued_ns": 90, "waited_ns": 0, {message}"#)
            + r#""direction": "sent", "peer": 2, "bytes": 100, "cause": "mpi"}"#,
        format!(r#"{{"kind": "message", "queued_ns": 95, "waited_ns": 10, {message}"#)
            + r#""direction": "received", "peer": 3, "bytes": 100, "cause": "mpi"}"#,
        r#"{"kind": "barrier", "queued_ns": 99, "waited_ns": 20, "thread": "main", "#.to_owned()
            + r#""site": "barrier.rs:6:6", "number": 4}"#,
    ];
    let records = format!(r#""records": [{}]"#, expected.join(", "));
    assert!(json.contains(&records), "{json}\n{records}");
}

/// A document with one value in each list but the records.
fn one_of_each() -> Document {
    let flow = |count| Flow { count, bytes: 10 * count };
    Document {
        waits: Waits { count: 2, nanoseconds: 20 },
        to_device: flow(1),
        avoided: flow(3),
        launches: 4,
        records_forgotten: 5,
        sites: vec![DocumentSite {
            site: "a.rs:1:1".to_owned(),
            array: "x".to_owned(),
            direction: "to_host".to_owned(),
            device: "gpu".to_owned(),
            source: Some("other".to_owned()),
            cause: "host".to_owned(),
            count: 6,
            bytes: 7,
            stale_since: Some("b.rs:2:2".to_owned()),
            never_there: true,
            peer: Some(9),
        }],
        streams: vec![DocumentStream {
            device: "gpu".to_owned(),
            stream: None,
            to_device: flow(1),
            to_host: flow(2),
            between_devices: flow(3),
        }],
        arrays: vec![DocumentArray {
            id: 8,
            name: "x".to_owned(),
            element: "f32".to_owned(),
            shape: vec![2, 3],
        }],
        findings: vec![DocumentFinding {
            kind: "bounce".to_owned(),
            message: "it does".to_owned(),
            change: "stop it".to_owned(),
            sites: vec!["a.rs:1:1".to_owned(), "b.rs:2:2".to_owned()],
            array: None,
            count: 1,
            bytes: 2,
            nanoseconds: Some(3),
            host_memory_bytes: 4,
        }],
        checked: Some(vec![DocumentChecked {
            kernel: "blur".to_owned(),
            launches: 4,
            accesses: 5,
            errors: 1,
            notes: 2,
        }]),
        process: Some(process()),
        written_unix_ns: 77,
        memory: vec![memory_use()],
        ..Document::default()
    }
}

fn process() -> DocumentProcess {
    DocumentProcess {
        program: Some("/bin/a".to_owned()),
        arguments: Some(vec!["-b".to_owned()]),
        id: 6,
        started_unix_ns: None,
        library_version: "0.1.0".to_owned(),
    }
}

fn memory_use() -> DocumentMemoryUse {
    let holder = DocumentMemoryHolder { array: "x".to_owned(), site: None, count: 5, bytes: 4 };
    DocumentMemoryUse {
        device: "gpu".to_owned(),
        before: 1,
        in_use: 2,
        peak: DocumentMemoryMoment { at_ns: 3, bytes: 4, refused: None, holders: vec![holder] },
        out_of_memory: None,
        series: vec![DocumentMemoryPoint { at_ns: 3, bytes: 4 }],
    }
}

#[test]
fn totals_sites_streams_arrays_and_findings_have_their_fields_in_json() {
    let json = one_of_each().to_json();
    let flow = |count: u64| format!(r#"{{"count": {count}, "bytes": {}}}"#, 10 * count);
    let (one, two, three) = (flow(1), flow(2), flow(3));
    for expected in [
        format!(r#""to_device": {one}"#),
        format!(r#""avoided": {three}"#),
        r#""launches": 4, "waits": {"count": 2, "nanoseconds": 20}"#.to_owned(),
        r#""records_forgotten": 5"#.to_owned(),
        r#""sites": [{"site": "a.rs:1:1", "array": "x", "direction": "to_host", "#.to_owned()
            + r#""device": "gpu", "source": "other", "cause": "host", "count": 6, "bytes": 7, "#
            + r#""stale_since": "b.rs:2:2", "never_there": true, "peer": 9}]"#,
        format!(r#""streams": [{{"device": "gpu", "stream": null, "to_device": {one}, "#)
            + &format!(r#""to_host": {two}, "between_devices": {three}}}]"#),
        r#""arrays": [{"id": 8, "name": "x", "element": "f32", "shape": [2, 3]}]"#.to_owned(),
        r#""findings": [{"kind": "bounce", "message": "it does", "change": "stop it", "#.to_owned()
            + r#""sites": ["a.rs:1:1", "b.rs:2:2"], "array": null, "count": 1, "bytes": 2, "#
            + r#""nanoseconds": 3, "host_memory_bytes": 4}]"#,
        r#""checked": [{"kernel": "blur", "launches": 4, "accesses": 5, "errors": 1, "#.to_owned()
            + r#""notes": 2}]"#,
        r#""process": {"program": "/bin/a", "arguments": ["-b"], "id": 6, "#.to_owned()
            + r#""started_unix_ns": null, "library_version": "0.1.0"}, "written_unix_ns": 77"#,
        r#""memory": [{"device": "gpu", "before": 1, "in_use": 2, "peak": {"at_ns": 3, "#
            .to_owned()
            + r#""bytes": 4, "refused": null, "holders": [{"array": "x", "site": null, "#
            + r#""count": 5, "bytes": 4}]}, "out_of_memory": null, "#
            + r#""series": [{"at_ns": 3, "bytes": 4}]}]"#,
    ] {
        assert!(json.contains(&expected), "{json}\n{expected}");
    }
}
