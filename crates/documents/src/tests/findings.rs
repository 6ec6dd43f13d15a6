//! Findings about copies and waits that could be cheaper: at their limits, and just below.

use std::ops::Range;

use super::samples::{
    Copy, Launch, access, argument, barrier, found, found_within, memory, message, numbered, only,
    wait,
};
use crate::document::DocumentRecord;

/// Copies of 4096 bytes, of which the n-th takes n ns more than 100.
fn small(count: u64, copy: Copy) -> Vec<DocumentRecord> {
    let timed = |n| Copy { bytes: 4096, times: Some((1000 * n, 1000 * n + 100 + n)), ..copy };
    numbered((0..count).map(timed))
}

#[test]
fn thirty_two_small_copies_of_one_call_could_be_one() {
    assert_eq!(found(small(31, Copy::UP)), []);
    let finding = only("small_copies", &found(small(32, Copy::UP)));
    assert_eq!((finding.count, finding.bytes), (31, 0));
    // The longest remains.
    assert_eq!(finding.nanoseconds, Some((0..31).map(|n| 100 + n).sum()));
    assert_eq!(finding.message, "32 copies of \"x\", 131_072 bytes together, are made one by one");
    assert!(finding.change.contains("`prefetch`"), "{}", finding.change);
    let down = only("small_copies", &found(small(32, Copy::DOWN)));
    assert!(down.change.contains("`host()`"), "{}", down.change);
    let untimed = (0..32).map(|_| Copy { times: None, ..Copy::DOWN });
    assert_eq!(only("small_copies", &found(numbered(untimed))).nanoseconds, None);
}

#[test]
fn larger_copies_and_those_of_other_calls_end_a_series() {
    for other in
        [Copy { bytes: 4097, ..Copy::UP }, Copy { site: "other.rs:1:1", ..Copy::UP }, Copy::DOWN]
    {
        let copies = |before, after| {
            let series = |count| std::iter::repeat_n(Copy::UP, count);
            found(numbered(series(before).chain([other]).chain(series(after))))
        };
        assert_eq!(copies(31, 31), []);
        assert_eq!(only("small_copies", &copies(31, 32)).count, 31);
        assert_eq!(only("small_copies", &copies(33, 31)).count, 32);
    }
}

/// Sixteen copies, a use, and sixteen more.
fn series_around(use_of_array: DocumentRecord) -> usize {
    let mut records = small(33, Copy::UP);
    records[16] = use_of_array;
    found(records).len()
}

#[test]
fn uses_on_a_device_end_a_series_of_small_copies_and_those_of_the_host_do_not() {
    let launch = Launch::of(&[argument(1, "in", 16)]).record();
    let on_device = |how| DocumentRecord::Access(access(Some("gpu"), how, 16));
    let on_host = |how| DocumentRecord::Access(access(None, how, 16));
    assert_eq!(series_around(launch), 0);
    assert_eq!(series_around(on_device("in_out")), 0);
    assert_eq!(series_around(on_device("in")), 1);
    assert_eq!(series_around(on_host("in_out")), 1);
    // A use of which the records do not know ends one: it may have changed the contents.
    assert_eq!(series_around(wait("contents", 0..1)), 0);
}

/// An upload of which this many bytes have changed, since `write.rs:5:5` wrote the array.
fn changed(bytes: u64, changed_bytes: u64) -> Copy {
    let stale_since = Some("write.rs:5:5");
    Copy { bytes, changed_bytes: Some(changed_bytes), stale_since, ..Copy::UP }
}

#[test]
fn an_eighth_of_4096_bytes_that_changed_is_few() {
    let few = |copy: Copy| found(vec![copy.record()]);
    let finding = only("few_changes", &few(changed(4096, 512)));
    assert_eq!((finding.count, finding.bytes), (0, 4096 - 512));
    // 10 ns for all bytes.
    assert_eq!(finding.nanoseconds, Some(10 * (4096 - 512) / 4096));
    assert_eq!(finding.sites, ["write.rs:5:5", "copy.rs:1:1"]);
    assert_eq!(few(changed(4096, 513)), []);
    assert_eq!(few(changed(4095, 1)), []);
    assert_eq!(few(Copy { stale_since: None, ..changed(4096, 512) }), []);
    assert_eq!(few(Copy { changed_bytes: None, ..changed(4096, 512) }), []);
    let two = found(numbered([changed(8000, 10), changed(4096, 20)]));
    assert_eq!(only("few_changes", &two).bytes, 7990 + 4076);
}

