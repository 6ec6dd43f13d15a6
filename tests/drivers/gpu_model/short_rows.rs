//! Copies of short rows: the driver calls, the bytes over the link and the contents. Each of the
//! two stand-ins, `super::face`, has its own copy.

use std::ops::Range;

use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::{Array2, Array3, Array4, Ix3, Ix4, s};
use resident::{Device, DeviceArray, PinnedArray, SmartArray, Validity, field};
use support::random::Random;

use super::face::{self as driver, Settings};

/// CUDA_ERROR_OUT_OF_MEMORY, and the same of hipError_t.
const OUT_OF_MEMORY: u32 = 2;
/// CUDA_ERROR_UNKNOWN, hipErrorUnknown.
const UNKNOWN: u32 = 999;

fn open(settings: Settings) -> Device {
    driver::load(settings.seed(1)).expect("the stand-in loads");
    driver::device(0).expect("a device")
}

/// The name of a call without what differs between the drivers.
fn kind(name: &str) -> String {
    let name = name.trim_start_matches("cu").trim_start_matches("hip").trim_end_matches("_v2");
    let name = name.trim_end_matches("Async").trim_end_matches("FromPool");
    name.replace("MemAlloc", "Malloc").replace("MemFree", "Free")
}

/// What was copied and allocated since the last call, in order: the kinds of the calls and the
/// bytes of each.
fn take_copies() -> Vec<(String, u64)> {
    let all = driver::take_calls().into_iter().map(|call| (kind(&call.name), call.len_bytes));
    let is_counted = |kind: &str| kind.starts_with("Memcpy") || ["Malloc", "Free"].contains(&kind);
    all.filter(|(kind, _)| is_counted(kind)).collect()
}

#[track_caller]
fn assert_copies(seen: &[(String, u64)], expected: &[&str], len_bytes: u64, what: &str) {
    let kinds: Vec<&str> = seen.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, expected, "{what}");
    for (kind, bytes) in seen.iter().filter(|(kind, _)| kind.starts_with("Memcpy")) {
        assert_eq!(*bytes, len_bytes, "{what}: bytes of {kind}");
    }
}

#[track_caller]
fn assert_no_complaint(what: &str) {
    assert_eq!(driver::take_hazards(), Vec::<String>::new(), "{what}");
    assert_eq!(driver::take_notes(), Vec::<String>::new(), "{what}");
}

/// A part of an array of bytes, and how it is copied: by one driver call of this kind, over the
/// link or on the device.
struct Case {
    what: &'static str,
    shape: [usize; 3],
    part: [Range<usize>; 3],
    strided: &'static str,
    is_packed: bool,
}

impl Case {
    fn contents(&self) -> Array3<u8> {
        Array3::from_shape_fn(self.shape, |(plane, row, byte)| (plane * 7 + row * 13 + byte) as u8)
    }

    fn array(&self) -> SmartArray<u8, Ix3> {
        SmartArray::from(self.contents())
    }

    fn len_bytes(&self) -> u64 {
        self.part.iter().map(|range| range.len() as u64).product()
    }

    fn down(&self) -> Vec<&'static str> {
        let packed = ["Malloc", self.strided, "MemcpyDtoH", "Free"];
        if self.is_packed { packed.to_vec() } else { vec![self.strided] }
    }

    fn up(&self) -> Vec<&'static str> {
        let packed = ["Malloc", "MemcpyHtoD", self.strided, "Free"];
        if self.is_packed { packed.to_vec() } else { vec![self.strided] }
    }

    /// Downloads the part, whose contents only the device has.
    fn download(&self, device: &Device, array: &mut SmartArray<u8, Ix3>) -> Vec<(String, u64)> {
        let [planes, rows, bytes] = self.part.clone();
        drop(array.gpu_mut_on(&device.stream()).expect("memory"));
        take_copies();
        let part = array.slice(s![planes.clone(), rows.clone(), bytes.clone()]);
        let seen = part.host().expect("a download").to_owned();
        let copies = take_copies();
        assert_eq!(seen, self.contents().slice(s![planes, rows, bytes]), "{}", self.what);
        copies
    }

    /// Uploads the part, which the host has changed, and looks at all that the device has then.
    fn upload(&self, device: &Device, array: &mut SmartArray<u8, Ix3>) -> Vec<(String, u64)> {
        let [planes, rows, bytes] = self.part.clone();
        array.prefetch(&device.stream()).expect("an upload");
        let mut part = array.slice_mut(s![planes.clone(), rows.clone(), bytes.clone()]);
        part.host_mut().expect("valid").fill(0xEE);
        take_copies();
        array.prefetch(&device.stream()).expect("an upload");
        let copies = take_copies();
        drop(array.gpu_mut_on(&device.stream()).expect("memory"));
        let mut expected = self.contents();
        expected.slice_mut(s![planes, rows, bytes]).fill(0xEE);
        assert_eq!(*array.host().expect("a download"), expected, "{}", self.what);
        copies
    }
}

