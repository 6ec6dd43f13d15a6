//! The race check: the hazards that it reports, the accesses that it accepts, the histories that it
//! drops.

use std::ops::Range;
use std::sync::Arc;

use smallvec::smallvec;

use super::fixtures::{
    Accepting, HostBytes, allocate, body, contents, contiguous, copy, depending, download,
    entered_gate, exchange, fill, finish, flat, gate, increment, label, launch, log_of, queue_of,
    seeded, upload,
};
use crate::{EmbeddedDevice, Emulation, Hazard, HazardKind, Touch};
use resident_backend::{
    Address, Backend, FailureKind, Footprint, MappedMemory, Memory, PackedArray, PinnedOptions,
    Position, RawStream, Work, failure,
};
use resident_core::Access;

struct TwoStreams {
    device: Arc<EmbeddedDevice>,
    one: Arc<dyn RawStream>,
    two: Arc<dyn RawStream>,
    address: Address,
}

/// Two streams, and 64 bytes of device memory, written by a completed upload.
fn two_streams() -> TwoStreams {
    let device = seeded(1);
    let (one, two) = (queue_of(&device), device.new_stream(None).unwrap());
    let address = one.allocate(64, &label("\"photo\"")).unwrap();
    one.queued(upload(&HostBytes::new([1; 64]), address, 64));
    finish(&one);
    TwoStreams { device, one, two, address }
}

impl TwoStreams {
    fn hazards(&self) -> Vec<Hazard> {
        log_of(&self.device).hazards()
    }

    /// The kinds of the hazards, and the bytes in which the uses conflict.
    fn found(&self) -> Vec<(HazardKind, Range<u64>)> {
        found_on(&self.device)
    }

    fn kinds(&self) -> Vec<HazardKind> {
        self.hazards().iter().map(|hazard| hazard.kind).collect()
    }
}

fn found_on(device: &Arc<EmbeddedDevice>) -> Vec<(HazardKind, Range<u64>)> {
    log_of(device).hazards().into_iter().map(|hazard| (hazard.kind, hazard.bytes)).collect()
}

#[test]
fn two_unordered_writes_are_a_hazard_that_names_both() {
    let streams = two_streams();
    streams.one.launched(&increment(), &[(streams.address, 64, Access::ReadWrite)]);
    streams.two.queued(fill(streams.address, contiguous(16, 8), &[0]));
    let hazards = streams.hazards();
    assert_eq!(hazards.len(), 1);
    let (hazard, earlier) = (&hazards[0], hazards[0].earlier.as_ref().unwrap());
    assert_eq!((hazard.kind, hazard.bytes.clone()), (HazardKind::Unordered, 16..24));
    assert_eq!(
        (earlier.name.as_ref(), earlier.stream, earlier.position, earlier.touch),
        ("kernel \"increment\"", 0, 2, Touch::Writes)
    );
    assert_eq!(
        (hazard.operation.name.as_ref(), hazard.operation.stream, hazard.operation.position),
        ("fill", 1, 1)
    );
    let text = hazard.to_string();
    assert!(text.contains("writes and fill (cpu:"), "{text}");
    assert!(
        text.contains("bytes 16..24 of \"photo\" on cpu:")
            && text.ends_with(", and nothing orders them"),
        "{text}"
    );
}

#[test]
fn order_is_by_stream_event_or_completion() {
    let streams = two_streams();
    let write = || launch(&increment(), &[(streams.address, 64, Access::ReadWrite)]);
    streams.one.queued(write());
    streams.one.queued(write());
    streams.two.follow(&streams.one);
    streams.two.queued(write());
    finish(&streams.two);
    streams.one.queued(write());
    assert!(streams.kinds().is_empty(), "{:?}", streams.hazards());
    // An event does not order work submitted after it: the second stream waits for an event before
    // this write.
    streams.two.follow(&streams.one);
    streams.one.queued(write());
    streams.two.queued(write());
    assert_eq!(streams.kinds(), [HazardKind::Unordered]);
}

