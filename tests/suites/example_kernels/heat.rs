//! The kernels of `heat`.

use resident::ndarray::{Array3, Ix3, SliceArg, s};
use resident::{Grid, SmartArray};
use resident_examples::heat::kernels::Kernels;
use resident_examples::heat::waves::POINTS;

use crate::{Bench, pairs};

type Size = (usize, usize, usize);

const SIZES: [Size; 5] = [(6, 8, 4), (8, 6, 4), (1, 1, 1), (0, 5, 2), (3, 17, 33)];

/// The value of the outer elements, which a launch must not write.
const FRAME: f64 = -7.0;

/// Grids for a cube of that size: the right one, a smaller and a larger one.
fn grids((planes, rows, columns): Size) -> [Grid; 3] {
    let block = (4, 4, 32);
    [
        Grid::cover_3d((planes, rows, columns), block),
        Grid::new(1, (3, 2, 2)),
        Grid::cover_3d((planes + 9, rows + 9, columns + 40), block),
    ]
}

fn cube(size: Size) -> SmartArray<f64, Ix3> {
    SmartArray::full(size, 1.0)
}

/// The size with one more element on each side.
fn framed((planes, rows, columns): Size) -> Size {
    (planes + 2, rows + 2, columns + 2)
}

/// The slice without the frame.
fn inner((planes, rows, columns): Size) -> impl SliceArg<Ix3, OutDim = Ix3> {
    s![1..=planes, 1..=rows, 1..=columns]
}

#[test]
pub(crate) fn start_survives_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.start.prepare(device));
    for first_plane in [0, 63, 66, 67, u64::MAX] {
        for planes in [0, 1, 3, POINTS, POINTS + 1] {
            for (rows, columns) in pairs(&[POINTS - 1, POINTS, POINTS + 1, 0]) {
                let fits = first_plane.saturating_add(planes as u64) <= POINTS as u64
                    && (rows, columns) == (POINTS, POINTS);
                for grid in grids((planes, rows, columns)) {
                    bench.launch(
                        fits,
                        &kernels.start,
                        grid,
                        (first_plane, &mut SmartArray::uninit((planes, rows, columns))),
                    );
                }
            }
        }
    }
    bench.assert_counts(20, 1000);
}

#[test]
pub(crate) fn jacobi_survives_wrong_sizes_and_leaves_the_frame_alone() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.jacobi.prepare(device));
    for (one, other) in pairs(&SIZES) {
        for (now, grid) in
            [one, framed(one)].into_iter().flat_map(|now| grids(one).map(|grid| (now, grid)))
        {
            let mut next = SmartArray::full(framed(other), FRAME);
            bench.launch(
                now == framed(other),
                &kernels.jacobi,
                grid,
                (&cube(now), &mut next.slice_mut(inner(other))),
            );
            let mut next = next.into_array().expect("the launch was done or refused");
            next.slice_mut(inner(other)).fill(FRAME);
            assert_eq!(
                next,
                Array3::from_elem(framed(other), FRAME),
                "from {now:?} to {other:?} on {grid:?}"
            );
        }
    }
    bench.assert_counts(15, 100);
}

#[test]
pub(crate) fn residual_survives_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.residual.prepare(device));
    for (one, other) in pairs(&SIZES) {
        for (numbers, grid) in
            [0, 1, 2].into_iter().flat_map(|numbers| grids(one).map(|grid| (numbers, grid)))
        {
            let fits = one == other && numbers == 1;
            bench.launch(
                fits,
                &kernels.residual,
                grid,
                (&cube(one), &cube(other), &mut SmartArray::zeros(numbers)),
            );
        }
    }
    bench.assert_counts(15, 200);
}
