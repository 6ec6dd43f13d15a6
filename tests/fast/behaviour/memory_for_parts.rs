//! A device of which only parts of a large array are used holds memory for these parts, page by
//! page, under one address: parts on several devices take one array's bytes, and arrays larger than
//! a device are used tile by tile.

use std::collections::BTreeMap;
use std::ops::Range;

use resident::Chain;
use resident::ndarray::ArrayViewMut2;
use support::prelude::*;

/// A row of a table is a page.
const PAGE: usize = 256;
const COLUMNS: usize = PAGE / 4;
const ROWS: usize = 64;
const TABLE: u64 = (ROWS * PAGE) as u64;

type Table = SmartArray<u32, Ix2>;

/// A part of a table: rows and columns.
type Part = (Range<usize>, Range<usize>);

fn paged() -> Emulation {
    Emulation::new().page_bytes(PAGE as u64)
}

fn values(seed: u32) -> Array2<u32> {
    Array2::from_shape_fn((ROWS, COLUMNS), |(row, column)| seed + (row * COLUMNS + column) as u32)
}

fn table(seed: u32) -> Table {
    Table::from(values(seed))
}

fn rows(rows: Range<usize>) -> Part {
    (rows, 0..COLUMNS)
}

fn part<'a>(table: &'a Table, (rows, columns): &Part) -> SmartView<'a, u32, Ix2> {
    table.slice(s![rows.clone(), columns.clone()])
}

fn part_mut<'a>(table: &'a mut Table, (rows, columns): &Part) -> SmartViewMut<'a, u32, Ix2> {
    table.slice_mut(s![rows.clone(), columns.clone()])
}

fn part_of<'a>(values: &'a mut Array2<u32>, (rows, columns): &Part) -> ArrayViewMut2<'a, u32> {
    values.slice_mut(s![rows.clone(), columns.clone()])
}

fn increment() -> Kernel<(InOut<u32, Ix2>,)> {
    Kernel::<(InOut<u32, Ix2>,)>::new("increment").host(|_, (mut x,)| x += 1)
}

/// `y += x`.
fn add() -> Kernel<(In<u32, Ix2>, InOut<u32, Ix2>)> {
    Kernel::<(In<u32, Ix2>, InOut<u32, Ix2>)>::new("add").host(|_, (x, mut y)| y += &x)
}

fn launch(table: &mut Table, at: &Part, stream: &Stream) -> Result<()> {
    increment().launch_on(stream, Grid::cover(1), (&mut part_mut(table, at),))
}

fn address(table: &Table, at: &Part, stream: &Stream) -> Result<u64> {
    let offset = (at.0.start * COLUMNS + at.1.start) * 4;
    Ok(part(table, at).gpu_on(stream)?.address() - offset as u64)
}

/// Uses a part on a stream's device, and does the same to the plain array.
type Use = fn(&mut Table, &Part, &Stream, &mut Array2<u32>) -> Result<()>;

const USES: [(&str, Use); 8] = [
    ("launch", |table, at, stream, plain| {
        part_of(plain, at).mapv_inplace(|x| x + 1);
        launch(table, at, stream)
    }),
    ("prefetch", |table, at, stream, _| part(table, at).prefetch(stream)),
    ("guard", |table, at, stream, _| part(table, at).gpu_on(stream).map(drop)),
    ("exclusive guard", |table, at, stream, _| part_mut(table, at).gpu_mut_on(stream).map(drop)),
    ("fill", |table, at, stream, plain| {
        part_of(plain, at).fill(7);
        part_mut(table, at).fill_on(stream, 7)
    }),
    ("fill, then a guard", |table, at, stream, plain| {
        part_of(plain, at).fill(8);
        part_mut(table, at).fill(8)?;
        part(table, at).gpu_on(stream).map(drop)
    }),
    ("assignment", |table, at, stream, plain| {
        let shape = (at.0.len(), at.1.len());
        part_of(plain, at).fill(9);
        part_mut(table, at).assign_on(stream, &SmartArray::<u32, _>::full(shape, 9))
    }),
    ("overwriting launch", |table, at, stream, plain| {
        let set = Kernel::<(Out<u32, Ix2>,)>::new("set").host(|_, (mut x,)| x.fill(5));
        part_of(plain, at).fill(5);
        set.launch_on(stream, Grid::cover(1), (&mut part_mut(table, at),))
    }),
];

