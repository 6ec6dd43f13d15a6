//! Traces for Perfetto, read back by a reader of protocol buffers that knows only the format.
//! `tests/python/perfetto_trace.py` reads one by the published schema.

use std::collections::{BTreeMap, BTreeSet};

use resident::{Result, audit};
use support::lab::lab;

use crate::{double, grid, ones, report_of};

/// The fields of a message.
#[derive(Debug, Default)]
struct Fields {
    numbers: BTreeMap<u64, Vec<u64>>,
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().expect("a complete number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Fields {
    let mut fields = Fields::default();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => fields.numbers.entry(key >> 3).or_default().push(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                let value = u64::from_le_bytes(value.try_into().expect("eight bytes"));
                fields.numbers.entry(key >> 3).or_default().push(value);
            }
            2 => {
                let len = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(len);
                bytes = rest;
                fields.bytes.entry(key >> 3).or_default().push(value.to_vec());
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

fn trace_of(report: &audit::Report) -> Fields {
    let thread = format!("{:?}", std::thread::current().id());
    let file = format!("resident-{}-{thread}.pftrace", std::process::id());
    let path = std::env::temp_dir().join(file);
    report.write_perfetto(&path).expect("a temporary file");
    let trace = fields(&std::fs::read(&path).expect("it was written"));
    std::fs::remove_file(path).expect("it was written");
    trace
}

#[test]
fn each_slice_begins_and_ends_on_a_described_track_and_arrows_have_two_ends() -> Result<()> {
    let device = lab();
    let stream = device.new_stream()?;
    let mut arrays = [1, 2, 3].map(|len| ones(100 * len));
    let report = report_of(|| {
        for array in &mut arrays {
            double().launch_on(&stream, grid(), (&mut *array,))?;
        }
        arrays.iter().try_for_each(|array| array.host().map(drop))
    })?;
    let trace = trace_of(&report);
    let (mut tracks, mut open) = (BTreeMap::new(), BTreeMap::<u64, i64>::new());
    let (mut flows, mut names) = (BTreeMap::<u64, usize>::new(), BTreeSet::new());
    let mut counters = BTreeMap::<Vec<u8>, Vec<u64>>::new();
    for packet in &trace.bytes[&1] {
        let packet = fields(packet);
        assert_eq!(packet.numbers[&10], [1], "the sequence");
        if let Some(descriptor) = packet.bytes.get(&60) {
            let descriptor = fields(&descriptor[0]);
            tracks.insert(descriptor.numbers[&1][0], descriptor.bytes[&2][0].clone());
            continue;
        }
        assert!(packet.numbers.contains_key(&8), "a time");
        let event = fields(&packet.bytes[&11][0]);
        let track = event.numbers[&11][0];
        assert!(tracks.contains_key(&track), "described before its events");
        if let Some(bytes) = event.numbers.get(&30) {
            counters.entry(tracks[&track].clone()).or_default().extend(bytes);
            continue;
        }
        *open.entry(track).or_default() += match event.numbers[&9][0] {
            1 => 1,
            2 => -1,
            _ => 0,
        };
        assert!((0..=1).contains(&open[&track]), "slices of a track do not overlap");
        for flow in event.numbers.get(&47).into_iter().flatten() {
            *flows.entry(*flow).or_default() += 1;
        }
        names.extend(event.bytes.get(&23).map(|name| name[0].clone()));
    }
    assert!(open.values().all(|open| *open == 0));
    assert_eq!(flows.len(), 3, "a launch each");
    assert!(flows.values().all(|ends| *ends == 3), "the call, the run and the upload: {flows:?}");
    let has = |name: &str| names.contains(name.as_bytes());
    assert!(has("double") && has("launch double"), "{names:?}");
    for direction in ["bytes to device", "bytes to host"] {
        assert_eq!(counters[direction.as_bytes()], [400, 1200, 2400], "three arrays");
    }
    assert_eq!(
        counters[&b"memory in use"[..]].iter().max(),
        Some(&2400),
        "they were there at once"
    );
    for expected in ["host", "link", "to device", "to host", "stream 1"] {
        assert!(tracks.values().any(|name| name == expected.as_bytes()), "{expected}");
    }
    Ok(())
}

#[test]
fn an_empty_capture_writes_a_trace_that_says_so() {
    let ((), report) = audit::capture(|| ());
    let trace = trace_of(&report);
    let events = trace.bytes[&1].iter().filter_map(|packet| {
        let event = fields(packet).bytes.get(&11)?[0].clone();
        fields(&event).bytes.get(&23).map(|name| name[0].clone())
    });
    let events: Vec<_> = events.collect();
    assert!(events.contains(&b"nothing was copied, launched or waited for".to_vec()), "{events:?}");
}
