//! Copies and fills, in all directions and numbers of axes, compared with loops over single bytes.

use std::sync::Arc;

use smallvec::smallvec;

use super::fixtures::{
    Accepting, HostBytes, Random, allocate, contents, contiguous, copy, download, exchange, fill,
    finish, flat, log_of, queue_of, seeded, upload,
};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::{
    BackendErrorKind, CopyBox, FailureKind, Footprint, Memory, RawStream, Work, failure,
};

const LEN_BYTES: u64 = 4096;

/// A random box with up to five axes, dense or with gaps, that fits `LEN_BYTES` bytes of source and
/// destination.
fn random_part(random: &mut Random) -> CopyBox {
    let run_bytes = 1 + random.below(9);
    let mut part = flat(run_bytes, 0, 0);
    let (mut source_bytes, mut destination_bytes) = (run_bytes, run_bytes);
    for _ in 0..random.below(6) {
        let count = 1 + random.below(3);
        let (source_stride, destination_stride) =
            (source_bytes + random.below(3), destination_bytes + random.below(3));
        part.axes.insert(0, (count, source_stride, destination_stride));
        source_bytes += (count - 1) * source_stride;
        destination_bytes += (count - 1) * destination_stride;
    }
    part.source_offset_bytes = random.below(LEN_BYTES - source_bytes);
    part.destination_offset_bytes = random.below(LEN_BYTES - destination_bytes);
    part
}

/// The naive loop: every combination of indices, byte by byte.
fn copy_slowly(source: &[u8], destination: &mut [u8], part: &CopyBox) {
    let total: u64 = part.axes.iter().map(|axis| axis.0).product();
    for mut number in 0..total {
        let (mut from, mut to) = (part.source_offset_bytes, part.destination_offset_bytes);
        for (count, source_stride, destination_stride) in part.axes.iter().rev() {
            from += number % count * source_stride;
            to += number % count * destination_stride;
            number /= count;
        }
        for byte in 0..part.run_bytes {
            destination[(to + byte) as usize] = source[(from + byte) as usize];
        }
    }
}

fn random_bytes(random: &mut Random) -> Vec<u8> {
    (0..LEN_BYTES).map(|_| random.below(256) as u8).collect()
}

#[test]
fn copies_in_all_directions_match_a_naive_loop() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let stream = queue_of(&device);
        let rounds = if cfg!(miri) { 4 } else { 200 };
        for seed in 0..rounds {
            let random = &mut Random::new(seed);
            let (source, destination) = (random_bytes(random), random_bytes(random));
            let part = random_part(random);
            let mut expected = destination.clone();
            copy_slowly(&source, &mut expected, &part);
            for direction in 0..4 {
                assert_eq!(
                    copied(&stream, direction, &source, &destination, &part),
                    expected,
                    "direction {direction} of seed {seed}"
                );
            }
        }
    }
}

/// Copies from host to device, device to host, device to device or host to host, and reads the
/// destination back.
fn copied(
    stream: &Arc<dyn RawStream>,
    direction: u32,
    source: &[u8],
    destination: &[u8],
    part: &CopyBox,
) -> Vec<u8> {
    let (source_cells, destination_cells) =
        (HostBytes::new(source.to_vec()), HostBytes::new(destination.to_vec()));
    let (source_address, destination_address) =
        (allocate(stream, LEN_BYTES).unwrap(), allocate(stream, LEN_BYTES).unwrap());
    stream.queued(upload(&source_cells, source_address, LEN_BYTES));
    stream.queued(upload(&destination_cells, destination_address, LEN_BYTES));
    let host = |cells: &Arc<HostBytes>| Memory::Host(Arc::<HostBytes>::clone(cells));
    let from = if direction.is_multiple_of(2) {
        host(&source_cells)
    } else {
        Memory::Device(source_address)
    };
    let to =
        if direction < 2 { Memory::Device(destination_address) } else { host(&destination_cells) };
    stream.queued(copy("copy", from, to, part.clone()));
    let result = if direction < 2 {
        contents(stream, destination_address, LEN_BYTES)
    } else {
        host_contents(stream, &destination_cells)
    };
    stream.free(source_address).unwrap();
    stream.free(destination_address).unwrap();
    result
}

fn host_contents(stream: &Arc<dyn RawStream>, cells: &HostBytes) -> Vec<u8> {
    finish(stream);
    cells.bytes()
}

