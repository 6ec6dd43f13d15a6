//! The kernels of `pipeline`, which `photos` uses too.

use resident::ndarray::{Array2, Ix2, Ix3};
use resident::{Element, Grid, SmartArray};

use crate::{Bench, noise, pairs};
use resident_example_pipeline::kernels::Kernels;
use resident_example_pipeline::{bodies, brightness, sheet};

type Size = (usize, usize);

const SIZES: [Size; 5] = [(6, 8), (8, 6), (1, 1), (0, 5), (33, 17)];

/// The size of the picture in tests with invalid contents.
const SIZE: (usize, usize) = (33, 17);

/// Grids for a picture of that size: the right one, a smaller and a larger one.
fn grids((rows, columns): (usize, usize)) -> [Grid; 3] {
    let block = (8, 32);
    [
        Grid::cover_2d((rows, columns), block),
        Grid::new(1, (3, 2)),
        Grid::cover_2d((rows + 100, columns + 100), block),
    ]
}

fn picture<T: Element>((rows, columns): (usize, usize)) -> SmartArray<T, Ix2> {
    SmartArray::full((rows, columns), T::zeroed())
}

fn photograph((rows, columns): (usize, usize), channels: usize) -> SmartArray<u8, Ix3> {
    SmartArray::full((rows, columns, channels), 7)
}

/// Every combination of sizes and grids.
fn each(mut serve: impl FnMut((usize, usize), (usize, usize), Grid)) {
    pairs(&SIZES)
        .for_each(|(one, other)| grids(one).into_iter().for_each(|grid| serve(one, other, grid)));
}

#[test]
pub(crate) fn kernels_survive_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.grey.prepare(device));
    each(|one, other, grid| {
        colours_of_two_sizes(&mut bench, &kernels, one, other, grid);
        blurs_of_two_sizes(&mut bench, &kernels, one, other, grid);
        edges_of_two_sizes(&mut bench, &kernels, one, other, grid);
        labels_of_two_sizes(&mut bench, &kernels, one, other, grid);
    });
    // More pixels than 32 bits can count. No memory is allocated for them.
    let (vast, mut labels) =
        (SmartArray::uninit((1 << 16, 1 << 16)), SmartArray::uninit((1 << 16, 1 << 16)));
    bench.launch(false, &kernels.candidates, Grid::new(1, 1), (0.5, &vast, &mut labels));
    bench.assert_counts(300, 1000);
}

fn colours_of_two_sizes(bench: &mut Bench, kernels: &Kernels, one: Size, other: Size, grid: Grid) {
    let overlay = &kernels.overlay;
    for channels in [1, 3, 4] {
        let fits = one == other && channels == 3;
        let (photo, edges) = (photograph(one, channels), picture::<u8>(one));
        bench.launch(fits, &kernels.grey, grid, (&photo, &mut picture::<f32>(other)));
        bench.launch(fits, overlay, grid, (&photo, &edges, &mut photograph(other, channels)));
        let (other_edges, mut target) = (picture::<u8>(other), photograph(one, channels));
        bench.launch(fits, overlay, grid, (&photo, &other_edges, &mut target));
        let (photo, mut target) = (photograph(one, 3), photograph(other, channels));
        bench.launch(fits, overlay, grid, (&photo, &edges, &mut target));
    }
}

fn blurs_of_two_sizes(bench: &mut Bench, kernels: &Kernels, one: Size, other: Size, grid: Grid) {
    for sigma in [1.0, 0.0, 64.0, 100.0, -1.0, f32::NAN] {
        let fits = one == other && (0.0..=64.0).contains(&sigma);
        for blur in [&kernels.blur_rows, &kernels.blur_columns] {
            bench.launch(fits, blur, grid, (sigma, &picture(one), &mut picture(other)));
        }
    }
}

fn edges_of_two_sizes(bench: &mut Bench, kernels: &Kernels, one: Size, other: Size, grid: Grid) {
    let (fits, sobel, thin) = (one == other, &kernels.sobel, &kernels.thin);
    let soft = picture(one);
    bench.launch(fits, sobel, grid, (&soft, &mut picture(other), &mut picture(one)));
    bench.launch(fits, sobel, grid, (&soft, &mut picture(one), &mut picture(other)));
    bench.launch(fits, thin, grid, (&picture(one), &picture(other), &mut picture(one)));
    bench.launch(fits, thin, grid, (&picture(one), &picture(one), &mut picture(other)));
}