#[test]
fn a_part_takes_the_pages_that_it_touches() -> Result<()> {
    let cases: [(Part, usize); 8] = [
        (rows(0..16), 16),
        (rows(17..18), 1),
        ((5..6, 3..10), 1),
        ((5..9, 3..10), 4),
        (rows(0..56), 56),
        // What leaves out less than an eighth of the pages takes all.
        (rows(0..57), 64),
        (rows(1..64), 64),
        ((0..64, 0..1), 64),
    ];
    for (at, pages) in cases {
        for (name, used) in USES {
            let (device, other) = (Device::emulated(paged()), Device::emulated(paged()));
            let (mut array, mut plain) = (table(0), values(0));
            used(&mut array, &at, &device.stream(), &mut plain)?;
            let bytes = (pages * PAGE) as u64;
            assert_eq!(device.memory().in_use, bytes, "{name} of {at:?}");
            assert_eq!(device.memory().peak, bytes, "{name} of {at:?}");
            // The other device gets all of it, from both places.
            let copy = array.snapshot_on(&other.stream())?.wait()?;
            assert_eq!(copy, plain, "{name} of {at:?}");
            launch(&mut array, &rows(0..ROWS), &other.stream())?;
            assert_eq!(array.host()?.to_owned(), plain + 1, "{name} of {at:?}");
            drop(array);
            for device in [&device, &other] {
                device.synchronize()?;
                assert_ordered(device);
                assert_eq!(device.memory().in_use, 0);
            }
        }
    }
    Ok(())
}

#[test]
fn parts_on_several_devices_take_the_bytes_of_one_array() -> Result<()> {
    for devices in [1, 2, 4] {
        for (_, used) in USES {
            let devices: Vec<Device> = (0..devices).map(|_| Device::emulated(paged())).collect();
            let share = ROWS / devices.len();
            let (mut array, mut plain) = (table(0), values(0));
            for round in 0..2 {
                for (index, device) in devices.iter().enumerate() {
                    let at = rows(index * share..(index + 1) * share);
                    used(&mut array, &at, &device.stream(), &mut plain)?;
                    assert_eq!(device.memory().in_use, TABLE / devices.len() as u64, "{round}");
                }
            }
            let in_use: u64 = devices.iter().map(|device| device.memory().in_use).sum();
            assert_eq!(in_use, TABLE);
            assert_eq!(array.host()?.to_owned(), plain);
            devices.iter().for_each(assert_ordered);
        }
    }
    Ok(())
}

#[test]
fn devices_without_pages_and_small_arrays_and_explicit_ones_have_memory_as_a_whole() -> Result<()> {
    let without = Device::emulated(Emulation::new().page_bytes(0));
    let mut array = table(0);
    launch(&mut array, &rows(0..1), &without.stream())?;
    assert_eq!(without.memory().in_use, TABLE);

    let device = Device::emulated(paged());
    let stream = device.stream();
    for (len, pages) in [(14 * PAGE + 1, 0), (15 * PAGE, 0), (15 * PAGE + 1, 1), (16 * PAGE, 1)] {
        let small = SmartArray::from(vec![0_u8; len]);
        small.slice(s![..3]).prefetch(&stream)?;
        let expected = if pages == 0 { len } else { pages * PAGE };
        assert_eq!(device.memory().in_use, expected as u64, "{len}");
        drop(small);
        device.synchronize()?;
    }

    launch(&mut array, &rows(4..5), &stream)?;
    assert_eq!(device.memory().in_use, PAGE as u64);
    let at = address(&array, &rows(4..5), &stream)?;
    let mut explicit = array.into_device(&device)?;
    assert_eq!(device.memory().in_use, TABLE, "an explicit array has all of its memory");
    assert_eq!(explicit.gpu_mut_on(&stream)?.address(), at);
    let mut expected = values(0);
    expected.slice_mut(s![0..1, ..]).mapv_inplace(|x| x + 1);
    expected.slice_mut(s![4..5, ..]).mapv_inplace(|x| x + 1);
    assert_eq!(explicit.copy_to_host()?, expected);
    let fresh = DeviceArray::<u32, Ix1>::uninit_on(&stream, ROWS * COLUMNS)?;
    assert_eq!(device.memory().in_use, 2 * TABLE);
    drop(fresh);
    Ok(())
}

