//! The driver calls of an upload after scattered writes of single elements, by the number of
//! writes. Up to 1,024 parts are copied exactly: in one call where the driver has batches of
//! copies, else in one call for two elements, which form a box. Of more parts, what lies between
//! them is copied along where that is cheaper: here all 16 MiB, in chunks of 4 MiB.

use resident::ndarray::Array1;
use resident::{Device, SmartArray};
use resident_stand_in as stand_in;

use crate::Counts;

/// 16 MiB.
const LEN: usize = 4 << 20;

/// A different place for each index.
fn place(index: usize) -> usize {
    let mixed = index.wrapping_mul(0x9E37_79B1) % LEN;
    (mixed ^ (mixed >> 11)) % LEN
}

/// The calls of an upload after `count` writes without a pattern.
fn after_writes(device: &Device, count: usize) -> Counts {
    // The default stream takes no batches.
    let stream = device.new_stream().expect("a stream");
    let mut array = SmartArray::from(Array1::<f32>::zeros(LEN));
    array.prefetch(&stream).expect("an upload");
    for index in 0..count {
        array.set(place(index), 1.0).expect("valid");
    }
    stand_in::take_calls();
    array.prefetch(&stream).expect("an upload");
    let mut calls = Counts::new();
    for call in stand_in::take_calls().into_iter().filter(|call| call.code == 0) {
        *calls.entry(call.name).or_default() += 1;
    }
    stream.synchronize().expect("nothing fails");
    calls
}

/// The number of writes, and the single copies and batches that follow them.
type Row = (usize, i64, i64);

/// The uploads with a driver of this version.
fn uploads(driver_version: i32) -> Vec<Row> {
    let settings = stand_in::Settings::new().seed(1).driver_version(driver_version);
    resident_benches::gpu::stand_in::load(settings).expect("the stand-in driver loads");
    let device = crate::programs::gpu();
    let row = |count| {
        let calls = after_writes(&device, count);
        let of = |name: &str| calls.get(name).copied().unwrap_or(0);
        let single = of("cuMemcpyHtoDAsync_v2") + of("cuMemcpy2DAsync_v2");
        println!("| {count} | {single} | {} |", of("cuMemcpyBatchAsync"));
        (count, single, of("cuMemcpyBatchAsync"))
    };
    [1, 3, 100, 1_024, 8_000, 100_000].map(row).to_vec()
}

#[test]
fn scattered_writes_are_copied_in_one_call_where_the_driver_has_batches() {
    support::own_process!();
    let expected =
        [(1, 1, 0), (3, 2, 0), (100, 1, 1), (1_024, 0, 1), (8_000, 4, 0), (100_000, 4, 0)];
    assert_eq!(uploads(13_000), expected);
}

#[test]
fn scattered_writes_are_copied_in_many_calls_where_it_has_none() {
    support::own_process!();
    let expected =
        [(1, 1, 0), (3, 2, 0), (100, 49, 0), (1_024, 512, 0), (8_000, 4, 0), (100_000, 4, 0)];
    assert_eq!(uploads(12_060), expected);
}