/// Columns of this width of a matrix with rows of this length.
fn columns(rows: usize, row_bytes: usize, width: usize, is_packed: bool) -> Case {
    Case {
        what: "columns",
        shape: [1, rows, row_bytes],
        part: [0..1, 0..rows, 3..3 + width],
        strided: "Memcpy2D",
        is_packed,
    }
}

fn cases() -> Vec<Case> {
    let tiles = [(2, 6_000), (4, 6_000), (7, 6_000), (16, 7_000), (32, 9_000), (64, 20_000)];
    let tiles = tiles.map(|(width, rows)| columns(rows, 300, width, true));
    let face = Case {
        what: "the interior of a face of a cube",
        shape: [90, 90, 4 * 90],
        part: [1..89, 1..89, 0..4],
        strided: "Memcpy3D",
        is_packed: true,
    };
    let rows_of_face = Case {
        what: "a face of a cube, whose rows are long",
        shape: [90, 90, 4 * 90],
        part: [0..90, 3..4, 0..4 * 90],
        strided: "Memcpy2D",
        is_packed: false,
    };
    let few = columns(3_000, 600, 4, false);
    let long = [128, 256, 1024].map(|width| columns(1_500, 2048, width, false));
    tiles.into_iter().chain([face, rows_of_face, few]).chain(long).collect()
}