/// Their memory comes from the pool, unless memory is limited.
#[test]
fn short_lived_arrays_on_the_cpu_have_memory_as_a_whole() -> Result<()> {
    own_process!();
    let device = Device::cpu();
    let cases = [(1 << 20, None, 1 << 20), (2 << 20, None, 4096), (1 << 20, Some(9000), 4096)];
    for (len_bytes, limit_bytes, expected) in cases {
        device.set_memory_limit(limit_bytes)?;
        let array = SmartArray::<u8, _>::zeros(len_bytes);
        array.slice(s![5..7]).prefetch(&device.stream())?;
        assert_eq!(device.memory().in_use, expected, "{len_bytes} of {limit_bytes:?}");
        drop(array);
        device.synchronize()?;
        assert_eq!(device.memory().in_use, 0);
    }
    Ok(())
}

#[test]
fn a_part_without_memory_is_absent() -> Result<()> {
    let devices = [(); 2].map(|()| Device::emulated(paged()));
    let mut array = table(0);
    let [top, bottom] = [rows(0..32), rows(32..64)];
    launch(&mut array, &top, &devices[0].stream())?;
    launch(&mut array, &bottom, &devices[1].stream())?;
    let validities = |at: &Part| {
        let residency = part(&array, at).residency();
        [residency.on(&devices[0]), residency.on(&devices[1])]
    };
    assert_eq!(validities(&top), [Valid, Absent]);
    assert_eq!(validities(&bottom), [Absent, Valid]);
    let half = Partial { valid_bytes: 16 * PAGE as u64 };
    assert_eq!(validities(&rows(16..48)), [half, half]);
    part_mut(&mut array, &top).fill(3)?;
    drop(part_mut(&mut array, &top).host_mut()?);
    assert_eq!(part(&array, &top).residency().on(&devices[0]), Stale);
    Ok(())
}

#[test]
fn the_address_stays_while_parts_come_and_go() -> Result<()> {
    let device = Device::emulated(paged());
    let stream = device.stream();
    let (mut array, mut plain) = (table(0), values(0));
    let mut used = |array: &mut Table, at: &Part| {
        part_of(&mut plain, at).mapv_inplace(|x| x + 1);
        launch(array, at, &stream)
    };
    used(&mut array, &rows(8..16))?;
    let first = address(&array, &rows(8..9), &stream)?;
    used(&mut array, &rows(20..36))?;
    assert_eq!(device.memory().in_use, 24 * PAGE as u64);
    // The first rows were used less recently.
    device.set_memory_limit(Some(16 * PAGE as u64))?;
    assert_eq!(device.memory().in_use, 16 * PAGE as u64);
    assert_eq!(part(&array, &rows(8..16)).residency().on(&device), Absent);
    assert_eq!(part(&array, &rows(20..36)).residency().on(&device), Valid);
    assert_eq!(address(&array, &rows(20..21), &stream)?, first);
    used(&mut array, &rows(0..8))?;
    assert_eq!(address(&array, &rows(0..8), &stream)?, first);
    device.set_memory_limit(None)?;
    // The whole array, and later parts of it.
    used(&mut array, &rows(0..ROWS))?;
    assert_eq!(address(&array, &rows(0..ROWS), &stream)?, first);
    assert_eq!(device.memory().in_use, TABLE);
    used(&mut array, &rows(60..62))?;
    device.set_memory_limit(Some(2 * PAGE as u64))?;
    assert_eq!(part(&array, &rows(60..62)).residency().on(&device), Valid);
    assert_eq!(device.memory().in_use, 2 * PAGE as u64);
    assert_eq!(address(&array, &rows(60..61), &stream)?, first);
    assert_eq!(array.host()?.to_owned(), plain);
    assert_ordered(&device);
    Ok(())
}

