//! Writes of many single elements on the host, the launch after them, and fills of parts.

use std::time::Instant;

use resident::ndarray::{Ix1, Ix2, s};
use resident::{Device, Grid, In, Kernel, SmartArray, Stream};
use resident_benches::median;
use resident_benches::tiles::scattered;

use crate::{Line, Operation};

const COUNTS: &[usize] = &[1, 100, 1_000, 10_000, 100_000, 1_000_000];
const SIDE: usize = 2_048;

/// Of the elements of the diagonal.
const DIAGONAL: &[usize] = &[1, 100, 1_000, 2_048];
const PARTS: &[usize] = &[1, 1_000, 4_000, 16_000, 64_000];

pub const LINES: &[Line] = &[
    line("write of one scattered element of 2,048² on the host, after n others", COUNTS, |count| {
        write(count, Pattern::Scattered).0
    }),
    line(
        "launch after n scattered writes, in copies of the whole array (× 1,000 µs)",
        COUNTS,
        |count| write(count, Pattern::Scattered).1,
    ),
    line(
        "launch after n writes of every second element, in copies of the whole array",
        COUNTS,
        |count| write(count, Pattern::Striped).1,
    ),
    line(
        "launch after n writes along the diagonal, in copies of the whole array",
        DIAGONAL,
        |count| write(count, Pattern::Diagonal).1,
    ),
    line("write of every second element on the host, after n others", COUNTS, |count| {
        write(count, Pattern::Striped).0
    }),
    line("write of an element of the diagonal on the host, after n others", DIAGONAL, |count| {
        write(count, Pattern::Diagonal).0
    }),
    line("fill of a part with a value of its own, n parts", PARTS, fill),
];

const fn line(name: &'static str, sizes: &'static [usize], operation: Operation) -> Line {
    Line { name, sizes, operation }
}

#[derive(Clone, Copy)]
enum Pattern {
    Scattered,
    Striped,
    Diagonal,
}

impl Pattern {
    fn elements(self, count: usize) -> Vec<usize> {
        match self {
            Self::Scattered => scattered(SIDE * SIDE).into_iter().take(count).collect(),
            Self::Striped => (0..count).map(|index| 2 * index).collect(),
            Self::Diagonal => (0..count).map(|index| index * (SIDE + 1)).collect(),
        }
    }
}

/// The time of one write, and the time of the launch after all of them, of which 1,000 µs stand
/// for one copy of the whole array, measured in the same run.
fn write(count: usize, pattern: Pattern) -> (f64, f64) {
    let stream = Device::cpu().new_stream().expect("a stream");
    let kernel = Kernel::<(In<f32, Ix2>,)>::new("read").host(|_grid, _array| ());
    let mut array = SmartArray::<f32, Ix2>::zeros((SIDE, SIDE));
    let mut writes = Vec::new();
    let mut launches = Vec::new();
    let mut wholes = Vec::new();
    let elements = pattern.elements(count);
    for _ in 0..3 {
        array.host_mut().expect("valid")[[0, 0]] += 1.0;
        let start = Instant::now();
        run(&kernel, &stream, &array);
        wholes.push(start.elapsed().as_nanos() as f64);
        let start = Instant::now();
        for element in &elements {
            array.set((element / SIDE, element % SIDE), 2.0).expect("valid");
        }
        writes.push(start.elapsed().as_nanos() as f64 / count as f64);
        let start = Instant::now();
        run(&kernel, &stream, &array);
        launches.push(start.elapsed().as_nanos() as f64);
    }
    let whole = median(wholes);
    (median(writes), median(launches) / whole * 1_000_000.0)
}

fn run(kernel: &Kernel<(In<f32, Ix2>,)>, stream: &Stream, array: &SmartArray<f32, Ix2>) {
    kernel.launch_on(stream, Grid::cover(1), (array,)).expect("launched");
    stream.synchronize().expect("nothing failed");
}

fn fill(count: usize) -> f64 {
    let mut array = SmartArray::<u32, Ix1>::zeros(2 * count);
    let start = Instant::now();
    for part in 0..count {
        array.slice_mut(s![2 * part..2 * part + 2]).fill(part as u32 + 1).expect("filled");
    }
    start.elapsed().as_nanos() as f64 / count as f64
}