#[test]
fn order_is_transitive_across_streams() {
    let streams = two_streams();
    let three = streams.device.new_stream(None).unwrap();
    streams.one.queued(fill(streams.address, contiguous(0, 64), &[2]));
    three.follow(&streams.one);
    streams.two.follow(&three);
    streams.two.queued(fill(streams.address, contiguous(0, 64), &[3]));
    assert!(streams.kinds().is_empty());
}

#[test]
fn reads_and_disjoint_accesses_do_not_conflict() {
    let streams = two_streams();
    let columns = |offset_bytes| Footprint { offset_bytes, run_bytes: 4, axes: smallvec![(8, 8)] };
    streams.one.queued(fill(streams.address, columns(0), &[2]));
    streams.two.queued(fill(streams.address, columns(4), &[3]));
    assert!(streams.kinds().is_empty(), "interleaved columns share no byte");
    streams.two.queued(fill(
        streams.address,
        Footprint { offset_bytes: 12, run_bytes: 4, axes: smallvec![(2, 12)] },
        &[3],
    ));
    assert_eq!(streams.found(), [(HazardKind::Unordered, 24..28)]);
    let streams = two_streams();
    let look = body("look", |_| ());
    streams.one.launched(&look, &[(streams.address, 64, Access::Read)]);
    streams.two.launched(&look, &[(streams.address, 64, Access::Read)]);
    streams.two.queued(download(streams.address, &HostBytes::new([0; 64]), 64));
    assert!(streams.kinds().is_empty());
    streams.two.queued(fill(streams.address, contiguous(0, 1), &[0]));
    assert_eq!(streams.kinds(), [HazardKind::Unordered], "the other stream's read is pending");
}

#[test]
fn host_memory_is_checked_too() {
    let streams = two_streams();
    let (host, other) = (HostBytes::new([0; 64]), allocate(&streams.two, 64).unwrap());
    streams.one.queued(download(streams.address, &host, 64));
    streams.two.queued(upload(&host, other, 64));
    assert_eq!(streams.found(), [(HazardKind::Unordered, 0..64)]);
    assert_eq!(streams.hazards()[0].memory, "host memory of 64 bytes");
    let (streams, host) = (two_streams(), HostBytes::new([0; 64]));
    streams.one.queued(download(streams.address, &host, 64));
    let last = copy(
        "last",
        Memory::Device(streams.address),
        Memory::Host(Arc::<HostBytes>::clone(&host)),
        flat(8, 0, 56),
    );
    streams.two.queued(last);
    assert_eq!(streams.hazards()[0].bytes, 56..64);
}

#[test]
fn uses_of_mapped_memory_by_one_device_are_checked_against_those_by_another() {
    let kinds: [fn(&EmbeddedDevice) -> MappedMemory; 2] = [
        |device| device.allocate_mapped(64, PinnedOptions::default()).unwrap(),
        |device| device.allocate_managed(64).unwrap(),
    ];
    for allocate_in_place in kinds {
        let emulated = || seeded(1);
        let (one, two) = (emulated(), emulated());
        let (address, host) = allocate_in_place(&one);
        let (in_place, other) = (queue_of(&one), queue_of(&two));
        let to = allocate(&other, 16).unwrap();
        let part = [(Address(address.0 + 32), 32, Access::ReadWrite)];
        in_place.launched(&increment(), &part);
        let read = |start_bytes| {
            let (from, to) = (Memory::Host(Arc::clone(&host)), Memory::Device(to));
            copy("upload", from, to, flat(16, start_bytes, 0))
        };
        other.queued(read(16));
        assert_eq!(log_of(&two).hazards(), [], "the kernel has other bytes");
        other.queued(read(24));
        in_place.launched(&increment(), &part);
        assert_eq!(found_on(&two), [(HazardKind::Unordered, 32..40)]);
        assert_eq!(found_on(&one), [(HazardKind::Unordered, 0..8)], "of the argument");
        in_place.free(address).unwrap();
        assert_eq!(found_on(&one).len(), 1, "the copy keeps the host's memory");
        finish(&in_place);
        finish(&other);
        in_place.launched(&increment(), &part);
        assert_eq!(found_on(&one).last().unwrap().0, HazardKind::UseAfterFree);
    }
}