#[test]
fn pages_that_guards_use_stay_and_others_of_the_array_give_way() -> Result<()> {
    for is_written in [false, true] {
        let device = Device::emulated(paged().memory(8 * PAGE as u64));
        let stream = device.stream();
        let (mut array, other) = (table(0), table(1));
        let (mut kept, mut rest) = array.view_mut().split_at(Axis(0), 4);
        let (read, written) = if is_written {
            (None, Some(kept.gpu_mut_on(&stream)?))
        } else {
            (Some(kept.gpu_on(&stream)?), None)
        };
        // Tile by tile in the other four pages.
        for row in 0..20 {
            let mut at = rest.slice_mut(s![row..row + 3, ..]);
            increment().launch_on(&stream, Grid::cover(1), (&mut at,))?;
            assert!(device.memory().in_use <= 8 * PAGE as u64);
        }
        other.slice(s![..4, ..]).prefetch(&stream)?;
        let refused = other.slice(s![..5, ..]).prefetch(&stream).expect_err("four pages are left");
        let Error::OutOfMemory { .. } = &refused else { panic!("{refused}") };
        assert!(refused.to_string().contains("1_024 bytes, with a guard"), "{refused}");
        drop((read, written));
        other.slice(s![..8, ..]).prefetch(&stream)?;
        assert_eq!(array.residency().on(&device), Absent);
        let mut expected = values(0);
        for row in 0..20 {
            expected.slice_mut(s![4 + row..7 + row, ..]).mapv_inplace(|x| x + 1);
        }
        assert_eq!(array.host()?.to_owned(), expected);
        assert_ordered(&device);
    }
    Ok(())
}

/// The part is the one used least recently, until the launch is queued.
#[test]
fn what_a_launch_has_acquired_stays_while_its_other_arguments_need_room() -> Result<()> {
    for is_one_array in [false, true] {
        let device = Device::emulated(paged().memory(8 * PAGE as u64));
        let stream = device.stream();
        let (mut one, mut other) = (table(0), table(1));
        launch(&mut one, &rows(0..6), &stream)?;
        let last = if is_one_array { &mut one } else { &mut other };
        launch(last, &rows(50..52), &stream)?;
        let before = device.traffic().to_device.bytes;
        if is_one_array {
            let (top, mut bottom) = one.view_mut().split_at(Axis(0), 32);
            let mut to = bottom.slice_mut(s![..4, ..]);
            add().launch_on(&stream, Grid::cover(1), (&top.slice(s![..4, ..]), &mut to))?;
        } else {
            let (from, mut to) = (one.slice(s![..4, ..]), other.slice_mut(s![32..36, ..]));
            add().launch_on(&stream, Grid::cover(1), (&from, &mut to))?;
        }
        assert_eq!(device.traffic().to_device.bytes - before, 4 * PAGE as u64);
        let here = |array: &Table, at: Range<usize>| part(array, &rows(at)).residency().on(&device);
        assert_eq!([here(&one, 0..4), here(&one, 4..6)], [Valid, Absent]);
        let last = if is_one_array { &one } else { &other };
        assert_eq!([here(last, 32..36), here(last, 50..52)], [Valid, Absent]);
        let (mut expected, seed) = (values(0), u32::from(!is_one_array));
        expected.slice_mut(s![..6, ..]).mapv_inplace(|x| x + 1);
        let sum = &expected.slice(s![..4, ..]) + &values(seed).slice(s![32..36, ..]);
        assert_eq!(last.slice(s![32..36, ..]).host()?, sum);
        assert_eq!(one.slice(s![..6, ..]).host()?, expected.slice(s![..6, ..]));
        assert_ordered(&device);
    }
    Ok(())
}

/// The rows are used least recently when the other argument of the launch needs room.
#[test]
fn arguments_of_a_launch_do_not_give_way_to_each_other() -> Result<()> {
    for is_one_array in [false, true] {
        let device = Device::emulated(paged());
        device.set_memory_limit(Some(8 * PAGE as u64))?;
        let stream = device.stream();
        let (mut there, mut newer, missing) = (table(0), table(1), table(2));
        launch(&mut there, &rows(32..36), &stream)?;
        launch(&mut newer, &rows(0..4), &stream)?;
        let before = device.traffic().to_device.bytes;
        let (top, mut bottom) = there.view_mut().split_at(Axis(0), 32);
        let from = if is_one_array { top.slice(s![..4, ..]) } else { missing.slice(s![..4, ..]) };
        add().launch_on(&stream, Grid::cover(1), (&from, &mut bottom.slice_mut(s![..4, ..])))?;
        assert_eq!(device.traffic().to_device.bytes - before, 4 * PAGE as u64);
        assert_eq!(newer.residency().on(&device), Absent);
        let seed = if is_one_array { 0 } else { 2 };
        let sum = values(0).slice(s![32..36, ..]).to_owned() + 1 + values(seed).slice(s![..4, ..]);
        assert_eq!(there.slice(s![32..36, ..]).host()?, sum);
        assert_ordered(&device);
    }
    Ok(())
}