#[test]
fn a_copy_of_what_did_not_change_is_a_round_trip_whatever_its_size() {
    let unchanged = [changed(1, 0), changed(100, 0), changed(5000, 0)];
    let finding = only("round_trip", &found(numbered(unchanged)));
    assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (3, 5101, Some(30)));
    assert!(finding.message.contains("as it was, 3 times"), "{}", finding.message);
    // Those of which few bytes change are another finding, and the larger one is the first.
    let both = found(numbered([changed(5000, 0), changed(9000, 100)]));
    let kinds: Vec<&str> = both.iter().map(|finding| &*finding.kind).collect();
    assert_eq!(kinds, ["few_changes", "round_trip"]);
}

#[test]
fn four_copies_of_sixteen_mebibytes_from_pageable_memory() {
    const QUARTER: u64 = 4 << 20;
    let pageable = |count: u64, bytes| {
        let copy = Copy { bytes, is_pageable: true, host_ns: Some(7), ..Copy::UP };
        numbered((0..count).map(|_| copy))
    };
    let finding = only("pageable_copies", &found(pageable(4, QUARTER)));
    assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (0, 0, Some(28)));
    assert!(finding.message.starts_with("16_777_216 bytes of \"x\""), "{}", finding.message);
    assert_eq!(found(pageable(3, 2 * QUARTER)), []);
    assert_eq!(found(pageable(4, QUARTER - 1)), []);
    let pinned = Copy { bytes: QUARTER, ..Copy::UP };
    assert_eq!(found(numbered([pinned; 4])), []);
    let down = Copy { bytes: QUARTER, is_pageable: true, ..Copy::DOWN };
    assert_eq!(found(numbered([down; 4])), []);
    let elsewhere = Copy { site: "other.rs:1:1", is_pageable: true, ..pinned };
    let here = Copy { is_pageable: true, ..pinned };
    assert_eq!(found(numbered([here, here, elsewhere, elsewhere])), []);
}

/// A kernel on array 2 from 1000 to 2000 ns, and copies behind it, each with 25 ns of its own.
fn behind_a_kernel(copies: impl IntoIterator<Item = Copy>) -> Vec<DocumentRecord> {
    let kernel = Launch { times: Some((1000, 2000)), ..Launch::of(&[argument(2, "in_out", 0)]) };
    [vec![kernel.record()], numbered(copies)].concat()
}

fn serial(queued_ns: u64, times: Range<u64>) -> Copy {
    Copy { queued_ns, times: Some((times.start, times.end)), ..Copy::UP }
}

#[test]
fn four_copies_that_wait_for_a_kernel_for_a_twentieth_of_the_time() {
    let four = || behind_a_kernel([serial(1500, 2000..2025); 4]);
    let finding = only("serial_copy", &found_within(2000, four()));
    assert_eq!(finding.nanoseconds, Some(100));
    assert_eq!(finding.sites, ["copy.rs:1:1"]);
    assert!(finding.message.starts_with("4 copies of \"x\" wait"), "{}", finding.message);
    assert_eq!(found_within(2020, four()), [], "101 ns are a twentieth");
    let three = behind_a_kernel([serial(1500, 2000..2100); 3]);
    assert_eq!(found_within(2000, three), []);
}

#[test]
fn only_the_time_beside_the_kernel_could_be_saved() {
    let saved = |copy: Copy| {
        let found = found_within(0, behind_a_kernel([copy; 4]));
        found.first().map(|finding| finding.nanoseconds.expect("it is known") / 4)
    };
    // A copy that is longer than the rest of the kernel.
    assert_eq!(saved(serial(1990, 2000..2025)), Some(10));
    // One that was queued before the kernel ran.
    assert_eq!(saved(serial(10, 2000..2025)), Some(25));
    assert_eq!(saved(serial(10, 2000..5000)), Some(1000));
    // Not behind the kernel: queued when it was over, or run beside it.
    assert_eq!(saved(serial(2000, 2000..2025)), None);
    assert_eq!(saved(serial(1500, 1999..2025)), None);
    // Without a time, of the kernel's own array, and on another stream.
    assert_eq!(saved(Copy { times: None, ..serial(1500, 0..0) }), None);
    assert_eq!(saved(Copy { array: 2, ..serial(1500, 2000..2025) }), None);
    assert_eq!(saved(Copy { stream: 1, ..serial(1500, 2000..2025) }), None);
    assert_eq!(saved(serial(1500, 2000..2000)), None);
}