#[test]
fn devices_of_one_simulation_are_checked_together() {
    let (one, two) = (seeded(1), seeded(1));
    let (source, target) = (queue_of(&one), queue_of(&two));
    let (from, to) = (allocate(&source, 8).unwrap(), allocate(&target, 8).unwrap());
    source.queued(fill(from, contiguous(0, 8), &[1]));
    let exchange = || exchange(&one, from, to, flat(8, 0, 0));
    target.queued(Work::Copy(exchange()));
    let hazards = log_of(&two).hazards();
    assert_eq!((hazards.len(), hazards[0].kind), (1, HazardKind::Unordered), "{hazards:?}");
    assert_eq!(hazards[0].memory, format!("memory on cpu:{}", one.ordinal()));
    // Memory of a device without instruments is not tracked, so its accesses are not reported.
    let plain = EmbeddedDevice::plain();
    let stream = queue_of(&plain);
    let untracked = allocate(&stream, 8).unwrap();
    stream.queued(fill(untracked, contiguous(0, 8), &[6]));
    finish(&stream);
    finish(&target);
    let mut work = exchange();
    work.source = Memory::Device(untracked);
    work.source_device = Some(plain);
    target.queued(Work::Copy(work));
    assert_eq!(contents(&target, to, 8), [6; 8]);
    assert_eq!(log_of(&two).hazards().len(), 1);
}

#[test]
fn a_free_that_is_not_ordered_after_an_access_is_a_hazard() {
    let streams = two_streams();
    streams.one.queued(download(streams.address, &HostBytes::new([0; 64]), 64));
    streams.two.free(streams.address).unwrap();
    let hazards = streams.hazards();
    assert_eq!(
        (hazards.len(), hazards[0].kind, hazards[0].operation.touch),
        (1, HazardKind::Unordered, Touch::Frees)
    );
    let streams = two_streams();
    streams.one.queued(download(streams.address, &HostBytes::new([0; 64]), 64));
    streams.two.follow(&streams.one);
    streams.two.free(streams.address).unwrap();
    assert!(streams.kinds().is_empty());
}

#[test]
fn a_use_after_a_free_is_a_hazard_and_fails() {
    for finished in [false, true] {
        let streams = two_streams();
        streams.one.free(streams.address).unwrap();
        assert!(
            streams.one.free(streams.address).is_err(),
            "a second free is refused, queued or run"
        );
        if finished {
            finish(&streams.one);
        }
        let position = streams.one.queued(download(streams.address, &HostBytes::new([0; 64]), 64));
        let launched =
            streams.one.launched(&increment(), &[(streams.address, 64, Access::ReadWrite)]);
        assert_eq!(streams.kinds(), [HazardKind::UseAfterFree; 2]);
        let text = streams.hazards()[0].to_string();
        assert!(
            text.starts_with("free (cpu:")
                && text.contains("\"photo\"")
                && text.ends_with("which was freed before"),
            "{text}"
        );
        finish(&streams.one);
        assert_eq!(failure::at(streams.one.id(), position).unwrap().kind, FailureKind::Copy);
        assert_eq!(failure::at(streams.one.id(), launched).unwrap().kind, FailureKind::Contents);
        let again = streams.one.free(streams.address).unwrap_err();
        assert!(again.detail.contains("freed before"), "{again}");
    }
}

