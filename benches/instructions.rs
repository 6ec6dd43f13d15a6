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
use resident::{Device, Emulation, Grid, In, InOut, Kernel, SmartArray, SmartViewMut, Stream};
use resident_benches::cube::{Cube, cube};

const TURNS: usize = 1_000;

type Small = SmartArray<f32, Ix2>;

fn small() -> Small {
    SmartArray::from(Array2::zeros((16, 16)))
}

/// An array that is valid on host and device, and its stream.
fn resident() -> (Small, Stream) {
    let array = small();
    let stream = Device::cpu().stream();
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

// The instructions of the worker thread are counted too, so compare these counts only with earlier
// ones.
#[library_benchmark]
#[bench::four_arrays((
    Kernel::new("four").host(|_grid, _arrays| ()),
    [small(), small(), small(), small()],
))]
fn launch((kernel, [a, b, mut c, mut d]): (Four, [Small; 4])) {
    let stream = Device::cpu().stream();
    for _ in 0..TURNS {
        kernel.launch_on(&stream, Grid::cover(256), (&a, &b, &mut c, &mut d)).expect("launched");
    }
    stream.synchronize().expect("nothing failed");
}

#[library_benchmark]
#[bench::bare(Kernel::new("bare").host(|_grid, _scalar| ()))]
fn launch_bare(kernel: Kernel<(u32,)>) {
    let stream = Device::cpu().stream();
    for _ in 0..TURNS {
        kernel.launch_on(&stream, Grid::cover(256), (1,)).expect("launched");
    }
    stream.synchronize().expect("nothing failed");
}

#[library_benchmark]
#[bench::of_a_cube((Kernel::new("touch").host(|_grid, _cube| ()), cube()))]
fn launch_interior((kernel, mut cube): (Kernel<(InOut<u8, Ix3>,)>, Cube)) -> Cube {
    let stream = Device::cpu().stream();
    let mut interior = cube.slice_mut(s![1..1023, 1..1023, 1..1023]);
    for _ in 0..TURNS {
        kernel.launch_on(&stream, Grid::cover(1), (&mut interior,)).expect("launched");
    }
    stream.synchronize().expect("nothing failed");
    cube
}

// Six launches in each iteration.
#[library_benchmark]
#[bench::of_a_cube((Kernel::new("touch").host(|_grid, _face| ()), cube()))]
fn launch_faces((kernel, mut cube): (Kernel<(InOut<u8, Ix2>,)>, Cube)) -> Cube {
    let stream = Device::cpu().stream();
    for _ in 0..TURNS {
        let launch = |face: &mut SmartViewMut<'_, u8, Ix2>| {
            kernel.launch_on(&stream, Grid::cover(1), (face,)).expect("launched");
        };
        launch(&mut cube.slice_mut(s![0, .., ..]));
        launch(&mut cube.slice_mut(s![1023, .., ..]));
        launch(&mut cube.slice_mut(s![.., 0, ..]));
        launch(&mut cube.slice_mut(s![.., 1023, ..]));
        launch(&mut cube.slice_mut(s![.., .., 0]));
        launch(&mut cube.slice_mut(s![.., .., 1023]));
    }
    stream.synchronize().expect("nothing failed");
    cube
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