/// How a program limits the memory of a device: never, at first, or after the first uses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limited {
    Emulated,
    First,
    Later,
}

/// A device has room for one of two arrays and a quarter of the other. They are used as wholes, and
/// then parts of both.
#[test]
fn parts_of_arrays_that_were_used_as_wholes_fit_together() -> Result<()> {
    let room = (80 * PAGE) as u64;
    let add_parts = add();
    let chain = Chain::<(In<u32, Ix2>, InOut<u32, Ix2>)>::record("add", |r, (x, y)| {
        r.launch(&add_parts, 1, (x.read(), y.read_write()))
    })?;
    let limits = [Limited::Emulated, Limited::First, Limited::Later];
    for (limited, by_chain) in limits.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        for (emulation, swaps) in emulations().into_iter().zip([false, true, true, false]) {
            let emulation = match limited {
                Limited::Emulated => emulation.memory(room),
                _ => emulation,
            };
            let device = Device::emulated(emulation);
            let stream = device.stream();
            let limit = |when| match limited == when {
                true => device.set_memory_limit(Some(room)),
                false => Ok(()),
            };
            limit(Limited::First)?;
            let (mut one, mut other) = (table(0), table(1));
            launch(&mut one, &rows(0..ROWS), &stream)?;
            launch(&mut other, &rows(0..ROWS), &stream)?;
            limit(Limited::Later)?;
            let (from, to) = if swaps { (&one, &mut other) } else { (&other, &mut one) };
            let (from, mut to) = (from.slice(s![..32, ..]), to.slice_mut(s![32.., ..]));
            match by_chain {
                true => chain.launch_on(&stream, (&from, &mut to))?,
                false => add_parts.launch_on(&stream, Grid::cover(1), (&from, &mut to))?,
            }
            assert!(device.memory().in_use <= room, "{limited:?} {by_chain}");
            let mut expected = [values(0) + 1, values(1) + 1];
            let [first, second] = &mut expected;
            let (from, to) = if swaps { (first, second) } else { (second, first) };
            let mut changed = to.slice_mut(s![32.., ..]);
            changed += &from.slice(s![..32, ..]);
            assert_eq!([one.host()?.to_owned(), other.host()?.to_owned()], expected);
            assert_ordered(&device);
        }
    }
    Ok(())
}

/// An array that fills much of limited memory has it by pages, whatever its first use was.
#[test]
fn what_a_guard_does_not_use_of_an_array_gives_way() -> Result<()> {
    let device = Device::emulated(paged());
    device.set_memory_limit(Some(72 * PAGE as u64))?;
    let stream = device.stream();
    let (mut one, mut other) = (table(0), table(1));
    launch(&mut one, &rows(0..ROWS), &stream)?;
    let guard = one.slice(s![7..9, ..]).gpu_on(&stream)?;
    launch(&mut other, &rows(0..ROWS), &stream)?;
    assert_eq!(device.memory().in_use, (72 * PAGE) as u64, "no more gives way than is needed");
    drop(guard);
    // What was used as a whole gives way as a whole.
    let small = table(2);
    small.slice(s![..10, ..]).prefetch(&stream)?;
    assert_eq!(one.residency().on(&device), Absent);
    assert_eq!(other.residency().on(&device), Absent);
    assert_eq!(one.host()?.to_owned(), values(0) + 1);
    assert_eq!(other.host()?.to_owned(), values(1) + 1);
    assert_ordered(&device);
    Ok(())
}

/// Pages on a device with room for some of them, of which the least recently used give way.
#[derive(Default)]
struct Lru {
    /// When each page of each array was used last, and how many of its bytes only the device has.
    there: BTreeMap<(usize, usize), (usize, usize)>,
    copied_bytes: usize,
}

