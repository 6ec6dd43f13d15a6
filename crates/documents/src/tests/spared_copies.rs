//! Findings about copies that need not be made: loops, evictions, prefetches that nothing used, and
//! arguments that kernels never change.

use super::samples::{Copy, Launch, access, argument, found, memory, numbered, only};
use crate::document::{DocumentArgument, DocumentFinding, DocumentRecord};

const WRITER: &str = "host.rs:6:6";

/// Down for a call of the host that writes, and up again for that reason.
const ROUND: [Copy; 2] = [
    Copy { site: WRITER, times: Some((0, 3)), ..Copy::DOWN },
    Copy { stale_since: Some(WRITER), times: Some((0, 4)), ..Copy::UP },
];

#[test]
fn three_times_down_and_up_again_are_a_loop() {
    let rounds = |count: usize| found(numbered(std::iter::repeat_n(ROUND, count).flatten()));
    assert_eq!(rounds(2), []);
    let finding = only("bounce", &rounds(3));
    assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (6, 600, Some(21)));
    assert_eq!(finding.sites, [WRITER, "copy.rs:1:1"]);
    assert!(finding.message.contains("goes down from gpu"), "{}", finding.message);
}

#[test]
fn copies_that_the_program_asks_for_or_of_other_bytes_are_no_loop() {
    let [down, up] = ROUND;
    for other in [
        [Copy { cause: "explicit", ..down }, up],
        [down, Copy { cause: "prefetch", ..up }],
        [down, Copy { bytes: 99, ..up }],
        [down, Copy { stale_since: Some("other.rs:1:1"), ..up }],
        [down, Copy { stale_since: None, ..up }],
        [up, up],
        [down, down],
    ] {
        let records = numbered(std::iter::repeat_n(other, 3).flatten());
        assert!(found(records).iter().all(|finding| finding.kind != "bounce"));
    }
    for cause in ["launch", "host", "gpu"] {
        let caused = ROUND.map(|copy| Copy { cause, ..copy });
        only("bounce", &found(numbered([caused; 3].concat())));
    }
}

#[test]
fn uploads_that_only_an_eviction_made_necessary() {
    let evicted = |site| DocumentRecord::Eviction(memory(site, 100));
    let again = |stale_since| Copy { stale_since, ..Copy::UP }.record();
    let due = || again(Some("evict.rs:7:7"));
    let finding = only("evicted", &found(vec![evicted("evict.rs:7:7"), due()]));
    assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (1, 100, Some(10)));
    assert!(finding.message.contains("there again, once"), "{}", finding.message);
    // Each eviction has one upload.
    assert_eq!(only("evicted", &found(vec![evicted("evict.rs:7:7"), due(), due()])).count, 1);
    let elsewhere = |name: &str| {
        let mut memory = memory("evict.rs:7:7", 100);
        memory.device = name.to_owned();
        DocumentRecord::Eviction(memory)
    };
    for others in [
        vec![due()],
        vec![evicted("evict.rs:7:7"), again(Some("other.rs:1:1"))],
        vec![evicted("evict.rs:7:7"), again(None)],
        vec![elsewhere("another"), due()],
        vec![evicted("evict.rs:7:7"), Copy { direction: "to_host", ..Copy::UP }.record()],
    ] {
        assert_eq!(found(others), []);
    }
    let two = vec![elsewhere("another"), evicted("evict.rs:7:7"), due()];
    assert_eq!(only("evicted", &found(two)).count, 1);
}

const FREED: Copy = Copy { cause: "evict", stale_since: Some("launch.rs:9:9"), ..Copy::DOWN };

#[test]
fn write_backs_that_nothing_reads() {
    let finding = only("unread_write_back", &after(FREED, [used(None, "out")]));
    assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (1, 100, Some(10)));
    // Nothing is known of uses before it, except of the one that wrote the contents.
    assert_eq!(finding.sites, ["launch.rs:9:9", "copy.rs:1:1"]);
    assert_eq!(
        finding.message,
        "\"x\" is copied to the host when the memory on gpu is freed, and overwritten before \
         anything reads it"
    );
    let launched = || Launch::of(&[argument(1, "out", 1)]).record();
    only("unread_write_back", &after(FREED, [launched()]));
    let mut half = access(Some("gpu"), "out", 1);
    half.is_whole = false;
    let half = || DocumentRecord::Access(half.clone());
    let whole = |number| DocumentRecord::Access(access(None, "out", number));
    only("unread_write_back", &after(FREED, [half(), whole(2)]));
    // It may be read yet, has been read, or has uses that are not known.
    let down = Copy { use_number: Some(1), ..Copy::DOWN }.record();
    for next in [
        vec![],
        vec![half()],
        vec![used(None, "in"), whole(2)],
        vec![used(Some("gpu"), "in_out"), whole(2)],
        vec![down, whole(2)],
        vec![whole(2)],
    ] {
        assert_eq!(after(FREED, next), []);
    }
    let before = [used(None, "in"), Copy { use_number: Some(2), ..FREED }.record(), whole(3)];
    let found = found(before.to_vec());
    assert_eq!(only("unread_write_back", &found).sites, ["access.rs:4:4", "copy.rs:1:1"]);
    let up = Copy { direction: "to_device", ..FREED };
    let finding = only("unread_write_back", &after(up, [launched()]));
    assert!(finding.message.contains("to gpu when the memory on the host"), "{finding:?}");
}

