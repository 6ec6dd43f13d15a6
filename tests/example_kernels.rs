//! The kernels of the example `pipeline` with arguments and grids of wrong sizes: each launch is refused by a requirement before anything moves, or touches
//! its own elements alone. On a GPU, where there is one, this is what compute-sanitizer watches; elsewhere the host bodies run on the embedded device, whose
//! views panic where they are left.

// The example's own files; it uses more of them than this test does.
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../examples/pipeline/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "the example uses the rest")]
#[path = "../examples/pipeline/kernels.rs"]
mod kernels;

use kernels::Kernels;
use resident::ndarray::{Ix2, Ix3};
use resident::{Arguments, Device, Element, Error, Grid, Kernel, Signature, SmartArray, Stream};

const SIZES: [(usize, usize); 5] = [(6, 8), (8, 6), (1, 1), (0, 5), (33, 17)];

/// Grids for a picture of that size: its own, one that covers too little, one that covers too much.
fn grids((rows, columns): (usize, usize)) -> [Grid; 3] {
    let block = (8, 32);
    [Grid::cover_2d((rows, columns), block), Grid::new(1, (3, 2)), Grid::cover_2d((rows + 100, columns + 100), block)]
}

struct Bench {
    stream: Stream,
    refused: usize,
    done: usize,
}

impl Bench {
    fn launch<S: Signature>(&mut self, kernel: &Kernel<S>, grid: Grid, arguments: impl Arguments<S>) {
        match kernel.launch_on(&self.stream, grid, arguments) {
            Ok(()) => self.done += 1,
            Err(Error::Requirement { .. }) => self.refused += 1,
            Err(other) => panic!("{}: {other}", kernel.name()),
        }
        self.stream.synchronize().unwrap_or_else(|error| panic!("{}: {error}", kernel.name()));
    }
}

fn picture<T: Element>((rows, columns): (usize, usize)) -> SmartArray<T, Ix2> {
    SmartArray::full((rows, columns), T::zeroed())
}

fn photograph((rows, columns): (usize, usize), channels: usize) -> SmartArray<u8, Ix3> {
    SmartArray::full((rows, columns, channels), 7)
}

/// Every combination of sizes and grids.
fn each(mut serve: impl FnMut((usize, usize), (usize, usize), Grid)) {
    for one in SIZES {
        for other in SIZES {
            grids(one).into_iter().for_each(|grid| serve(one, other, grid));
        }
    }
}

#[test]
fn kernels_of_the_pipeline_survive_wrong_sizes() {
    let kernels = Kernels::new();
    // The first GPU where there is one and its compiler, else the embedded device.
    let usable = |device: &Device| kernels.grey.prepare(device).is_ok();
    let device = Device::all().into_iter().find(usable).expect("the embedded device, if no other");
    let mut bench = Bench { stream: device.stream(), refused: 0, done: 0 };
    each(|one, other, grid| {
        for channels in [1, 3, 4] {
            bench.launch(&kernels.grey, grid, (&photograph(one, channels), &mut picture::<f32>(other)));
            let (photo, mut overlaid) = (photograph(one, channels), photograph(other, 3));
            bench.launch(&kernels.overlay, grid, (&photo, &picture::<u8>(other), &mut overlaid));
        }
        for sigma in [1.0, 0.0, 64.0, 100.0, -1.0, f32::NAN] {
            bench.launch(&kernels.blur_rows, grid, (sigma, &picture(one), &mut picture(other)));
            bench.launch(&kernels.blur_columns, grid, (sigma, &picture(one), &mut picture(other)));
        }
        bench.launch(&kernels.sobel, grid, (&picture(one), &mut picture(other), &mut picture(one)));
        bench.launch(&kernels.sobel, grid, (&picture(one), &mut picture(one), &mut picture(other)));
        bench.launch(&kernels.thin, grid, (&picture(one), &picture(other), &mut picture(one)));
        bench.launch(&kernels.thin, grid, (&picture(one), &picture(one), &mut picture(other)));
        bench.launch(&kernels.candidates, grid, (0.5, &picture(one), &mut picture(other)));
        bench.launch(&kernels.unite, grid, (&mut picture(one),));
        bench.launch(&kernels.anchor, grid, (0.5, &picture(one), &picture(other), &mut picture(one)));
        bench.launch(&kernels.anchor, grid, (0.5, &picture(one), &picture(one), &mut picture(other)));
        bench.launch(&kernels.keep, grid, (&picture(one), &picture(other), &mut picture(one)));
        bench.launch(&kernels.keep, grid, (&picture(one), &picture(one), &mut picture(other)));
    });
    println!("on {device}: {} launches were done, {} refused", bench.done, bench.refused);
    assert!(bench.done > 300 && bench.refused > 1000, "{} and {}", bench.done, bench.refused);
}