#[test]
fn short_rows_cross_the_link_one_after_another_and_long_ones_directly() {
    support::own_process!();
    let device = open(driver::settings());
    for case in cases() {
        let what = format!("{} {:?} of {:?}", case.what, case.part, case.shape);
        let mut array = case.array();
        let down = case.download(&device, &mut array);
        assert_copies(&down, &case.down(), case.len_bytes(), &format!("{what}, down"));
        let up = case.upload(&device, &mut array);
        assert_copies(&up, &case.up(), case.len_bytes(), &format!("{what}, up"));
        assert_no_complaint(&what);
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Body {
    others: [u32; 31],
    mass: f32,
}

/// A field of each of many records, and every second element, between which a download reads.
#[test]
fn fields_of_records_are_packed_and_every_second_element_is_not() {
    support::own_process!();
    let device = open(driver::settings());
    let stream = device.stream();
    let mut bodies = SmartArray::from(vec![Body { others: [1; 31], mass: 3.0 }; 20_000]);
    drop(bodies.gpu_mut_on(&stream).expect("memory"));
    take_copies();
    let seen = field!(bodies, Body, mass).host().expect("a download").to_vec();
    assert_copies(&take_copies(), &["Malloc", "Memcpy2D", "MemcpyDtoH", "Free"], 80_000, "field");
    assert_eq!(seen, vec![3.0; 20_000]);
    let mut numbers = SmartArray::from((0..100_000_u32).collect::<Vec<_>>());
    drop(numbers.gpu_mut_on(&stream).expect("memory"));
    take_copies();
    let seen = numbers.slice(s![..;2]).host().expect("a download").to_vec();
    assert_copies(&take_copies(), &["MemcpyDtoH"], 399_996, "every second element");
    assert!(seen.iter().enumerate().all(|(index, number)| *number == 2 * index as u32));
}

/// Pinned memory has the array's layout, or lies one after another.
#[test]
fn copies_of_pinned_memory_are_packed_only_if_it_lies_one_after_another() {
    support::own_process!();
    let device = open(driver::settings());
    let case = columns(6_000, 300, 4, false);
    let mut array = case.array();
    {
        let _here = device.enter();
        array.page_lock().expect("pinned");
    }
    assert_copies(&case.download(&device, &mut array), &case.down(), 24_000, "down, page-locked");
    assert_copies(&case.upload(&device, &mut array), &case.up(), 24_000, "up, page-locked");
    let _here = device.enter();
    let contents = Array2::from_shape_fn((6_000, 300), |(row, byte)| (row * 3 + byte) as u8);
    let mut there = DeviceArray::from_host(&contents).expect("memory");
    let mut pinned = PinnedArray::<u8, _>::zeros((6_000, 4)).expect("pinned");
    take_copies();
    there.slice(s![.., 8..12]).copy_to_pinned(&mut pinned).expect("a copy");
    let packed = columns(6_000, 300, 4, true);
    assert_copies(&take_copies(), &packed.down(), 24_000, "down to packed pinned memory");
    assert_eq!(*pinned.host().expect("there"), contents.slice(s![.., 8..12]));
    pinned.host_mut().expect("there").fill(9);
    take_copies();
    there.slice_mut(s![.., 8..12]).copy_from_pinned(&pinned).expect("a copy");
    device.synchronize().expect("nothing fails");
    assert_copies(&take_copies(), &packed.up(), 24_000, "up from packed pinned memory");
    let mut expected = contents;
    expected.slice_mut(s![.., 8..12]).fill(9);
    assert_eq!(there.copy_to_host().expect("a copy"), expected);
    assert_no_complaint("pinned memory");
}

/// A full device copies directly. No array gives way to a block, and no error is returned.
#[test]
fn a_full_device_copies_directly_and_evicts_nothing() {
    support::own_process!();
    let device = open(driver::settings());
    let (packed, direct) = (columns(6_000, 300, 4, true), columns(6_000, 300, 4, false));
    let mut array = packed.array();
    let other = SmartArray::from(vec![1_u8; 1 << 20]);
    other.prefetch(&device.stream()).expect("memory");
    assert_copies(&packed.download(&device, &mut array), &packed.down(), 24_000, "with room");
    let in_use = device.memory().in_use;
    device.set_memory_limit(Some(in_use)).expect("a limit");
    assert_copies(&direct.download(&device, &mut array), &direct.down(), 24_000, "at the limit");
    assert_copies(&direct.upload(&device, &mut array), &direct.up(), 24_000, "at the limit");
    device.set_memory_limit(None).expect("no limit");
    // The block is the only allocation.
    for (nth, code) in [(1, OUT_OF_MEMORY), (1, UNKNOWN)] {
        array = packed.array();
        drop(array.gpu_mut_on(&device.stream()).expect("memory"));
        fail_allocation(nth, code);
        let down = direct.download(&device, &mut array);
        assert_copies(&down[1..], &direct.down(), 24_000, "refused memory");
        driver::forget_faults();
    }
    assert_eq!(other.residency().on(&device), Validity::Valid);
    assert_eq!(device.memory().in_use, in_use);
    assert_no_complaint("a full device");
}

fn fail_allocation(nth: u64, code: u32) {
    for name in ["cuMemAllocFromPoolAsync", "hipMallocFromPoolAsync"] {
        driver::fail_nth(name, nth, code);
    }
}

/// CUDA may refuse strided copies within a device whose pitch it did not choose.
#[test]
fn a_refused_copy_on_the_device_is_made_over_the_link() {
    support::own_process!();
    let device = open(driver::settings());
    let packed = columns(6_000, 300, 4, true);
    let mut array = packed.array();
    array.prefetch(&device.stream()).expect("memory");
    let fail = || {
        ["cuMemcpy2DAsync_v2", "hipMemcpy2DAsync"]
            .into_iter()
            .for_each(|name| driver::fail_nth(name, 1, UNKNOWN));
    };
    fail();
    let down = packed.download(&device, &mut array);
    let kinds = |copies: &[(String, u64)]| copies.iter().map(|(kind, _)| kind.clone()).collect();
    let seen: Vec<String> = kinds(&down);
    assert_eq!(seen, ["Malloc", "Memcpy2D", "Free", "Memcpy2D"]);
    driver::forget_faults();
    fail();
    let up = packed.upload(&device, &mut array);
    let seen: Vec<String> = kinds(&up);
    assert_eq!(seen, ["Malloc", "MemcpyHtoD", "Memcpy2D", "Free", "Memcpy2D"]);
    driver::forget_faults();
    drop(array);
    device.synchronize().and_then(|()| device.trim()).expect("nothing fails");
    assert_eq!(driver::memory_in_use(0), 0);
}

#[test]
fn devices_without_pools_copy_directly() {
    support::own_process!();
    let device = open(driver::settings().without_pools());
    let case = columns(6_000, 300, 4, false);
    let mut array = case.array();
    assert_copies(&case.download(&device, &mut array), &case.down(), 24_000, "down");
    assert_copies(&case.upload(&device, &mut array), &case.up(), 24_000, "up");
}

/// Random boxes are copied as the embedded device copies them, if calls cost nothing, so that all
/// with short rows are packed.
#[test]
fn random_boxes_have_the_contents_that_the_embedded_device_gives() {
    support::own_process!([("RESIDENT_COPY_CALL_BYTES", "0")]);
    let devices = [open(driver::settings()), Device::cpu()];
    let mut random = Random::new(7);
    driver::take_calls();
    let (mut copies, mut blocks) = (0, 0);
    for _ in 0..60 {
        let shape: [usize; 4] = std::array::from_fn(|_| 1 + random.below(9));
        let contents = Array4::from_shape_fn(shape, |_| random.below(60_000) as u16);
        let mut arrays = [(); 2].map(|()| SmartArray::from(contents.clone()));
        for step in 0..12 {
            let spans = shape.map(|extent| random_span(&mut random, extent));
            let fills = random.below(2) == 0;
            let [ours, theirs] = std::array::from_fn(|which| {
                copy_box(&mut arrays[which], &devices[which], &spans, fills.then_some(step))
            });
            assert_eq!(ours, theirs, "{spans:?} of {shape:?}");
        }
        let [ours, theirs] = arrays.map(|array| array.host().expect("a download").to_owned());
        assert_eq!(ours, theirs, "{shape:?}");
        let calls = take_copies();
        copies += calls.iter().filter(|(kind, _)| kind.starts_with("Memcpy")).count();
        blocks += calls.iter().filter(|(kind, _)| kind == "Malloc").count() - 1;
    }
    assert!(blocks > 200 && copies > 3 * blocks, "{blocks} blocks, {copies} copies");
    assert_no_complaint("random boxes");
}

type Span = (Range<usize>, isize);

fn random_span(random: &mut Random, extent: usize) -> Span {
    let start = random.below(extent);
    (start..start + 1 + random.below(extent - start), 1 + random.below(3) as isize)
}

/// Changes a part where it is not copied to, and returns what the other side sees of it: the host
/// changes it by a fill, and the device, whose contents become the newest, sees it. Without a fill,
/// the host sees what the device has.
fn copy_box(
    array: &mut SmartArray<u16, Ix4>,
    device: &Device,
    [a, b, c, d]: &[Span; 4],
    fill: Option<u16>,
) -> Array4<u16> {
    let info = s![a.0.clone();a.1, b.0.clone();b.1, c.0.clone();c.1, d.0.clone();d.1];
    if let Some(value) = fill {
        array.slice_mut(info).host_mut().expect("a download").fill(value);
        array.prefetch(&device.stream()).expect("an upload");
    }
    drop(array.gpu_mut_on(&device.stream()).expect("an upload"));
    array.slice(info).host().expect("a download").to_owned()
}
