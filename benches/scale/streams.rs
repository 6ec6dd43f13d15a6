//! Launches of streams that share an array.

use resident::ndarray::Ix1;
use resident::{Device, Grid, In, InOut, Kernel, SmartArray, Stream};

use crate::{Line, median_ns};

const COUNTS: &[usize] = &[1, 2, 4, 16, 64, 256];

pub const LINES: &[Line] = &[
    Line { name: "launch that reads an array, n streams in turn", sizes: COUNTS, operation: read },
    Line {
        name: "launch that updates an array, n streams in turn",
        sizes: COUNTS,
        operation: update,
    },
];

fn streams(count: usize) -> Vec<Stream> {
    (0..count).map(|_| Device::cpu().new_stream().expect("a stream")).collect()
}

fn read(count: usize) -> f64 {
    let streams = streams(count);
    let kernel = Kernel::<(In<f32, Ix1>,)>::new("read").host(|_grid, _array| ());
    let array = SmartArray::<f32, Ix1>::zeros(16);
    median_ns(21, 1_024, |turn| {
        let stream = &streams[turn % count];
        kernel.launch_on(stream, Grid::cover(1), (&array,)).expect("launched");
    })
}

fn update(count: usize) -> f64 {
    let streams = streams(count);
    let kernel = Kernel::<(InOut<f32, Ix1>,)>::new("update").host(|_grid, _array| ());
    let mut array = SmartArray::<f32, Ix1>::zeros(16);
    median_ns(21, 1_024, |turn| {
        let stream = &streams[turn % count];
        kernel.launch_on(stream, Grid::cover(1), (&mut array,)).expect("launched");
    })
}
