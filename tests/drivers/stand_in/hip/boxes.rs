//! Copies of ranges and of boxes, between all kinds of memory, and fills.

use resident_stand_in_hip::Settings;
use support::in_own_process;

use super::api::{Hip, at, at_mut, load, ok, with_stream};

const INVALID_VALUE: u32 = 1;
const INVALID_PITCH: u32 = 12;
const INVALID_DEVICE: u32 = 101;
const INVALID_DIRECTION: u32 = 21;

/// `hipMemcpyKind`.
const TO_DEVICE: u32 = 1;
const TO_HOST: u32 = 2;
const WITHIN_DEVICE: u32 = 3;
const ANY: u32 = 4;

fn numbers(len: u8) -> Vec<u8> {
    (0..len).collect()
}

#[test]
fn ranges_are_copied_in_all_directions() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let values = numbers(64);
    let one = hip.upload(&values, stream);
    let two = hip.memory(64);
    let mut back = vec![0_u8; 32];
    // SAFETY: the ranges lie in memory that lives until the wait ends.
    unsafe {
        ok((hip.hipMemcpyDtoDAsync)(two, one, 64, stream));
        ok((hip.hipMemcpyAsync)(two + 8, at(&values[40..]), 8, ANY, stream));
        ok((hip.hipMemcpyAsync)(at_mut(&mut back), two, 32, ANY, stream));
        ok((hip.hipStreamSynchronize)(stream));
    }
    assert_eq!(back, [&values[..8], &values[40..48], &values[16..32]].concat());
}

#[test]
fn wrong_ranges_and_directions_are_refused() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let values = numbers(64);
    let memory = hip.upload(&values, stream);
    // SAFETY: nothing is copied.
    unsafe {
        let copy = |to, from, len, kind| (hip.hipMemcpyAsync)(to, from, len, kind, stream);
        assert_eq!(copy(memory, at(&values), 65, TO_DEVICE), INVALID_VALUE, "too long");
        assert_eq!(copy(memory + 60, at(&values), 8, TO_DEVICE), INVALID_VALUE, "at the end");
        assert_eq!(copy(memory, at(&values), 8, TO_HOST), INVALID_VALUE, "not to the host");
        assert_eq!(copy(at(&values), memory, 8, WITHIN_DEVICE), INVALID_VALUE);
        assert_eq!(copy(memory, at(&values), 8, 5), INVALID_DIRECTION);
        assert_eq!(copy(memory, 0, 8, ANY), INVALID_VALUE);
        ok(copy(memory, at(&values), 0, TO_DEVICE));
        assert_eq!((hip.hipMemsetD32Async)(memory, 0, 17, stream), INVALID_VALUE, "too long");
    }
    assert_eq!(hip.download::<u8>(memory, 64, stream), values, "nothing changed");
}

#[test]
fn rows_are_copied_between_pitches() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let values = numbers(60);
    let memory = hip.upload(&[0_u8; 64], stream);
    let mut back = vec![0xEE_u8; 12];
    // SAFETY: the boxes lie in memory that lives until the wait ends.
    unsafe {
        // Rows of 3 bytes: 4 of them, from a matrix with 10 columns into one with 16.
        let two = hip.hipMemcpy2DAsync;
        ok(two(memory, 16, at(&values[2..]), 10, 3, 4, TO_DEVICE, stream));
        ok(two(at_mut(&mut back), 3, memory, 16, 3, 4, ANY, stream));
        ok((hip.hipStreamSynchronize)(stream));
        assert_eq!(two(memory, 2, at(&values), 10, 3, 4, TO_DEVICE, stream), INVALID_PITCH);
        assert_eq!(two(memory, 16, at(&values), 10, 3, 5, 9, stream), INVALID_DIRECTION);
        assert_eq!(two(memory, 21, at(&values), 10, 3, 4, ANY, stream), INVALID_VALUE, "outside");
    }
    assert_eq!(back, [2, 3, 4, 12, 13, 14, 22, 23, 24, 32, 33, 34]);
}

