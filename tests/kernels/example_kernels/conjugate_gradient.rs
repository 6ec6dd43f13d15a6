//! The kernels of `conjugate_gradient`.

use resident::ndarray::{Array1, Ix1};
use resident::{Grid, SmartArray};
use resident_example_programs::conjugate_gradient::kernels::{BLOCK, Kernels, Vector};

use crate::{Bench, noise, pairs};

const LENS: [usize; 7] = [0, 1, 2, 255, 256, 257, 1000];

/// Grids for vectors of that length: the right one, one that covers too little, one that covers too
/// much, and one of more than one dimension.
fn grids(len: usize) -> [Grid; 4] {
    [Grid::cover(len), Grid::new(1, 7), Grid::cover(len + 1000), Grid::new((2, 2), (BLOCK, 2))]
}

/// Integers, whose sums are exact in any order.
fn vector(len: usize) -> Vector {
    SmartArray::from((0..len).map(|index| (index % 7) as f64).collect::<Vec<_>>())
}

/// Indices of entries or columns, of which about half are in range.
fn places(len: usize, end: usize) -> SmartArray<u32, Ix1> {
    SmartArray::from(noise(len, end))
}

#[test]
pub(crate) fn multiply_survives_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.multiply.prepare(device));
    for (one, other) in pairs(&LENS) {
        let (values, columns, starts) = (vector(one), places(one, other), places(one + 1, one));
        for grid in grids(one) {
            let product = || Vector::zeros(one);
            let arguments = (&values, &places(other, one), &starts, &vector(one), &mut product());
            bench.launch(one == other, &kernels.multiply, grid, arguments);
            let arguments = (&values, &columns, &places(other, one), &vector(one), &mut product());
            bench.launch(other == one + 1, &kernels.multiply, grid, arguments);
            let arguments = (&values, &columns, &starts, &vector(other), &mut product());
            bench.launch(true, &kernels.multiply, grid, arguments);
            let arguments = (&values, &columns, &starts, &vector(one), &mut Vector::zeros(other));
            bench.launch(one == other, &kernels.multiply, grid, arguments);
        }
    }
    bench.assert_counts(200, 400);
}

#[test]
pub(crate) fn vectors_survive_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.add.prepare(device));
    for (one, other) in pairs(&LENS) {
        for (number, grid) in
            [0, 1, 2].into_iter().flat_map(|number| grids(one).map(|grid| (number, grid)))
        {
            let fits = one == other && number == 1;
            let arguments = (&vector(number), &vector(one), &mut vector(other));
            bench.launch(fits, &kernels.add, grid, arguments);
            let arguments = (&vector(number), &vector(1), &vector(one), &mut vector(other));
            bench.launch(fits, &kernels.turn, grid, arguments);
            let arguments = (&vector(1), &vector(number), &vector(one), &mut vector(other));
            bench.launch(fits, &kernels.turn, grid, arguments);
        }
    }
    bench.assert_counts(80, 1000);
}

#[test]
pub(crate) fn products_survive_wrong_sizes_and_wrong_blocks() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.dot.prepare(device));
    for (one, other) in pairs(&LENS) {
        for (number, grid) in
            [0, 1, 2].into_iter().flat_map(|number| grids(one).map(|grid| (number, grid)))
        {
            let is_block = grid.blocks().count() == 1 && grid.threads() == BLOCK.into();
            let fits = one == other && number == 1;
            let arguments = (&vector(one), &vector(other), &mut vector(number));
            bench.launch(fits && is_block, &kernels.dot, grid, arguments);
            let arguments = (&vector(one), &vector(other), &mut vector(number));
            bench.launch(fits, &kernels.dot, Grid::new(1, BLOCK), arguments);
        }
    }
    bench.assert_counts(20, 400);
}

#[test]
pub(crate) fn a_step_survives_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.step.prepare(device));
    for (square, (curvature, step)) in [0, 1, 2]
        .into_iter()
        .flat_map(|square| pairs(&[0, 1, 2, 3]).map(move |others| (square, others)))
    {
        for (negative, grid) in [0, 1, 2].into_iter().flat_map(|n| grids(1).map(|grid| (n, grid))) {
            let fits = [square, curvature, step, negative] == [1; 4];
            let (mut step, mut negative) = (vector(step), vector(negative));
            let arguments = (&vector(square), &vector(curvature), &mut step, &mut negative);
            bench.launch(fits, &kernels.step, grid, arguments);
        }
    }
    bench.assert_counts(4, 100);
}