impl Lru {
    /// Uses whole pages of an array in a launch.
    fn touch(
        &mut self,
        room: usize,
        launch: usize,
        array: usize,
        pages: &Range<usize>,
        writes: bool,
    ) {
        let mut missing = 0;
        for page in pages.clone() {
            let known = self.there.get(&(array, page)).copied();
            missing += usize::from(known.is_none());
            let newest = known.map_or(0, |(_, newest)| newest);
            let newest = if writes { PAGE } else { newest };
            self.there.insert((array, page), (launch, newest));
        }
        self.copied_bytes += missing * PAGE;
        while self.there.len() > room {
            let oldest =
                self.there.iter().min_by_key(|(at, (used, newest))| (*used, *newest, **at));
            let (at, newest) = oldest.map(|(at, (_, newest))| (*at, *newest)).expect("one");
            self.there.remove(&at);
            self.copied_bytes += newest;
        }
    }
}

/// Adds one array to another tile by tile, several times, on a device with room for an eighth of
/// both. Returns the bytes that were copied, and those that an LRU list copies if tiles are rows.
fn out_of_core(emulation: Emulation, streams: usize, tiles: &[Part]) -> (u64, u64) {
    let room = ROWS / 4;
    let device = Device::emulated(emulation);
    device.set_memory_limit(Some((room * PAGE) as u64)).expect("nothing is in use");
    let streams: Vec<Stream> =
        (0..streams).map(|_| device.new_stream().expect("a stream")).collect();
    let (input, mut output, add) = (table(3), table(5), add());
    let (mut plain, mut lru) = (values(5), Lru::default());
    for round in 0..2 {
        for (index, at) in tiles.iter().enumerate() {
            let number = round * tiles.len() + index;
            let stream = &streams[number % streams.len()];
            let (mut to, from) = (part_mut(&mut output, at), part(&input, at));
            add.launch_on(stream, Grid::cover(1), (&from, &mut to)).expect("two tiles fit");
            let mut sum = part_of(&mut plain, at);
            sum += &values(3).slice(s![at.0.clone(), at.1.clone()]);
            lru.touch(room, number, 0, &at.0, false);
            lru.touch(room, number, 1, &at.0, true);
            let memory = device.memory();
            assert!(memory.in_use + memory.pooled <= (room * PAGE) as u64, "{memory:?}");
        }
    }
    let traffic = device.traffic();
    assert_eq!(output.host().expect("nothing is lost").to_owned(), plain);
    assert_eq!(input.host().expect("nothing is lost").to_owned(), values(3));
    assert_ordered(&device);
    (traffic.to_device.bytes + traffic.to_host.bytes, lru.copied_bytes as u64)
}

fn emulations() -> [Emulation; 4] {
    [
        paged(),
        paged().seed(3),
        paged().pieces(100).poison(true),
        paged().seed(4).poison(true).pieces(1000),
    ]
}

#[test]
fn arrays_of_four_times_the_memory_are_used_tile_by_tile_in_rows() {
    let bands =
        |height| (0..ROWS / height).map(move |band| rows(band * height..(band + 1) * height));
    for (index, emulation) in emulations().into_iter().enumerate() {
        for (height, streams) in [(2 + index % 2, 1), (8, 3)] {
            let tiles: Vec<Part> = bands(height).collect();
            let (copied, lru) = out_of_core(emulation.clone(), streams, &tiles);
            assert_eq!(copied, lru, "{height} rows, {streams} streams");
        }
    }
}

#[test]
fn arrays_of_four_times_the_memory_are_used_in_any_tiles() {
    let (half, quarter) = (COLUMNS / 2, COLUMNS / 4);
    let squares =
        (0..8 * 4).map(|n| (n / 4 * 8..n / 4 * 8 + 8, n % 4 * quarter..(n % 4 + 1) * quarter));
    let halves =
        (0..ROWS / 4 * 2).map(|n| (n / 2 * 4..n / 2 * 4 + 4, n % 2 * half..(n % 2 + 1) * half));
    let overlapping = (0..15).map(|n| (n * 4..n * 4 + 7, 1..COLUMNS - 1));
    let mut random = Random::new(7);
    let drawn: Vec<Part> = (0..40)
        .map(|_| {
            let (row, column) = (random.below(ROWS - 8), random.below(COLUMNS - 1));
            let (height, width) = (1 + random.below(8), 1 + random.below(COLUMNS - column));
            (row..row + height, column..column + width)
        })
        .collect();
    for tiles in [squares.collect(), halves.collect(), overlapping.collect(), drawn] {
        let tiles: Vec<Part> = tiles;
        for (index, emulation) in emulations().into_iter().enumerate() {
            out_of_core(emulation, 1 + index % 2 * 2, &tiles);
        }
    }
}

