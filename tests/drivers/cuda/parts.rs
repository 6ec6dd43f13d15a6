//! Arrays of which GPUs use parts, on the stand-ins for both drivers: `crate::face` is one of the
//! two, and `crate::matrices` has kernels for it.

use resident::ndarray::{Array2, Ix2, s};
use resident::{Device, Grid, In, InOut, Kernel, SmartArray, Stream};
use support::in_own_process;

use crate::face::{self as driver, Settings};
use crate::matrices::{code, open};

const PAGE: usize = 4096;
/// A row is a page.
const COLUMNS: usize = PAGE / 4;
const ROWS: usize = 128;
const TILE: usize = 8;
/// A quarter of the table.
const MEMORY: u64 = (ROWS / 4 * PAGE) as u64;

type Table = SmartArray<u32, Ix2>;

fn settings() -> Settings {
    Settings::new().page_bytes(PAGE as u64).memory(MEMORY)
}

fn add() -> Kernel<(u32, InOut<u32, Ix2>)> {
    // SAFETY: a host function replaces it, which accesses only the view's elements.
    unsafe { Kernel::<(u32, InOut<u32, Ix2>)>::new("add").cuda(code("add")) }
}

fn values() -> Array2<u32> {
    Array2::from_shape_fn((ROWS, COLUMNS), |(row, column)| (row * COLUMNS + column) as u32)
}

/// Adds to all tiles, on each of the streams in turn.
fn add_to_tiles(table: &mut Table, plain: &mut Array2<u32>, streams: &[Stream], number: u32) {
    for tile in 0..ROWS / TILE {
        let rows = tile * TILE..(tile + 1) * TILE;
        let stream = &streams[tile % streams.len()];
        let launched = add().launch_on(
            stream,
            Grid::cover(1),
            (number, &mut table.slice_mut(s![rows.clone(), ..])),
        );
        launched.unwrap_or_else(|error| panic!("tile {tile}: {error}"));
        plain.slice_mut(s![rows, ..]).mapv_inplace(|x| x.wrapping_add(number));
        assert!(driver::memory_in_use(0) <= MEMORY);
    }
}

/// The number of pages of memory that were created, and released, since the last time.
fn created_and_released() -> [usize; 2] {
    let calls = driver::take_calls();
    ["MemCreate", "MemRelease"]
        .map(|name| calls.iter().filter(|call| call.name.ends_with(name) && call.code == 0).count())
}

fn assert_nothing_left(gpu: &Device) {
    gpu.synchronize().expect("nothing fails");
    gpu.trim().expect("nothing fails");
    assert_eq!((driver::memory_in_use(0), gpu.memory().in_use), (0, 0));
    assert_eq!(driver::take_hazards(), Vec::<String>::new());
    assert_eq!(driver::take_notes(), Vec::<String>::new());
}

fn larger_than_the_device(gpu: &Device) {
    let streams = [(); 2].map(|()| gpu.new_stream().expect("a stream"));
    let (mut table, mut plain) = (Table::from(values()), values());
    add_to_tiles(&mut table, &mut plain, &streams, 1);
    assert_eq!(created_and_released(), [ROWS / 4, 0]);
    (2..5).for_each(|number| add_to_tiles(&mut table, &mut plain, &streams, number));
    assert_eq!(created_and_released(), [0, 0], "memory is used again");
    // These need no copy to the host before their memory is free.
    for (stream, tile) in streams.iter().cycle().zip((0..ROWS).step_by(TILE)) {
        let read = table.slice(s![tile..tile + TILE, ..]).prefetch(stream);
        read.unwrap_or_else(|error| panic!("row {tile}: {error}"));
    }
    assert_eq!(created_and_released(), [0, 0], "memory is used again");
    assert_eq!(*table.host().expect("nothing is lost"), plain);
    drop(table);
    assert_nothing_left(gpu);
}

#[test]
fn arrays_of_four_times_the_memory_are_used_tile_by_tile() {
    larger_than_the_device(&in_own_process!(open(settings(), 1).remove(0)));
}

#[test]
fn arrays_of_four_times_the_memory_are_used_tile_by_tile_in_the_order_of_a_seed() {
    larger_than_the_device(&in_own_process!(open(settings().seed(3), 1).remove(0)));
}