/// Rows that start or end beyond the matrix or run backwards, and columns outside the vector: such
/// entries count as zeros.
#[test]
pub(crate) fn a_matrix_may_hold_anything() {
    const FAR: u32 = u32::MAX;
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.multiply.prepare(device));
    let (values, columns) =
        (SmartArray::from(vec![1.0, 2.0, 4.0, 8.0]), SmartArray::from(vec![0, 9, FAR, 1]));
    let (starts, vector) =
        (SmartArray::from(vec![0, 4, FAR, 3, FAR, FAR, 1, 0]), SmartArray::from(vec![16.0, 32.0]));
    let mut product = Vector::zeros(7);
    let arguments = (&values, &columns, &starts, &vector, &mut product);
    bench.launch(true, &kernels.multiply, Grid::cover(7), arguments);
    let product = product.host().expect("the launch was done").to_vec();
    assert_eq!(product, [16.0 + 8.0 * 32.0, 0.0, 0.0, 8.0 * 32.0, 0.0, 0.0, 0.0]);
    assert_eq!(starts.host().expect("it was only read")[6], 1);
}

/// The product of a matrix, which may contain any values, with a vector. An entry or column index
/// outside the arrays counts as a zero.
fn times((values, columns, starts): (&[f64], &[u32], &[u32]), vector: &[f64]) -> Vec<f64> {
    let entry = |index: usize| {
        vector.get(columns[index] as usize).map_or(0.0, |element| values[index] * element)
    };
    let row = |bounds: &[u32]| {
        let end = (bounds[1] as usize).min(values.len());
        (bounds[0] as usize..end).map(entry).sum()
    };
    starts.windows(2).map(row).collect()
}

/// All numbers are integers, so the sums are exact in any order.
#[test]
pub(crate) fn a_matrix_of_noise_is_multiplied_as_by_a_loop() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.multiply.prepare(device));
    for (entries, len) in pairs(&LENS) {
        let (columns, starts, mut product) =
            (places(entries, len), places(len + 1, entries), Vector::zeros(len));
        let (values, vector) = (vector(entries), vector(len));
        let arguments = (&values, &columns, &starts, &vector, &mut product);
        bench.launch(true, &kernels.multiply, Grid::cover(len), arguments);
        let of = |array: &Vector| array.to_vec().expect("it was only read");
        let of_places = |array: &SmartArray<u32, Ix1>| array.to_vec().expect("it was only read");
        let matrix = (&*of(&values), &*of_places(&columns), &*of_places(&starts));
        assert_eq!(of(&product), times(matrix, &of(&vector)), "{entries} entries, {len} rows");
    }
}

#[test]
pub(crate) fn vectors_become_those_of_ndarray() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.dot.prepare(device));
    for len in LENS {
        let (x, y) = (vector(len), Array1::from_iter((0..len).map(|i| (i % 5) as f64 - 2.0)));
        let x_here = x.host().expect("nothing was launched").to_owned();
        let number = |value: f64| SmartArray::from(vec![value]);
        let (mut product, mut sum) = (number(0.0), SmartArray::from(y.clone()));
        bench.launch(true, &kernels.dot, Grid::new(1, BLOCK), (&x, &sum, &mut product));
        assert_eq!(product.get(0).expect("the launch was done"), x_here.dot(&y));
        bench.launch(true, &kernels.add, Grid::cover(len), (&number(0.5), &x, &mut sum));
        assert_eq!(sum.host().expect("the launch was done"), &y + 0.5 * &x_here);
        let mut direction = SmartArray::from(y.clone());
        let arguments = (&number(3.0), &number(4.0), &x, &mut direction);
        bench.launch(true, &kernels.turn, Grid::cover(len), arguments);
        assert_eq!(direction.host().expect("the launch was done"), &x_here + 0.75 * &y);
    }
    let (square, curvature) = (SmartArray::from(vec![1.0]), SmartArray::from(vec![4.0]));
    let (mut step, mut negative) = (vector(1), vector(1));
    let arguments = (&square, &curvature, &mut step, &mut negative);
    bench.launch(true, &kernels.step, Grid::new(1, 1), arguments);
    assert_eq!([step, negative].map(|number| number.get(0)), [Ok(0.25), Ok(-0.25)]);
}
