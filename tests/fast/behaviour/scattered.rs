//! Many small parts of an array: what is copied for them, and what is not.

use support::prelude::*;

/// Odd, so that no written element lies below another.
const SIDE: usize = 255;

type Matrix = SmartArray<u32, Ix2>;

fn stream() -> Stream {
    // Emulated devices fill stale copies with poison bytes, and then nothing is withdrawn.
    Device::cpu().new_stream().expect("a stream")
}

/// A matrix that is valid on the host and on the stream's device.
fn matrix(stream: &Stream) -> Matrix {
    let array = Matrix::zeros((SIDE, SIDE));
    drop(array.gpu_on(stream).expect("room"));
    drop(array.host().expect("filled"));
    // The guard above left an open use; a write ends it.
    let mut array = array;
    array.host_mut().expect("valid")[[0, 0]] = 0;
    array.prefetch(stream).expect("room");
    stream.synchronize().expect("copied");
    array
}

/// The place of a written element: no three in a row lie at equal distances, because these become
/// one part with a step.
fn place(index: usize) -> usize {
    3 * index + index % 2
}

/// Writes about every third element on the host, `count` in all.
fn write(array: &mut Matrix, count: usize) {
    for index in (0..count).map(place) {
        array.set((index / SIDE, index % SIDE), index as u32 + 1).expect("valid");
    }
}

fn check(array: &Matrix, count: usize, stream: &Stream) {
    let sum = Kernel::<(In<u32, Ix2>, InOut<u32>)>::new("sum").host(|_, (array, sums)| {
        sums[0] = array.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value));
    });
    let mut sums = SmartArray::<u32, Ix1>::zeros(1);
    sum.launch_on(stream, Grid::cover(1), (array, &mut sums)).expect("launched");
    let expected = (0..count).fold(0, |sum: u32, index| sum.wrapping_add(place(index) as u32 + 1));
    assert_eq!(sums.host().expect("copied")[0], expected);
}

#[test]
fn up_to_1_024_parts_are_copied_exactly() {
    let stream = stream();
    let mut array = matrix(&stream);
    write(&mut array, 1_024);
    let (copied, report) = audit::capture(|| array.prefetch(&stream));
    copied.expect("copied");
    assert_eq!((report.traffic().to_device.bytes, report.padding().bytes), (4 * 1_024, 0));
    check(&array, 1_024, &stream);
}

#[test]
fn more_parts_are_copied_with_what_lies_between_and_the_rest_is_not() {
    let stream = stream();
    let mut array = matrix(&stream);
    let count = 8_000;
    write(&mut array, count);
    let (copied, report) = audit::capture(|| array.prefetch(&stream));
    copied.expect("copied");
    let (copied, padding) = (report.traffic().to_device.bytes, report.padding().bytes);
    assert_eq!(copied - padding, 4 * count as u64, "{report}");
    assert!(padding > 0, "{report}");
    // The written elements lie in the first 95 of 255 rows.
    assert!(copied <= 4 * 96 * SIDE as u64, "{report}");
    check(&array, count, &stream);
    assert_eq!(array.residency().on(&stream.device()), array.residency().host());
}

/// What was written after the coarsening is no padding.
#[test]
fn an_upload_of_what_was_overwritten_has_no_padding() {
    let stream = stream();
    let mut array = matrix(&stream);
    // So many that a write coarsens the state.
    write(&mut array, 20_000);
    array.host_mut().expect("valid").fill(1);
    let (copied, report) = audit::capture(|| array.prefetch(&stream));
    copied.expect("copied");
    let all = (SIDE * SIDE * 4) as u64;
    assert_eq!((report.traffic().to_device.bytes, report.padding().bytes), (all, 0), "{report}");
}

#[test]
fn an_array_with_many_parts_stays_fast_and_right() {
    let stream = stream();
    let mut array = Matrix::zeros((1_024, SIDE));
    array.host_mut().expect("valid").fill(0);
    array.prefetch(&stream).expect("room");
    let count = 1_024 * SIDE / 3;
    write(&mut array, count);
    check(&array, count, &stream);
}