#[test]
fn copies_between_devices_match_a_naive_loop() {
    let devices = [seeded(1), seeded(1)];
    let streams = [queue_of(&devices[0]), queue_of(&devices[1])];
    let random = &mut Random::new(5);
    let (source, destination) = (random_bytes(random), random_bytes(random));
    let (from, to) =
        (allocate(&streams[0], LEN_BYTES).unwrap(), allocate(&streams[1], LEN_BYTES).unwrap());
    streams[0].queued(upload(&HostBytes::new(source.clone()), from, LEN_BYTES));
    streams[1].queued(upload(&HostBytes::new(destination.clone()), to, LEN_BYTES));
    let part = random_part(random);
    streams[1].follow(&streams[0]);
    let work = exchange(&devices[0], from, to, part.clone());
    streams[1].queued(Work::Copy(work));
    let mut expected = destination;
    copy_slowly(&source, &mut expected, &part);
    assert_eq!(contents(&streams[1], to, LEN_BYTES), expected);
    assert!(devices.iter().all(|device| log_of(device).hazards().is_empty()));
}

#[test]
fn a_copy_of_several_parts_copies_each() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let address = allocate(&stream, 8).unwrap();
    stream.queued(fill(address, contiguous(0, 8), &[0]));
    let source = HostBytes::new(1..=8);
    let Work::Copy(mut work) = upload(&source, address, 2) else {
        unreachable!("an upload is a copy")
    };
    work.parts = smallvec![flat(2, 0, 6), flat(1, 7, 0)];
    stream.queued(Work::Copy(work));
    assert_eq!(contents(&stream, address, 8), [8, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn fills_repeat_the_pattern_in_each_run() {
    let stream = queue_of(&EmbeddedDevice::plain());
    for pattern in [&[7_u8][..], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
        let run_bytes = pattern.len() as u64 * 3;
        let address = allocate(&stream, LEN_BYTES).unwrap();
        stream.queued(fill(address, contiguous(0, LEN_BYTES), &[0]));
        let footprint = Footprint {
            offset_bytes: 5,
            run_bytes,
            axes: smallvec![(2, 1000), (3, run_bytes + 1)],
        };
        stream.queued(fill(address, footprint, pattern));
        let mut expected = vec![0; LEN_BYTES as usize];
        for (row, column) in (0..2).flat_map(|row| (0..3).map(move |column| (row, column))) {
            let start = 5 + row * 1000 + column * (run_bytes as usize + 1);
            (0..run_bytes as usize)
                .for_each(|byte| expected[start + byte] = pattern[byte % pattern.len()]);
        }
        assert_eq!(contents(&stream, address, LEN_BYTES), expected, "pattern {pattern:?}");
    }
}

#[test]
fn a_large_fill_is_filled_to_the_end() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let address = allocate(&stream, 99_999).unwrap();
    stream.queued(fill(address, contiguous(0, 99_999), &[1, 2, 3]));
    assert!(contents(&stream, address, 99_999).chunks(3).all(|chunk| chunk == [1, 2, 3]));
}

#[test]
fn work_out_of_range_is_refused_or_fails_and_touches_nothing() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let address = allocate(&stream, 8).unwrap();
    stream.queued(upload(&HostBytes::new(1..=8), address, 8));
    let refused = stream.submit(upload(&HostBytes::new([0; 7]), address, 8)).unwrap_err();
    assert!(
        matches!(refused.kind, BackendErrorKind::Driver { .. })
            && refused.detail.contains("host memory that has 7"),
        "{refused}"
    );
    let overflowing = CopyBox { axes: smallvec![(u64::MAX, u64::MAX, 1)], ..flat(1, 0, 0) };
    let source = Memory::Host(HostBytes::new([0; 16]));
    stream.submit(copy("huge", source, Memory::Device(address), overflowing)).unwrap_err();
    let late = stream.queued(upload(&HostBytes::new([0; 16]), address, 9));
    stream.queued(fill(address, contiguous(4, 6), &[0, 0]));
    stream.submit(fill(address, contiguous(0, 3), &[0, 0])).unwrap_err();
    stream.submit(fill(address, contiguous(0, 3), &[])).unwrap_err();
    let target = HostBytes::new([0; 16]);
    let beyond = stream.queued(download(address, &target, 9));
    assert_eq!(contents(&stream, address, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(target.bytes(), [0; 16]);
    assert!(failure::at(stream.id(), beyond).is_some(), "the copy reads beyond the block");
    let record = failure::at(stream.id(), late).expect("the copy leaves the block");
    assert_eq!(
        (record.kind, record.operation.as_str(), record.inherited),
        (FailureKind::Copy, "upload", false)
    );
    assert!(
        failure::at(stream.id(), resident_backend::Position(late.0 + 1)).is_some(),
        "the fill leaves the block"
    );
}

#[test]
fn empty_parts_are_in_range_everywhere() {
    let stream = queue_of(&EmbeddedDevice::plain());
    let address = allocate(&stream, 8).unwrap();
    let nothing = CopyBox { axes: smallvec![(0, 8, 8), (4, 2, 2)], ..flat(1, 100, 100) };
    let position = stream.queued(copy(
        "nothing",
        Memory::Host(HostBytes::new([1; 4])),
        Memory::Device(address),
        nothing,
    ));
    finish(&stream);
    assert!(failure::at(stream.id(), position).is_none());
}