/// Rounds of a kernel of 10 ns, a wait for it, and `idle_ns` in which the stream has nothing to do;
/// one more kernel ends the last.
fn stalled(rounds: u64, idle_ns: u64, between: Option<DocumentRecord>) -> Vec<DocumentRecord> {
    let mut records = Vec::new();
    for round in 0..=rounds {
        let start = round * (10 + idle_ns);
        let launch = Launch { times: Some((start, start + 10)), ..Launch::of(&[]) };
        records.push(launch.record());
        if round < rounds {
            records.push(wait("synchronize", start + 5..start + 10));
            records.extend(between.clone());
        }
    }
    records
}

#[test]
fn eight_waits_that_leave_a_stream_idle_for_a_twentieth_of_the_time() {
    let finding = only("stalling_wait", &found_within(1600, stalled(8, 10, None)));
    assert_eq!((finding.nanoseconds, finding.sites), (Some(80), vec!["wait.rs:3:3".to_owned()]));
    assert!(finding.message.starts_with("the host waits 8 times"), "{}", finding.message);
    assert_eq!(found_within(1620, stalled(8, 10, None)), [], "81 ns are a twentieth");
    assert_eq!(found_within(0, stalled(7, 10, None)), []);
    assert_eq!(found_within(0, stalled(8, 0, None)), [], "the stream is never idle");
}

#[test]
fn waits_after_which_the_host_may_have_read_something_are_needed() {
    for needed in [
        Copy::DOWN.record(),
        Copy::UP.record(),
        Copy { stream: 1, ..Copy::DOWN }.record(),
        wait("contents", 0..1),
        wait("host_function", 0..1),
        // Another stream goes on.
        Launch { stream: 1, ..Launch::of(&[]) }.record(),
        DocumentRecord::Message(message("sent", 1, 0)),
        DocumentRecord::Barrier(barrier(0, 20)),
    ] {
        assert_eq!(found(stalled(20, 10, Some(needed.clone()))), [], "{needed:?}");
    }
    for other in [
        DocumentRecord::Allocation(memory("here", 1)),
        DocumentRecord::Access(access(None, "in_out", 0)),
    ] {
        only("stalling_wait", &found(stalled(8, 10, Some(other))));
    }
    // What came down before the wait may have been read before it.
    let mut read_before = stalled(20, 10, None);
    for at in (0..20).rev() {
        read_before.insert(2 * at + 1, Copy::DOWN.record());
    }
    assert_eq!(found(read_before), []);
}

#[test]
fn a_wait_for_work_that_is_not_the_last_leaves_the_stream_busy() {
    let mut records = stalled(8, 10, None);
    for record in &mut records {
        if let DocumentRecord::Wait { finished_ns, .. } = record {
            *finished_ns -= 1;
        }
    }
    assert_eq!(found(records), []);
}

#[test]
fn the_largest_finding_is_the_first_by_bytes_then_by_time_then_by_count() {
    let of = |array: u64, name, bytes, count: usize, length_ns| {
        let (site, times) = (Some("write.rs:5:5"), Some((0, length_ns)));
        let copy = Copy { array, name, stale_since: site, bytes, times, ..changed(bytes, 0) };
        numbered(std::iter::repeat_n(copy, count))
    };
    let records =
        [of(1, "a", 10, 1, 5), of(2, "b", 20, 1, 5), of(3, "c", 10, 1, 6), of(4, "d", 5, 2, 3)];
    let names: Vec<Option<String>> =
        found(records.concat()).into_iter().map(|finding| finding.array).collect();
    let names: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    // `c` and `d` are of 10 bytes and 6 ns, and `d` is of two copies.
    assert_eq!(names, ["b", "d", "c", "a"]);
}