fn labels_of_two_sizes(bench: &mut Bench, kernels: &Kernels, one: Size, other: Size, grid: Grid) {
    let (fits, anchor, keep) = (one == other, &kernels.anchor, &kernels.keep);
    bench.launch(fits, &kernels.candidates, grid, (0.5, &picture(one), &mut picture(other)));
    bench.launch(true, &kernels.unite, grid, (&mut picture(one),));
    for (labels, marks) in [(other, one), (other, other), (one, other)] {
        let arguments = (0.5, &picture(one), &picture(labels), &mut picture(marks));
        bench.launch(fits, anchor, grid, arguments);
    }
    bench.launch(fits, keep, grid, (&picture(one), &picture(other), &mut picture(one)));
    bench.launch(fits, keep, grid, (&picture(one), &picture(one), &mut picture(other)));
}

#[test]
pub(crate) fn the_sheet_and_the_histogram_survive_wrong_sizes() {
    let (compose, count) = (sheet::kernel(), brightness::kernel());
    let mut bench = Bench::new(|device| compose.prepare(device));
    each(|one, other, grid| {
        for bins in [0, 1, 255, 256, 257] {
            bench.launch(bins == 256, &count, grid, (&picture(one), &mut SmartArray::zeros(bins)));
        }
        let sheet =
            |(rows, columns): (usize, usize)| photograph((rows, sheet::sheet_columns(columns)), 3);
        for channels in [1, 3, 4] {
            let (fits, photo) = (one == other && channels == 3, photograph(one, channels));
            let arguments = (&photo, &picture(one), &photograph(one, channels), &mut sheet(other));
            bench.launch(fits, &compose, grid, arguments);
            let arguments = (&photo, &picture(one), &photograph(other, channels), &mut sheet(one));
            bench.launch(fits, &compose, grid, arguments);
            let arguments = (&photo, &picture(other), &photograph(one, channels), &mut sheet(one));
            bench.launch(fits, &compose, grid, arguments);
            bench.launch(
                false,
                &compose,
                grid,
                (&photo, &picture(one), &photograph(one, channels), &mut photograph(other, 3)),
            );
        }
    });
    bench.assert_counts(100, 1000);
}

/// Valid labels lead to other pixels. Here some lead out of the picture, and some form cycles.
#[test]
pub(crate) fn labels_may_be_anything() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.grey.prepare(device));
    let (rows, columns) = SIZE;
    let mut numbers = noise(rows * columns, rows * columns);
    numbers.splice(..5, [1, 0, bodies::NO_LABEL, bodies::NO_LABEL - 1, (rows * columns) as u32]);
    let mut labels =
        SmartArray::from(Array2::from_shape_vec(SIZE, numbers).expect("as many as pixels"));
    let (strong, mut anchored) = (SmartArray::full(SIZE, 1.0), picture(SIZE));
    for grid in grids(SIZE) {
        bench.launch(true, &kernels.anchor, grid, (0.5, &strong, &labels, &mut anchored));
        bench.launch(true, &kernels.keep, grid, (&labels, &anchored, &mut picture(SIZE)));
        let arguments = (&strong, &SmartArray::full(SIZE, 255), &mut picture(SIZE));
        bench.launch(true, &kernels.thin, grid, arguments);
    }
    bench.compare(&kernels.anchor, grids(SIZE)[0], (0.5, &strong, &labels, &mut picture(SIZE)));
    bench.compare(&kernels.keep, grids(SIZE)[0], (&labels, &anchored, &mut picture(SIZE)));
    for grid in grids(SIZE) {
        bench.launch(true, &kernels.unite, grid, (&mut labels,));
    }
    assert_eq!(labels.host().expect("all launches were done").dim(), SIZE);
}

#[test]
pub(crate) fn brightness_may_be_anything() {
    let kernel = brightness::kernel();
    let mut bench = Bench::new(|device| kernel.prepare(device));
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, 2.0, f32::MAX, 0.5, -0.0];
    let (grey, mut bins) = (
        SmartArray::from(Array2::from_shape_fn((8, 8), |(row, _)| odd[row])),
        SmartArray::zeros(brightness::BINS),
    );
    bench.launch(true, &kernel, Grid::cover(64), (&grey, &mut bins));
    let bins = bins.host().expect("the launch was done");
    assert_eq!([bins[0], bins[128], bins[255], bins.sum()], [32, 8, 24, 64]);
}