const AHEAD: Copy = Copy { cause: "prefetch", ..Copy::UP };

const BACK: Copy = Copy { cause: "prefetch", ..Copy::DOWN };

fn after(copy: Copy, next: impl IntoIterator<Item = DocumentRecord>) -> Vec<DocumentFinding> {
    found(std::iter::once(copy.record()).chain(next).collect())
}

fn used(device: Option<&str>, how: &str) -> DocumentRecord {
    DocumentRecord::Access(access(device, how, 1))
}

#[test]
fn prefetches_that_are_overwritten_before_use() {
    let (gpu, host) = (Some("gpu"), None);
    for overwrite in [used(gpu, "out"), used(host, "out"), used(host, "in_out")] {
        let finding = only("overwritten_upload", &after(AHEAD, [overwrite]));
        assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (1, 100, Some(10)));
        assert!(finding.message.contains("is copied to gpu ahead of use"), "{}", finding.message);
    }
    let launched = Launch::of(&[argument(1, "out", 1)]).record();
    only("overwritten_upload", &after(AHEAD, [launched]));
    for overwrite in [used(gpu, "out"), used(host, "out"), used(gpu, "in_out")] {
        let finding = only("unread_download", &after(BACK, [overwrite]));
        assert!(finding.message.contains("is copied to the host"), "{}", finding.message);
        assert!(finding.change.contains("`prefetch_host`"), "{}", finding.change);
    }
}

#[test]
fn prefetches_that_something_may_have_read_are_needed() {
    let overwrite = |number| DocumentRecord::Access(access(Some("gpu"), "out", number));
    let read = used(Some("gpu"), "in");
    assert_eq!(after(AHEAD, [read, overwrite(2)]), []);
    assert_eq!(after(AHEAD, [used(Some("gpu"), "in_out"), overwrite(2)]), []);
    // A copy from there reads it.
    let down = Copy { use_number: Some(1), ..Copy::DOWN }.record();
    assert_eq!(after(AHEAD, [down, overwrite(2)]), []);
    // Uses that are not known may have read it.
    assert_eq!(after(AHEAD, [overwrite(5)]), []);
    let mut part = access(Some("gpu"), "out", 1);
    part.is_whole = false;
    assert_eq!(after(AHEAD, [DocumentRecord::Access(part), overwrite(2)]), []);
    // Of another cause, it was needed at once.
    assert_eq!(after(Copy::UP, [overwrite(1)]), []);
    // A copy to another device reads the copy that comes from there, and no other.
    let between = |source| Copy {
        direction: "between_devices",
        source: Some(source),
        use_number: Some(1),
        ..Copy::UP
    };
    assert_eq!(after(AHEAD, [between("gpu").record(), overwrite(2)]), []);
    only("overwritten_upload", &after(AHEAD, [between("other").record(), overwrite(2)]));
    // An upload reads the host's copy.
    let up = Copy { use_number: Some(1), ..Copy::UP }.record();
    assert_eq!(after(BACK, [up, overwrite(2)]), []);
    // What is read elsewhere is not.
    only("overwritten_upload", &after(AHEAD, [used(None, "in"), overwrite(2)]));
}

#[test]
fn snapshots_that_are_dropped_before_anybody_takes_them() {
    let snapshot = Copy { cause: "explicit", ..Copy::DOWN };
    let dropped = |site, bytes| DocumentRecord::Discard(memory(site, bytes));
    let finding = only("unread_download", &after(snapshot, [dropped("copy.rs:1:1", 100)]));
    assert_eq!(finding.message, "a snapshot of \"x\" is dropped before anybody takes it");
    assert_eq!(after(snapshot, [dropped("other.rs:1:1", 100)]), []);
    assert_eq!(after(snapshot, [dropped("copy.rs:1:1", 99)]), []);
    assert_eq!(after(snapshot, []), []);
    let up = Copy { cause: "explicit", ..Copy::UP };
    assert_eq!(after(up, [dropped("copy.rs:1:1", 100)]), []);
}