/// Columns touch a page of each row, so they are parts only if a row has several pages.
#[test]
fn columns_are_tiles_where_pages_are_small() {
    const WIDTH: usize = 8;
    for streams in [1, 2] {
        let device = Device::emulated(Emulation::new().page_bytes(4 * WIDTH as u64));
        let room = (3 * ROWS * 4 * WIDTH) as u64;
        device.set_memory_limit(Some(room)).expect("nothing is in use");
        let streams: Vec<Stream> =
            (0..streams).map(|_| device.new_stream().expect("a stream")).collect();
        let mut array = table(0);
        for column in (0..COLUMNS).step_by(WIDTH) {
            let at = (0..ROWS, column..column + WIDTH);
            launch(&mut array, &at, &streams[column / WIDTH % streams.len()]).expect("it fits");
            assert!(device.memory().in_use <= room);
        }
        assert_eq!(array.host().expect("nothing is lost").to_owned(), values(0) + 1);
        assert_ordered(&device);
    }
}

/// Each row of a tile has a run of pages of its own.
#[test]
fn a_tile_of_columns_is_written_back_at_once() {
    const WIDTH: usize = 8;
    let device = Device::emulated(Emulation::new().page_bytes(4 * WIDTH as u64));
    device.set_memory_limit(Some((2 * ROWS * 4 * WIDTH) as u64)).expect("nothing is in use");
    let (stream, mut array) = (device.stream(), table(0));
    for tile in 0..6 {
        let before = device.emulation().expect("it is emulated").calls().len();
        let at = (0..ROWS, tile * WIDTH..(tile + 1) * WIDTH);
        launch(&mut array, &at, &stream).expect("it fits");
        let calls = device.emulation().expect("it is emulated").calls().split_off(before);
        let of = |kind| calls.iter().filter(|call| call.kind == kind).count();
        let kinds = [CallKind::Commit, CallKind::Decommit, CallKind::Upload, CallKind::Download];
        // A full device refuses the first commit twice: beside other threads, and alone.
        let expected = if tile < 2 { [ROWS, 0, 1, 0] } else { [ROWS + 2, ROWS, 1, 1] };
        assert_eq!(kinds.map(of), expected, "tile {tile}");
    }
}

#[test]
fn what_only_the_evicted_pages_have_is_lost_if_their_write_back_fails() -> Result<()> {
    let fault = Fault::nth(1).of(CallKind::Download).late();
    let device = Device::emulated(paged().memory(8 * PAGE as u64).seed(1).fail(fault));
    let stream = device.stream();
    let mut array = table(0).named("field");
    launch(&mut array, &rows(0..4), &stream)?;
    launch(&mut array, &rows(10..14), &stream)?;
    launch(&mut array, &rows(20..24), &stream)?;
    stream.synchronize()?;
    while device.synchronize().is_err() {}
    let Err(Error::Lost { array: name, operation, .. }) = part(&array, &rows(0..4)).host() else {
        panic!("{:?}", part(&array, &rows(0..4)).host())
    };
    assert_eq!(name, "\"field\"");
    assert!(operation.contains("write-back of \"field\""), "{operation}");
    let mut expected = values(0);
    for changed in [10..14, 20..24] {
        expected.slice_mut(s![changed, ..]).mapv_inplace(|x| x + 1);
    }
    assert_eq!(part(&array, &rows(4..ROWS)).host()?, expected.slice(s![4.., ..]));
    part_mut(&mut array, &rows(0..4)).fill(6)?;
    expected.slice_mut(s![..4, ..]).fill(6);
    assert_eq!(array.host()?.to_owned(), expected);
    assert_ordered(&device);
    Ok(())
}