#[test]
fn work_out_of_range_is_a_hazard_and_fails() {
    let streams = two_streams();
    let copied = streams.one.queued(upload(&HostBytes::new([0; 65]), streams.address, 65));
    let inside = Address(streams.address.0 + 60);
    let launched = streams.one.launched(&increment(), &[(inside, 5, Access::ReadWrite)]);
    assert_eq!(streams.kinds(), [HazardKind::OutOfRange; 2]);
    assert!(streams.hazards()[0].to_string().contains("writes bytes 0..65 of \"photo\""));
    streams.one.launched(&increment(), &[(inside, 4, Access::ReadWrite)]);
    let unknown = streams.one.launched(&increment(), &[(Address(7), 4, Access::ReadWrite)]);
    assert_eq!(streams.kinds().len(), 3, "unknown memory is reported once");
    finish(&streams.one);
    for position in [copied, launched, unknown] {
        assert!(failure::at(streams.one.id(), position).is_some());
    }
    assert!(
        failure::at(streams.one.id(), Position(launched.0 + 1)).is_none(),
        "an address inside a block is valid"
    );
}

#[test]
fn an_origin_beyond_the_block_fails_the_launch() {
    let streams = two_streams();
    for (origin_bytes, fails) in [(64, false), (65, true)] {
        let Work::Launch(mut work) =
            launch(&body("look", |_| ()), &[(streams.address, 64, Access::Read)])
        else {
            unreachable!("a launch is a launch")
        };
        // The argument has no bytes, so only its start can be out of range.
        work.arguments.words[0] = 0;
        work.arguments.arrays[0].origin_bytes = origin_bytes;
        let position = streams.one.queued(Work::Launch(work));
        finish(&streams.one);
        assert_eq!(failure::at(streams.one.id(), position).is_some(), fails);
    }
}

#[test]
fn a_block_freed_under_running_work_is_not_reused() {
    let device = EmbeddedDevice::emulated(Emulation::new());
    let (one, two) = (queue_of(&device), device.new_stream(None).unwrap());
    let address = allocate(&one, 64).unwrap();
    let (entered, open, held) = entered_gate();
    one.launched(&held, &[(address, 64, Access::Overwrite)]);
    entered.recv().unwrap();
    two.free(address).unwrap();
    finish(&two);
    assert_eq!(
        (device.memory().in_use, device.memory().pooled),
        (0, 0),
        "the block stays with the running body"
    );
    drop(open);
    finish(&one);
    assert_eq!(log_of(&device).hazards()[0].operation.touch, Touch::Frees);
}

#[test]
fn work_that_has_run_does_not_conflict_while_it_is_dropped() {
    struct Successor {
        stream: Arc<dyn RawStream>,
        address: Address,
    }
    impl Drop for Successor {
        fn drop(&mut self) {
            self.stream.queued(fill(self.address, contiguous(0, 64), &[9]));
        }
    }
    let streams = two_streams();
    let successor = Successor { stream: Arc::clone(&streams.two), address: streams.address };
    let last = body("last", move |_| {
        let _held = &successor;
    });
    streams.one.launched(&last, &[(streams.address, 64, Access::Overwrite)]);
    drop(last);
    finish(&streams.one);
    finish(&streams.two);
    assert!(streams.kinds().is_empty(), "{:?}", streams.hazards());
    assert_eq!(contents(&streams.two, streams.address, 64), [9; 64]);
}

#[test]
fn a_read_of_bytes_never_written_is_a_hazard() {
    let streams = two_streams();
    let fresh = streams.one.allocate(64, &label("fresh")).unwrap();
    streams.one.queued(fill(fresh, contiguous(0, 32), &[1]));
    streams.one.queued(download(fresh, &HostBytes::new([0; 64]), 64));
    assert_eq!(streams.found(), [(HazardKind::NeverWritten, 32..64)]);
    assert!(streams.hazards()[0].to_string().contains("fresh on cpu:"));
    let overwrite = body("overwrite", |_| ());
    streams.one.launched(&overwrite, &[(fresh, 64, Access::Overwrite)]);
    streams.one.launched(&increment(), &[(fresh, 64, Access::ReadWrite)]);
    assert_eq!(streams.kinds().len(), 1, "an overwrite writes");
    let Work::Fill(mut poison) = fill(fresh, contiguous(8, 8), &[0xFF]) else {
        unreachable!("a fill is a fill")
    };
    poison.loss = FailureKind::Poison;
    streams.one.queued(Work::Fill(poison));
    streams.one.launched(&increment(), &[(fresh, 64, Access::ReadWrite)]);
    assert_eq!(streams.found()[1..], [(HazardKind::NeverWritten, 8..16)]);
}