/// Rounds in which the host reads, and a kernel gets the array as `InOut` and changes so many
/// bytes; at first it is valid on both sides.
fn read_rounds(changes: &[Option<u64>]) -> Vec<DocumentRecord> {
    let mut records = Vec::new();
    for (round, changed_bytes) in (0_u16..).zip(changes) {
        let first = 3 * round;
        let inout =
            DocumentArgument { changed_bytes: *changed_bytes, ..argument(1, "in_out", first) };
        records.push(Launch::of(&[argument(9, "in", round), inout]).record());
        records.push(Copy { use_number: Some(first + 1), ..Copy::DOWN }.record());
        records.push(DocumentRecord::Access(access(None, "in", first + 2)));
    }
    records
}

#[test]
fn an_argument_that_three_launches_do_not_change() {
    assert_eq!(found(read_rounds(&[Some(0); 2])), []);
    let finding = only("unchanged_argument", &found(read_rounds(&[Some(0); 3])));
    assert!(finding.message.starts_with("array argument 1 of kernel"), "{}", finding.message);
    assert!(finding.message.contains("and 3 launches"), "{}", finding.message);
    // If the kernel only read the array, what came down at first would stay.
    assert_eq!((finding.count, finding.bytes, finding.nanoseconds), (2, 200, Some(20)));
    assert_eq!(finding.sites, ["launch.rs:2:2", "copy.rs:1:1"]);
    assert_eq!(found(read_rounds(&[Some(0), Some(0), Some(0), Some(1)])), []);
    assert_eq!(found(read_rounds(&[Some(0), Some(0), Some(0), None])), []);
}

#[test]
fn prefetches_of_an_argument_that_nothing_changes_would_be_saved() {
    let mut records = vec![Copy { cause: "launch", ..Copy::UP }.record()];
    let inout = |number| {
        let argument = DocumentArgument { changed_bytes: Some(0), ..argument(1, "in_out", number) };
        Launch::of(&[argument]).record()
    };
    records.push(inout(1));
    for round in 0..3 {
        let first = 2 + 2 * round;
        records.push(Copy { use_number: Some(first), ..BACK }.record());
        records.push(inout(first + 1));
    }
    // After the upload both sides would have it for good.
    let found = found(records);
    let unchanged = found.iter().find(|finding| finding.kind == "unchanged_argument");
    let finding = unchanged.unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!((finding.count, finding.bytes), (3, 300));
}

#[test]
fn what_a_change_would_save_is_said_only_if_that_is_sure() {
    let with = |change: &dyn Fn(usize, &mut DocumentRecord)| {
        let mut records = read_rounds(&[Some(0); 3]);
        records.iter_mut().enumerate().for_each(|(index, record)| change(index, record));
        found(records)
    };
    only("unchanged_argument", &with(&|_, _| ()));
    // Parts, other causes, other numbers of bytes, and uses that are not known.
    type Change<'c> = (&'c str, &'c dyn Fn(usize, &mut DocumentRecord));
    let changes: [Change<'_>; 4] = [
        ("a part", &|_, record| {
            if let DocumentRecord::Launch { arguments, .. } = record {
                arguments[1].is_whole = false;
            }
        }),
        ("a cause", &|index, record| {
            if let (4, DocumentRecord::Copy { cause, .. }) = (index, record) {
                *cause = "explicit".to_owned();
            }
        }),
        ("a number of bytes", &|index, record| {
            if let (4, DocumentRecord::Copy { bytes, .. }) = (index, record) {
                *bytes += 1;
            }
        }),
        ("a use", &|index, record| {
            if let (4, DocumentRecord::Copy { use_number, .. }) = (index, record) {
                *use_number = Some(77);
            }
        }),
    ];
    for (name, change) in changes {
        assert_eq!(with(change), [], "{name}");
    }
    // A copy that nothing in the records needed.
    let mut more = read_rounds(&[Some(0); 3]);
    more.push(Copy { use_number: Some(9), ..Copy::DOWN }.record());
    assert_eq!(found(more), []);
    let mut evicted = read_rounds(&[Some(0); 3]);
    evicted.push(DocumentRecord::Eviction(memory("evict.rs:7:7", 100)));
    assert_eq!(found(evicted), []);
    // The array as two arguments of one launch.
    let mut twice = read_rounds(&[Some(0); 3]);
    if let DocumentRecord::Launch { arguments, .. } = &mut twice[0] {
        arguments[0].array = 1;
        arguments[0].use_number = Some(0);
    }
    assert_eq!(found(twice), []);
}
