//! The kernels of `heat`.

use resident::ndarray::{Array3, ArrayView3, Ix3, SliceArg, Zip, s};
use resident::{Grid, SmartArray};
use resident_example_programs::heat::kernels::Kernels;
use resident_example_programs::heat::waves::{POINTS, WAVES, heat};

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
                    let arguments = (first_plane, &mut SmartArray::uninit((planes, rows, columns)));
                    bench.launch(fits, &kernels.start, grid, arguments);
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
            let arguments = (&cube(now), &mut next.slice_mut(inner(other)));
            bench.launch(now == framed(other), &kernels.jacobi, grid, arguments);
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
            let arguments = (&cube(one), &cube(other), &mut SmartArray::zeros(numbers));
            bench.launch(fits, &kernels.residual, grid, arguments);
        }
    }
    bench.assert_counts(15, 200);
}

#[test]
pub(crate) fn the_start_is_the_sum_of_the_waves() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.start.prepare(device));
    for (first_plane, planes) in [(0, 3), (32, 2), (63, 3)] {
        let size = (planes, POINTS, POINTS);
        let mut filled = SmartArray::uninit(size);
        bench.launch(true, &kernels.start, grids(size)[0], (first_plane as u64, &mut filled));
        let expected = Array3::from_shape_fn(size, |(plane, row, column)| {
            heat(&WAVES, [first_plane + plane, row, column])
        });
        let filled = filled.host().expect("the launch was done").to_owned();
        let difference = change(&filled, &expected);
        assert!(difference < 1e-14, "{difference:e} from plane {first_plane} on");
    }
}

/// The mean of the six neighbours. `now` has one window (a point and its neighbours) for each
/// point of the result.
fn stepped(now: ArrayView3<'_, f64>) -> Array3<f64> {
    Zip::from(now.windows((3, 3, 3))).map_collect(|around| {
        let (planes, rows) =
            (around[[0, 1, 1]] + around[[2, 1, 1]], around[[1, 0, 1]] + around[[1, 2, 1]]);
        (planes + rows + around[[1, 1, 0]] + around[[1, 1, 2]]) / 6.0
    })
}

/// The largest absolute difference of two arrays with the same shape.
fn change(before: &Array3<f64>, after: &Array3<f64>) -> f64 {
    (after - before).mapv(f64::abs).fold(0.0, |one, two| two.max(one))
}

#[test]
pub(crate) fn steps_and_residuals_are_those_of_ndarray() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.jacobi.prepare(device));
    for size in SIZES.into_iter().filter(|size| size.0 > 0) {
        let value = |(plane, row, column)| ((plane * 31 + row * 17 + column * 7) % 23) as f64 / 3.0;
        let now = Array3::from_shape_fn(framed(size), value);
        let (before, expected) = (now.slice(inner(size)).to_owned(), stepped(now.view()));
        let (now, mut next) = (SmartArray::from(now), SmartArray::uninit(size));
        bench.launch(true, &kernels.jacobi, grids(size)[0], (&now, &mut next));
        let after = next.host().expect("the launch was done").to_owned();
        assert!(change(&after, &expected) < 1e-14, "{after} and {expected}");
        let mut largest = SmartArray::zeros(1);
        let (grid, before_there) = (grids(size)[0], SmartArray::from(before.clone()));
        bench.launch(true, &kernels.residual, grid, (&before_there, &next, &mut largest));
        let largest: f64 = largest.get(0).expect("the launch was done");
        assert_eq!(largest, change(&before, &after));
    }
}
