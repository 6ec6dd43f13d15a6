//! Operations beside many live arrays.

use std::hint::black_box;

use resident::ndarray::Ix1;
use resident::{Device, Emulation, Grid, InOut, Kernel, SmartArray};
use resident_benches::median;

use crate::gate::Gate;
use crate::{Line, median_ns};

const COUNTS: &[usize] = &[1, 1_000, 100_000, 1_000_000];

pub const LINES: &[Line] = &[
    Line { name: "zeros(16) made and dropped, n arrays alive", sizes: COUNTS, operation: make },
    Line { name: "launch with one array, n arrays alive", sizes: COUNTS, operation: launch },
    Line { name: "gpu_on of n arrays in turn", sizes: &[1, 1_000], operation: guard },
    Line {
        name: "gpu_on of n arrays in turn, on a device with a memory limit",
        sizes: &[1, 1_000],
        operation: guard_with_limit,
    },
];

fn alive(count: usize) -> Vec<SmartArray<f32, Ix1>> {
    (0..count).map(|_| SmartArray::zeros(16)).collect()
}

fn make(count: usize) -> f64 {
    let arrays = alive(count);
    let time = median_ns(101, 1_000, |_| drop(SmartArray::<f32, Ix1>::zeros(16)));
    drop(arrays);
    time
}

fn launch(count: usize) -> f64 {
    let arrays = alive(count);
    let (gate, stream) = (Gate::new(), Device::cpu().new_stream().expect("a stream"));
    let kernel = Kernel::<(InOut<f32, Ix1>,)>::new("touch").host(|_grid, _array| ());
    let mut array = SmartArray::<f32, Ix1>::zeros(16);
    let mut queue = || {
        gate.time_queueing(&stream, 200, || {
            kernel.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
        })
    };
    let time = median((0..51).map(|_| queue()).collect());
    drop(arrays);
    time
}

fn guard(count: usize) -> f64 {
    guard_on(count, &Device::emulated(Emulation::new()))
}

/// Such a device keeps account of the guards that live.
fn guard_with_limit(count: usize) -> f64 {
    guard_on(count, &Device::emulated(Emulation::new().memory(1 << 30)))
}

/// Guards of whole arrays that the device has and the stream has read.
fn guard_on(count: usize, device: &Device) -> f64 {
    let (arrays, stream) = (alive(count), device.stream());
    let guard = |turn: usize| {
        black_box(arrays[turn % count].gpu_on(&stream).expect("room").address());
    };
    (0..count).for_each(guard);
    stream.synchronize().expect("nothing failed");
    median_ns(101, 1_000, guard)
}