/// `hipMemcpy3DParms`: of each end its position, address, pitch, width and height.
fn parameters(
    source: ([u64; 3], [u64; 4]),
    destination: ([u64; 3], [u64; 4]),
    extent: [u64; 3],
    kind: u32,
) -> [u64; 20] {
    let mut words = vec![0];
    words.extend(source.0);
    words.extend(source.1);
    words.push(0);
    words.extend(destination.0);
    words.extend(destination.1);
    words.extend(extent);
    words.push(u64::from(kind));
    words.try_into().expect("twenty words")
}

#[test]
fn boxes_are_copied_in_three_dimensions() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    // 4 slices of 5 rows of 6 bytes.
    let values = numbers(120);
    let memory = hip.upload(&[0xFF_u8; 128], stream);
    let extent = [2, 2, 2];
    let source = ([1, 2, 1], [at(&values), 6, 6, 5]);
    // Slices of 4 rows of 8 bytes.
    let destination = ([3, 1, 0], [memory, 8, 8, 4]);
    let to_device = parameters(source, destination, extent, TO_DEVICE);
    // SAFETY: the boxes lie in memory that lives until the wait ends.
    unsafe {
        ok((hip.hipMemcpy3DAsync)(&raw const to_device, stream));
        let narrow = parameters(source, ([3, 1, 0], [memory, 4, 4, 4]), extent, TO_DEVICE);
        assert_eq!((hip.hipMemcpy3DAsync)(&raw const narrow, stream), INVALID_VALUE);
        let pitch = parameters(source, ([3, 1, 0], [memory, 8, 9, 4]), extent, TO_DEVICE);
        assert_eq!((hip.hipMemcpy3DAsync)(&raw const pitch, stream), INVALID_PITCH);
        let outside = parameters(source, ([3, 1, 3], [memory, 8, 8, 4]), extent, TO_DEVICE);
        assert_eq!((hip.hipMemcpy3DAsync)(&raw const outside, stream), INVALID_VALUE);
        let nothing = parameters(source, destination, [2, 0, 2], TO_DEVICE);
        ok((hip.hipMemcpy3DAsync)(&raw const nothing, stream));
    }
    let mut expected = [0xFF_u8; 128];
    for (slice, row, column) in (0..8).map(|n| (n / 4, n / 2 % 2, n % 2)) {
        expected[slice * 32 + (row + 1) * 8 + column + 3] =
            values[(slice + 1) * 30 + (row + 2) * 6 + column + 1];
    }
    assert_eq!(hip.download::<u8>(memory, 128, stream), expected);
}

#[test]
fn fills_have_patterns_of_one_two_and_four_bytes() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let memory = hip.upload(&[0_u8; 32], stream);
    ok((hip.hipMemsetD8Async)(memory, 7, 3, stream));
    ok((hip.hipMemsetD16Async)(memory + 4, 0x0102, 2, stream));
    ok((hip.hipMemsetD32Async)(memory + 8, 0x0A0B_0C0D, 1, stream));
    // Two rows of three bytes, eight apart.
    ok((hip.hipMemset2DAsync)(memory + 16, 8, 0x1FF, 3, 2, stream));
    assert_eq!((hip.hipMemsetD32Async)(memory + 1, 0, 1, stream), INVALID_VALUE, "unaligned");
    let expected = [
        [7, 7, 7, 0, 2, 1, 2, 1],
        [0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0],
        [0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0],
        [0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0],
    ];
    assert_eq!(hip.download::<u8>(memory, 32, stream), expected.concat());
}

#[test]
fn peers_exchange_memory_by_ordinals() {
    let hip: Hip = in_own_process!(load(Settings::new().devices(2)));
    let stream = hip.stream();
    let memory = hip.upload(&numbers(16), stream);
    ok((hip.hipSetDevice)(1));
    let (there, other) = (hip.memory(16), hip.stream());
    let copy = hip.hipMemcpyPeerAsync;
    assert_eq!(copy(there, 0, memory, 1, 16, other), INVALID_VALUE, "swapped");
    assert_eq!(copy(there, 2, memory, 0, 16, other), INVALID_DEVICE);
    ok(copy(there, 1, memory, 0, 16, other));
    assert_eq!(hip.download::<u8>(there, 16, other), numbers(16));
}
