//! Contents that a test can recognise.

use std::fmt::Debug;

use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};
use resident::{AsViewMut, Element, bytemuck};
use support::prelude::*;

/// An element type whose values tests can compare and print.
pub(crate) trait Sample: Element + PartialEq + Debug {}

impl<T: Element + PartialEq + Debug> Sample for T {}

/// The n-th of many different values, for any element type.
pub(crate) fn value<T: Element>(number: usize) -> T {
    let mut bytes = vec![0_u8; size_of::<T>()];
    let mixed = (number as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    bytes
        .iter_mut()
        .enumerate()
        .for_each(|(index, byte)| *byte = mixed[(index + 3) % 8].wrapping_add(index as u8));
    bytemuck::pod_read_unaligned(&bytes)
}

/// An array of consecutive values that start with `first`.
pub(crate) fn numbered<T: Element, D: Dimension>(
    shape: impl ShapeBuilder<Dim = D>,
    first: usize,
) -> Array<T, D> {
    let mut number = first;
    Array::from_shape_simple_fn(shape, || {
        number += 1;
        value(number - 1)
    })
}

/// `0, 1, 2, ..`.
pub(crate) fn counting(len: usize) -> Array1<u32> {
    Array1::from_iter(0..len as u32)
}

/// An array with these contents.
pub(crate) fn numbers(len: usize) -> SmartArray<u32, Ix1> {
    SmartArray::from(counting(len))
}

/// More elements than a copy in one piece has: five MiB of numbers.
pub(crate) const LARGE: usize = 5 << 18;

/// Draws the same random cases each time: a sample of them, or all.
pub(crate) fn runner((sample, all): (u32, u32), seed: u64) -> TestRunner {
    TestRunner::new(Config {
        cases: sampled(sample, all),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })
}

/// Makes the device's copy the newest, by work that changes no values, so that later host reads
/// come from the device.
pub(crate) fn make_newest<T: Element, D: Dimension>(
    array: &mut impl AsViewMut<T, D>,
    stream: &Stream,
) -> Result<()> {
    array.as_view_mut().gpu_mut_on(stream).map(drop)
}

/// Bytes uploaded, downloaded and copied between devices.
pub(crate) fn bytes(traffic: Traffic) -> [u64; 3] {
    [traffic.to_device, traffic.to_host, traffic.between_devices].map(|flow| flow.bytes)
}

/// The numbers of uploads, downloads and copies between devices.
pub(crate) fn copies(traffic: Traffic) -> [u64; 3] {
    [traffic.to_device, traffic.to_host, traffic.between_devices].map(|flow| flow.count)
}