#[test]
fn a_reused_block_counts_as_never_written() {
    let streams = two_streams();
    streams.one.free(streams.address).unwrap();
    finish(&streams.one);
    let again = allocate(&streams.one, 64).unwrap();
    assert_ne!(again, streams.address, "no address is given out twice");
    streams.one.queued(download(again, &HostBytes::new([0; 64]), 64));
    assert_eq!(streams.kinds(), [HazardKind::NeverWritten]);
}

#[test]
fn an_empty_array_needs_no_memory() {
    let streams = two_streams();
    let look = body("look", |views| assert_eq!(views[0].len(), 0));
    let Work::Launch(mut work) = launch(&look, &[(Address(0), 0, Access::Read)]) else {
        unreachable!("a launch is a launch")
    };
    let at_word = work.arguments.words.len() as u32;
    work.arguments.words.extend_from_slice(&[2, 0, 8, 8, 1]);
    let (address, access) = (Address(3), Access::Read);
    work.arguments.arrays.push(PackedArray {
        address,
        origin_bytes: 900,
        element_bytes: 1,
        at_word,
        is_flat: false,
        access,
    });
    let position = streams.one.queued(depending(Work::Launch(work), &[]));
    finish(&streams.one);
    assert!(failure::at(streams.one.id(), position).is_none() && streams.kinds().is_empty());
}

#[test]
fn emulated_devices_without_a_seed_find_hazards() {
    let device = EmbeddedDevice::emulated(Emulation::new());
    let (one, two) = (queue_of(&device), device.new_stream(None).unwrap());
    let address = allocate(&one, 8).unwrap();
    let (open, gate) = gate();
    one.launched(&gate, &[(address, 8, Access::Overwrite)]);
    // The bodies access no memory, so the test itself has no data race.
    two.launched(&body("race", |_| ()), &[(address, 8, Access::Overwrite)]);
    finish(&two);
    drop(open);
    finish(&one);
    let hazards = log_of(&device).hazards();
    assert_eq!(
        hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>(),
        [HazardKind::Unordered]
    );
}

/// One stream reads host memory, another device's stream waits for it, and a third stream writes
/// the memory after that: in order, whether or not the device in between has a race check.
#[test]
fn order_passes_through_devices_with_and_without_a_race_check() {
    let emulated = || EmbeddedDevice::emulated(Emulation::new());
    let seeded = seeded(9);
    for between in [EmbeddedDevice::plain(), emulated(), seeded] {
        let (reader, writer) = (emulated(), emulated());
        let streams = [&reader, &between, &writer].map(queue_of);
        let [reads, between, writes] = &streams;
        let (from, host) = (allocate(writes, 8).unwrap(), HostBytes::new([1; 8]));
        writes.queued(fill(from, contiguous(0, 8), &[2]));
        finish(writes);
        let (open, gate) = gate();
        reads.launched(&gate, &[]);
        let to = allocate(reads, 8).unwrap();
        reads.queued(upload(&host, to, 8));
        between.follow(reads);
        writes.follow(between);
        writes.queued(download(from, &host, 8));
        assert_eq!(log_of(&writer).hazards(), [], "{between:?} waits between the two");
        drop(open);
        finish(writes);
        assert_eq!(contents(reads, to, 8), [1; 8]);
        assert_eq!(host.bytes(), [2; 8]);
    }
}