/// Each call of a program is refused in turn, and the program repeats what was refused.
#[test]
fn refused_calls_change_nothing() {
    let program = |emulation: Emulation| {
        let device = Device::emulated(emulation.memory(8 * PAGE as u64));
        let (mut array, mut plain) = (table(0), values(0));
        for row in [0, 6, 12, 0, 3, 30] {
            let at = rows(row..row + 5);
            part_of(&mut plain, &at).mapv_inplace(|x| x + 1);
            let is_taken = (0..4).any(|_| launch(&mut array, &at, &device.stream()).is_ok());
            assert!(is_taken, "row {row}");
        }
        let is_read = |array: &Table| array.host().is_ok_and(|host| host.to_owned() == plain);
        assert!(is_read(&array) || is_read(&array));
        drop(array);
        while device.synchronize().is_err() {}
        assert_ordered(&device);
        assert_eq!([(); 3].map(|()| device.memory().in_use)[2], 0, "a refused free is repeated");
        device.emulation().expect("it is emulated").calls().len() as u64
    };
    for call in 1..=program(paged()) {
        program(paged().fail(Fault::nth(call)));
    }
}

#[test]
fn threads_use_tiles_of_one_array() {
    const THREADS: usize = 4;
    // Each thread has two pages in use.
    for memory in [2 * THREADS + 1, 5 * THREADS] {
        let device = Device::emulated(paged().memory((memory * PAGE) as u64));
        let (mut array, kernel, rounds) = (table(0), increment(), sampled(40, 300));
        std::thread::scope(|scope| {
            let mut rest = array.view_mut();
            for _ in 0..THREADS {
                let (mut own, others) = rest.split_at(Axis(0), ROWS / THREADS);
                rest = others;
                let (device, kernel) = (&device, &kernel);
                scope.spawn(move || {
                    let stream = device.new_stream().expect("a stream");
                    for round in 0..rounds {
                        let row = round * 2 % (ROWS / THREADS);
                        let mut at = own.slice_mut(s![row..row + 2, ..]);
                        kernel.launch_on(&stream, Grid::cover(1), (&mut at,)).expect("it fits");
                    }
                });
            }
        });
        let per_row = |row: usize| {
            let pairs = ROWS / THREADS / 2;
            let pair = row % (ROWS / THREADS) / 2;
            (rounds / pairs + usize::from(pair < rounds % pairs)) as u32
        };
        let expected = Array2::from_shape_fn((ROWS, COLUMNS), |(row, column)| {
            (row * COLUMNS + column) as u32 + per_row(row)
        });
        assert_eq!(array.host().expect("nothing is lost").to_owned(), expected);
        assert_ordered(&device);
    }
}

#[test]
fn an_array_drops_while_its_pages_are_evicted_and_used() -> Result<()> {
    for seed in 0..8 {
        let device = Device::emulated(paged().seed(seed).memory(8 * PAGE as u64));
        let [one, other] = [device.stream(), device.new_stream()?];
        let (mut array, second) = (table(0), table(1));
        for (row, stream) in [(0, &one), (4, &other), (8, &one), (2, &other)] {
            launch(&mut array, &rows(row..row + 4), stream)?;
        }
        drop(array);
        second.slice(s![..8, ..]).prefetch(&one)?;
        assert_eq!(second.snapshot_on(&one)?.wait()?, values(1));
        drop(second);
        device.synchronize()?;
        assert_eq!(device.memory().in_use, 0, "seed {seed}");
        assert_ordered(&device);
    }
    Ok(())
}

#[test]
fn reports_and_inventories_count_the_bytes_of_pages() -> Result<()> {
    let device = Device::emulated(paged().memory(8 * PAGE as u64));
    let stream = device.stream();
    let mut array = table(0).named("field");
    let (outcome, report) = audit::capture(|| -> Result<()> {
        launch(&mut array, &rows(0..6), &stream)?;
        launch(&mut array, &rows(10..16), &stream)?;
        stream.synchronize()
    });
    outcome?;
    let (allocations, evictions) = (report.allocations(), report.evictions());
    assert_eq!((allocations.count, allocations.bytes), (2, 12 * PAGE as u64));
    assert_eq!((evictions.count, evictions.bytes), (1, 4 * PAGE as u64), "as many as were lacking");
    assert_eq!(device.memory().peak, 8 * PAGE as u64);
    array.release_on(&device)?;
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 0);
    assert_eq!(array.residency().on(&device), Absent);
    Ok(())
}