/// Elements that are valid on the host stay valid there: guards read them without a lock.
#[test]
fn parts_that_a_device_wrote_are_downloaded_exactly() {
    let stream = stream();
    let mut array = SmartArray::<u32, Ix1>::zeros(8_000);
    array.host_mut().expect("valid").fill(7);
    let add = Kernel::<(InOut<u32>,)>::new("add").host(|_, (part,)| part[0] += 1);
    for index in 0..2_000 {
        let at = place(index);
        let mut part = array.slice_mut(s![at..at + 1]);
        add.launch_on(&stream, Grid::cover(1), (&mut part,)).expect("launched");
    }
    let (copied, report) = audit::capture(|| array.host().map(|host| host.to_vec()));
    let expected: Vec<u32> = (0..8_000)
        .map(|index| 7 + u32::from(index < 6_000 && [0, 4].contains(&(index % 6))))
        .collect();
    assert_eq!(copied.expect("copied"), expected);
    assert_eq!((report.traffic().to_host.bytes, report.padding().bytes), (4 * 2_000, 0));
}

/// At 16,384 boxes the state is coarsened at once, without a plan: what the host has too becomes
/// stale on the device, and what only the device has does not.
#[test]
fn writes_that_leave_very_many_parts_withdraw_what_lies_between_and_nothing_else() {
    let stream = stream();
    let mut array = Matrix::zeros((512, SIDE));
    array.host_mut().expect("valid").fill(0);
    let add = Kernel::<(InOut<u32, Ix2>,)>::new("add").host(|_, (mut part,)| part += 5);
    array.prefetch(&stream).expect("room");
    let mut last = array.slice_mut(s![511.., ..]);
    add.launch_on(&stream, Grid::cover(SIDE), (&mut last,)).expect("launched");
    let between = |array: &Matrix| array.slice(s![..1, 1..2]).residency().on(&stream.device());
    write(&mut array, 10_000);
    assert_eq!(between(&array), Valid);
    write(&mut array, 20_000);
    assert_eq!(between(&array), Stale);
    let last = array.slice(s![511.., ..]).residency();
    assert_eq!((last.host(), last.on(&stream.device())), (Stale, Valid));
    let (host, report) = audit::capture(|| array.host().map(|host| host.to_owned()));
    assert_eq!(report.traffic().to_host.bytes, 4 * SIDE as u64, "{report}");
    let mut expected = Array2::<u32>::zeros((512, SIDE));
    for index in (0..20_000).map(place) {
        expected[(index / SIDE, index % SIDE)] = index as u32 + 1;
    }
    expected.slice_mut(s![511.., ..]).fill(5);
    assert_eq!(host.expect("copied"), expected);
    add.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
    assert_eq!(array.host().expect("copied"), expected + 5);
}

/// In whatever order the work of two streams runs, what is uploaded between parts waits for those
/// who still read it.
#[test]
fn what_is_uploaded_between_parts_waits_for_its_readers() {
    let add = Kernel::<(In<u32, Ix1>, InOut<u32>)>::new("sum").host(|_, (array, sums)| {
        sums[0] = array.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value));
    });
    for seed in 0..sampled(8, 40) {
        let device = Device::emulated(Emulation::new().seed(seed).poison(false));
        let [one, other] = [(); 2].map(|()| device.new_stream().expect("a stream"));
        let mut array = SmartArray::from(Array1::from_elem(1 << 14, 1_u32));
        array.prefetch(&other).expect("room");
        let [mut before, mut after] = [(); 2].map(|()| SmartArray::<u32, Ix1>::zeros(1));
        let between = array.slice(s![2..;3]);
        add.launch_on(&one, Grid::cover(1), (&between, &mut before)).expect("queued");
        let count = 5_000;
        (0..count).for_each(|index| array.set(place(index), 2).expect("valid"));
        let (queued, report) =
            audit::capture(|| add.launch_on(&other, Grid::cover(1), (&array, &mut after)));
        queued.expect("queued");
        assert!(report.padding().bytes > 0, "{report}");
        let sum = |array: &SmartArray<u32, Ix1>| array.host().expect("copied")[0];
        assert_eq!(sum(&after) as usize, (1 << 14) + count, "seed {seed}");
        assert_eq!(sum(&before), (1 << 14) / 3, "seed {seed}");
        assert_ordered_under(seed, &device);
    }
}
