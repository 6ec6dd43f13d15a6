//! Instruction counts of the operations in `benches/peers`, by valgrind. Counts do not depend on
//! the load of the machine, so they show the effect of a change in the code.
//!
//! `cargo bench --bench instructions` needs valgrind and `gungraun-runner` (`cargo install
//! gungraun-runner`), in the version that `Cargo.lock` names. Each function runs its operation
//! 1,000 times, so divide a count by 1,000. `nothing` counts the loop without an operation.

#![allow(
    missing_docs,
    unused_qualifications,
    reason = "the macros make public modules and constants without documentation, and name things \
        in full"
)]

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use resident::ndarray::{Array2, Ix2, Ix3, s};
use resident::{Device, Emulation, Grid, In, InOut, Kernel, SmartArray, Stream};
use resident_benches::cube::{Cube, cube, launch_on_faces};

const TURNS: usize = 1_000;

type Small = SmartArray<f32, Ix2>;

fn small() -> Small {
    SmartArray::from(Array2::zeros((16, 16)))
}

/// An array that is valid on host and device, and its stream.
fn resident() -> (Small, Stream) {
    resident_on(&Device::cpu())
}

/// The same on a device with a memory limit, which keeps account of the guards that live.
fn resident_with_limit() -> (Small, Stream) {
    resident_on(&Device::emulated(Emulation::new().memory(1 << 20)))
}

fn resident_on(device: &Device) -> (Small, Stream) {
    let (array, stream) = (small(), device.stream());
    drop(array.gpu_on(&stream).expect("room"));
    stream.synchronize().expect("nothing failed");
    (array, stream)
}

#[library_benchmark]
fn nothing() {
    for turn in 0..TURNS {
        black_box(turn);
    }
}

#[library_benchmark]
#[bench::valid(small())]
fn host(array: Small) -> Small {
    for _ in 0..TURNS {
        black_box(&*black_box(&array).host().expect("valid"));
    }
    array
}

#[library_benchmark]
#[bench::known(resident())]
#[bench::with_limit(resident_with_limit())]
fn gpu_on((array, stream): (Small, Stream)) -> (Small, Stream) {
    for _ in 0..TURNS {
        black_box(black_box(&array).gpu_on(&stream).expect("valid").address());
    }
    (array, stream)
}

#[library_benchmark]
#[bench::without_a_copy(resident())]
fn flip((mut array, stream): (Small, Stream)) -> (Small, Stream) {
    for _ in 0..TURNS / 2 {
        black_box(array.gpu_overwrite_on(&stream).expect("room").address());
        black_box(&*array.host_overwrite().expect("room"));
    }
    (array, stream)
}

#[library_benchmark]
fn create_and_drop() {
    for _ in 0..TURNS {
        black_box(SmartArray::<f32, _>::uninit((16, 16)));
    }
}

#[library_benchmark]
fn create_and_drop_zeros() {
    for _ in 0..TURNS {
        black_box(SmartArray::<f32, _>::zeros(16));
    }
}

type Four = Kernel<(In<f32, Ix2>, In<f32, Ix2>, InOut<f32, Ix2>, InOut<f32, Ix2>)>;

/// A stream on which something was launched. The first launch of a program calibrates its clock, in
/// a loop that ends by the time it takes: 14 million instructions, more or less.
fn used_stream() -> Stream {
    let stream = Device::cpu().stream();
    let first: Kernel<(u32,)> = Kernel::new("first").host(|_grid, _scalar| ());
    first.launch_on(&stream, Grid::cover(1), (1,)).expect("launched");
    stream.synchronize().expect("nothing failed");
    stream
}

// How often a launch waits for the stream's lock, and how long the queue becomes, depends on the
// worker thread. So leave `lock_contended` and `realloc` out of what `callgrind_annotate` lists.
#[library_benchmark]
#[bench::four_arrays((
    Kernel::new("four").host(|_grid, _arrays| ()),
    [small(), small(), small(), small()],
    used_stream(),
))]
fn launch(
    (kernel, [a, b, mut c, mut d], stream): (Four, [Small; 4], Stream),
) -> ([Small; 4], Stream) {
    for _ in 0..TURNS {
        kernel.launch_on(&stream, Grid::cover(256), (&a, &b, &mut c, &mut d)).expect("launched");
    }
    ([a, b, c, d], stream)
}

#[library_benchmark]
#[bench::bare((Kernel::new("bare").host(|_grid, _scalar| ()), used_stream()))]
fn launch_bare((kernel, stream): (Kernel<(u32,)>, Stream)) -> Stream {
    for _ in 0..TURNS {
        kernel.launch_on(&stream, Grid::cover(256), (1,)).expect("launched");
    }
    stream
}

#[library_benchmark]
#[bench::of_a_cube((Kernel::new("touch").host(|_grid, _cube| ()), cube()))]
fn launch_interior((kernel, mut cube): (Kernel<(InOut<u8, Ix3>,)>, Cube)) -> (Cube, Stream) {
    let stream = Device::cpu().stream();
    let mut interior = cube.slice_mut(s![1..1023, 1..1023, 1..1023]);
    for _ in 0..TURNS {
        kernel.launch_on(&stream, Grid::cover(1), (&mut interior,)).expect("launched");
    }
    (cube, stream)
}

// Six launches in each iteration.
#[library_benchmark]
#[bench::of_a_cube((Kernel::new("touch").host(|_grid, _face| ()), cube()))]
fn launch_faces((kernel, mut cube): (Kernel<(InOut<u8, Ix2>,)>, Cube)) -> (Cube, Stream) {
    let stream = Device::cpu().stream();
    for _ in 0..TURNS {
        launch_on_faces(&kernel, &mut cube, &stream);
    }
    (cube, stream)
}

/// A device copy of which every second element is stale.
fn checkered() -> (SmartArray<u32, resident::ndarray::Ix1>, Device) {
    let device = Device::emulated(Emulation::new().poison(false));
    let mut array = SmartArray::from(vec![0_u32; 2 * 4_096]);
    drop(array.gpu_on(&device.stream()).expect("room"));
    for index in 0..4_096 {
        array.slice_mut(s![2 * index..2 * index + 1]).host_mut().expect("valid")[0] = 1;
    }
    (array, device)
}

#[library_benchmark]
#[bench::stale_boxes(checkered())]
fn query((array, device): (SmartArray<u32, resident::ndarray::Ix1>, Device)) {
    for turn in 0..TURNS {
        let index = turn * 7919 % 4_096;
        black_box(array.slice(s![2 * index + 1..2 * index + 2]).residency().on(&device));
    }
}

library_benchmark_group!(
    name = bookkeeping;
    benchmarks = nothing, host, gpu_on, flip, create_and_drop, create_and_drop_zeros, launch_bare,
        launch, launch_interior, launch_faces, query
);

main!(library_benchmark_groups = bookkeeping);