/// As many bytes are the limit, and the device has more.
#[test]
fn arrays_of_four_times_a_limit_are_used_tile_by_tile() {
    let gpu = in_own_process!(open(settings().memory(4 * MEMORY), 1).remove(0));
    gpu.set_memory_limit(Some(MEMORY)).expect("nothing is in use");
    larger_than_the_device(&gpu);
}

#[test]
fn arrays_of_four_times_a_limit_are_used_tile_by_tile_in_the_order_of_a_seed() {
    let gpu = in_own_process!(open(settings().memory(4 * MEMORY).seed(3), 1).remove(0));
    gpu.set_memory_limit(Some(MEMORY)).expect("nothing is in use");
    larger_than_the_device(&gpu);
}

/// There is room for one of two arrays and a quarter of the other, which are used as wholes, and
/// then in parts.
fn wholes_and_parts(settings: Settings, limits_memory: bool) {
    const ROOM: u64 = 5 * MEMORY;
    let settings = if limits_memory { settings.memory(2 * ROOM) } else { settings.memory(ROOM) };
    let gpu = open(settings, 1).remove(0);
    if limits_memory {
        gpu.set_memory_limit(Some(ROOM)).expect("nothing is in use");
    }
    // SAFETY: a host function replaces it, which accesses only the views' elements.
    let mix = unsafe { Kernel::<(In<u32, Ix2>, InOut<u32, Ix2>)>::new("mix").cuda(code("mix")) };
    let (mut one, mut other) = (Table::from(values()), Table::from(values()));
    let stream = gpu.stream();
    let (top, bottom) = (s![..ROWS / 2, ..], s![ROWS / 2.., ..]);
    for round in 0..2 {
        let add = |to: &mut Table| add().launch_on(&stream, Grid::cover(1), (1, to));
        add(&mut one).expect("it fits");
        add(&mut other).expect("it fits");
        let (from, to) = if round == 0 { (&other, &mut one) } else { (&one, &mut other) };
        let (from, mut to) = (from.slice(top), to.slice_mut(bottom));
        mix.launch_on(&stream, Grid::cover(1), (&from, &mut to)).expect("the parts fit");
        assert!(driver::memory_in_use(0) <= ROOM);
    }
    let [mut first, mut second] = [values() + 1, values() + 1];
    first.slice_mut(bottom).zip_mut_with(&second.slice(top), |y, x| *y += x);
    let [first, mut second] = [first + 1, std::mem::take(&mut second) + 1];
    second.slice_mut(bottom).zip_mut_with(&first.slice(top), |y, x| *y += x);
    assert_eq!(*one.host().expect("nothing is lost"), first);
    assert_eq!(*other.host().expect("nothing is lost"), second);
    drop((one, other));
    assert_nothing_left(&gpu);
}

#[test]
fn parts_of_arrays_that_were_used_as_wholes_fit_in_memory() {
    in_own_process!(());
    wholes_and_parts(settings(), false);
}

#[test]
fn parts_of_arrays_that_were_used_as_wholes_fit_in_memory_in_the_order_of_a_seed() {
    in_own_process!(());
    wholes_and_parts(settings().seed(5), false);
}

#[test]
fn parts_of_arrays_that_were_used_as_wholes_fit_in_a_limit() {
    in_own_process!(());
    wholes_and_parts(settings().seed(2), true);
}

#[test]
fn parts_on_two_gpus_take_the_bytes_of_one_array() {
    let gpus = in_own_process!(open(settings().memory(4 * MEMORY).devices(2).seed(1), 2));
    let (mut table, mut plain) = (Table::from(values()), values());
    for (index, gpu) in gpus.iter().enumerate() {
        let rows = index * ROWS / 2..(index + 1) * ROWS / 2;
        let part = &mut table.slice_mut(s![rows.clone(), ..]);
        add().launch_on(&gpu.stream(), Grid::cover(1), (7, part)).expect("queued");
        plain.slice_mut(s![rows, ..]).mapv_inplace(|x| x + 7);
        assert_eq!(gpu.memory().in_use, 2 * MEMORY);
        assert_eq!(driver::memory_in_use(index as u32), 2 * MEMORY);
    }
    // One gets the other's part, as the whole array has memory there.
    add().launch_on(&gpus[1].stream(), Grid::cover(1), (1, &mut table)).expect("queued");
    assert_eq!(gpus[1].memory().in_use, 4 * MEMORY);
    assert_eq!(*table.host().expect("nothing is lost"), plain + 1);
}
