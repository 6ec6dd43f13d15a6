//! Operations at the sizes at which their bodies begin to split the work, or split it otherwise,
//! beside plain loops: by the length of rows, by their number, along each axis, and with the rows
//! in memory one after the other, side by side, and with gaps.

use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, ShapeBuilder, s};
use resident::{DeviceArray, Result, SmartArray, SmartView, ops};

use crate::{PARALLEL_LEN_MIN, rust};

/// Lengths of lines about those of chunks, and of chunks of chunks.
const LINES: [&[usize]; 10] =
    [&[255], &[256], &[257], &[511], &[513], &[8191], &[8192], &[8193], &[65_535], &[65_537]];

/// Numbers of rows about those from which on rows are reduced side by side, in parts, and by a
/// thread each.
const ROWS: [&[usize]; 10] = [
    &[7, 40],
    &[8, 33],
    &[31, 300],
    &[32, 300],
    &[33, 257],
    &[2048, 3],
    &[2049, 3],
    &[(1 << 14) - 1, 3],
    &[1 << 14, 3],
    &[3, 40, 70],
];

/// Lines about the length from which on all cores work.
const LONG_LINES: [&[usize]; 3] =
    [&[PARALLEL_LEN_MIN - 1], &[PARALLEL_LEN_MIN], &[PARALLEL_LEN_MIN + 1]];

/// Tables for all cores: few long rows, many short ones, and rows side by side that are too many
/// for one task.
const LARGE_TABLES: [&[usize]; 6] = [
    &[2, PARALLEL_LEN_MIN],
    &[3, 2, PARALLEL_LEN_MIN / 6 + 1],
    &[8, PARALLEL_LEN_MIN / 8 + 1],
    &[4097, if cfg!(debug_assertions) { 33 } else { 257 }],
    &[300, if cfg!(debug_assertions) { 513 } else { 5000 }],
    &[1 << 14, if cfg!(debug_assertions) { 9 } else { 65 }],
];

/// How the elements lie in memory.
#[derive(Clone, Copy, Debug)]
enum Order {
    Rows,
    Columns,
    /// Every second element of longer rows.
    Gaps,
}

/// A number from -1000 to 1000 for each index: the same ones occur many times.
fn elements(count: usize, seed: usize) -> Vec<i32> {
    let number = |index: usize| {
        let mixed = (index + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed >> 40) % 2001) as i32 - 1000
    };
    (0..count).map(number).collect()
}

/// An array with these elements; with gaps, its rows are twice as long.
fn ours(shape: &[usize], elements: &[i32], order: Order) -> SmartArray<i32, IxDyn> {
    let rows = ArrayD::from_shape_vec(IxDyn(shape), elements.to_vec()).expect("all elements");
    match order {
        Order::Rows => SmartArray::from(rows),
        Order::Columns => {
            let mut columns = ArrayD::zeros(IxDyn(shape).f());
            columns.assign(&rows);
            SmartArray::from(columns)
        }
        Order::Gaps => {
            let mut longer = shape.to_vec();
            *longer.last_mut().expect("an axis") *= 2;
            let last = Axis(shape.len() - 1);
            let mut spread = ArrayD::from_elem(IxDyn(&longer), i32::MAX);
            spread.slice_axis_mut(last, ndarray::Slice::from(..).step_by(2)).assign(&rows);
            SmartArray::from(spread)
        }
    }
}

fn view_of(array: &SmartArray<i32, IxDyn>, order: Order) -> SmartView<'_, i32, IxDyn> {
    let mut slices = vec![ndarray::SliceInfoElem::from(..); array.ndim()];
    if let Order::Gaps = order {
        slices[array.ndim() - 1] = ndarray::Slice::from(..).step_by(2).into();
    }
    let info: ndarray::SliceInfo<_, IxDyn, IxDyn> = slices.try_into().expect("only slices");
    array.slice(info)
}

/// What plain loops find along an axis, in row-major order.
#[derive(Default)]
struct Along {
    sums: Vec<i32>,
    least: Vec<i32>,
    most: Vec<i32>,
    argmin: Vec<u64>,
    argmax: Vec<u64>,
    /// Has the shape of the array.
    running: Vec<i32>,
}

impl Along {
    fn axis(shape: &[usize], axis: usize, elements: &[i32]) -> Self {
        let (len, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
        let lanes = elements.len() / len;
        let mut along = Self {
            sums: vec![0; lanes],
            least: vec![i32::MAX; lanes],
            most: vec![i32::MIN; lanes],
            argmin: vec![0; lanes],
            argmax: vec![0; lanes],
            running: Vec::with_capacity(elements.len()),
        };
        for (index, element) in elements.iter().enumerate() {
            let lane = index / (len * inner) * inner + index % inner;
            along.add(lane, index / inner % len, *element);
        }
        along
    }

    fn add(&mut self, lane: usize, place: usize, element: i32) {
        self.sums[lane] += element;
        self.running.push(self.sums[lane]);
        if element < self.least[lane] {
            (self.least[lane], self.argmin[lane]) = (element, place as u64);
        }
        if element > self.most[lane] {
            (self.most[lane], self.argmax[lane]) = (element, place as u64);
        }
    }
}

/// Calls `check` with arrays of all shapes in these orders.
fn each(
    shapes: &[&[usize]],
    orders: &[Order],
    check: impl Fn(&[usize], &[i32], &SmartView<'_, i32, IxDyn>) -> Result<()>,
) {
    let _here = rust().enter();
    for shape in shapes {
        let elements = elements(shape.iter().product(), shape[0]);
        for order in orders {
            let array = ours(shape, &elements, *order);
            check(shape, &elements, &view_of(&array, *order))
                .unwrap_or_else(|error| panic!("{shape:?} {order:?}: {error}"));
        }
    }
}

const ALL: [Order; 3] = [Order::Rows, Order::Columns, Order::Gaps];

/// Where memory is walked without gaps.
const DENSE: [Order; 2] = [Order::Rows, Order::Columns];

/// The reductions of all elements that split their work each in its own way.
fn check_whole(shape: &[usize], elements: &[i32], ours: &SmartView<'_, i32, IxDyn>) -> Result<()> {
    let all = Along::axis(&[elements.len()], 0, elements);
    assert_eq!(ours.sum()?, all.sums[0], "{shape:?}");
    assert_eq!(ours.argmin()?, all.argmin[0], "{shape:?}");
    let mut running = SmartArray::<i32, _>::uninit(elements.len());
    ops::cumulative_sum(ours, &mut running)?;
    assert!(running.to_vec()? == all.running, "{shape:?}");
    Ok(())
}

#[test]
fn lines_of_all_lengths_and_numbers_of_rows() {
    each(&[&LINES[..], &ROWS].concat(), &ALL, |shape, elements, ours| {
        check_whole(shape, elements, ours)?;
        let all = Along::axis(&[elements.len()], 0, elements);
        assert_eq!((ours.min()?, ours.max()?), (all.least[0], all.most[0]), "{shape:?}");
        assert_eq!(ours.argmax()?, all.argmax[0], "{shape:?}");
        assert_eq!(ours.mean()?, f64::from(all.sums[0]) / elements.len() as f64, "{shape:?}");
        let squares: f64 = elements.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        assert_eq!(ours.norm_l2()?, squares.sqrt(), "{shape:?}");
        Ok(())
    });
}

#[test]
fn lines_that_all_cores_reduce() {
    each(&LONG_LINES, &[Order::Rows], check_whole);
}

#[test]
fn tables_that_all_cores_reduce() {
    each(&LARGE_TABLES, &DENSE, check_whole);
}

/// The shape without an axis.
fn without(shape: &[usize], axis: usize) -> IxDyn {
    IxDyn(&[&shape[..axis], &shape[axis + 1..]].concat())
}

/// The reductions along each axis that split their work each in its own way.
fn check_axes(shape: &[usize], elements: &[i32], ours: &SmartView<'_, i32, IxDyn>) -> Result<()> {
    for axis in 0..shape.len() {
        let along = Along::axis(shape, axis, elements);
        let mut sums = SmartArray::<i32, _>::uninit(without(shape, axis));
        ops::sum_axis(ours, Axis(axis), &mut sums)?;
        assert!(sums.to_vec()? == along.sums, "sums of {shape:?}, {axis}");
        let mut places = SmartArray::<u64, _>::uninit(without(shape, axis));
        ops::argmin_axis(ours, Axis(axis), &mut places)?;
        assert!(places.to_vec()? == along.argmin, "places of {shape:?}, {axis}");
        let mut running = SmartArray::<i32, _>::uninit(IxDyn(shape));
        ops::cumulative_sum_axis(ours, Axis(axis), &mut running)?;
        assert!(running.to_vec()? == along.running, "running sums of {shape:?}, {axis}");
    }
    Ok(())
}

#[test]
fn rows_of_all_lengths_and_numbers_along_each_axis() {
    each(&[&LINES[..], &ROWS].concat(), &ALL, |shape, elements, ours| {
        check_axes(shape, elements, ours)?;
        for axis in 0..shape.len() {
            let along = Along::axis(shape, axis, elements);
            let mut out = SmartArray::<i32, _>::uninit(without(shape, axis));
            ops::min_axis(ours, Axis(axis), &mut out)?;
            assert!(out.to_vec()? == along.least, "minima of {shape:?}, {axis}");
            ops::max_axis(ours, Axis(axis), &mut out)?;
            assert!(out.to_vec()? == along.most, "maxima of {shape:?}, {axis}");
            let mut places = SmartArray::<u64, _>::uninit(without(shape, axis));
            ops::argmax_axis(ours, Axis(axis), &mut places)?;
            assert!(places.to_vec()? == along.argmax, "places of {shape:?}, {axis}");
            let mut means = SmartArray::<f64, _>::uninit(without(shape, axis));
            ops::mean_axis(ours, Axis(axis), &mut means)?;
            let mut pairs = means.to_vec()?.into_iter().zip(&along.sums);
            let len = shape[axis] as f64;
            assert!(pairs.all(|(mean, sum)| mean == f64::from(*sum) / len), "{shape:?}, {axis}");
        }
        Ok(())
    });
}

#[test]
fn large_tables_along_each_axis_by_all_cores() {
    each(&LARGE_TABLES, &DENSE, check_axes);
}

#[test]
fn products_of_lines_and_tables_of_all_sizes() {
    let check = |shape: &[usize], elements: &[i32], ours: &SmartView<'_, i32, IxDyn>| {
        let squares = elements.iter().fold(0_i32, |sum, x| sum.wrapping_add(x * x));
        assert_eq!(ours.dot(ours)?, squares, "{shape:?}");
        // Beside an array whose rows lie in the usual order.
        let others = self::elements(elements.len(), 99);
        let products = elements.iter().zip(&others);
        let products = products.fold(0_i32, |sum, (x, y)| sum.wrapping_add(x * y));
        let beside = self::ours(shape, &others, Order::Rows);
        assert_eq!((ours.dot(&beside)?, beside.dot(ours)?), (products, products), "{shape:?}");
        Ok(())
    };
    each(&[&LINES[..], &ROWS].concat(), &ALL, check);
    each(&LONG_LINES, &[Order::Rows], check);
    each(&LARGE_TABLES[..3], &[Order::Rows, Order::Gaps], check);
}

#[test]
fn elementwise_operations_at_the_size_from_which_all_cores_work() {
    let shapes = [&LONG_LINES[..], &[&[2, PARALLEL_LEN_MIN / 2]]].concat();
    each(&shapes, &DENSE, |shape, elements, ours| {
        let others = self::elements(elements.len(), 5);
        let beside = self::ours(shape, &others, Order::Rows);
        let mut out = self::ours(shape, elements, Order::Columns);
        let pairs = || elements.iter().zip(&others);
        ops::sub(ours, &beside, &mut out)?;
        assert!(out.to_vec()?.into_iter().eq(pairs().map(|(x, y)| x - y)), "{shape:?}");
        let mask = (0..elements.len()).map(|i| u8::from(i % 3 == 0)).collect();
        let mask = ArrayD::from_shape_vec(IxDyn(shape), mask).expect("all elements");
        ops::select(&SmartArray::from(mask), ours, &beside, &mut out)?;
        let chosen = pairs().enumerate().map(|(i, (x, y))| if i % 3 == 0 { *x } else { *y });
        assert!(out.to_vec()?.into_iter().eq(chosen), "{shape:?}");
        ops::copy(ours, &mut out)?;
        ops::scaled_add(3, &beside, &mut out)?;
        assert!(out.to_vec()?.into_iter().eq(pairs().map(|(x, y)| x + 3 * y)), "{shape:?}");
        Ok(())
    });
}

/// Reads and writes at as many places as all cores have, one fewer, and one more.
#[test]
fn places_at_the_size_from_which_all_cores_work() -> Result<()> {
    let _here = rust().enter();
    for len in [PARALLEL_LEN_MIN - 1, PARALLEL_LEN_MIN, PARALLEL_LEN_MIN + 1] {
        let values = elements(len, 3);
        let index: Vec<u64> = (0..len as u64).map(|n| n.wrapping_mul(7919) % len as u64).collect();
        let (a, places) = (SmartArray::from(values.clone()), SmartArray::from(index.clone()));
        let mut out = SmartArray::<i32, _>::uninit(len);
        ops::gather(&a, &places, &mut out)?;
        let read = index.iter().map(|place| values[*place as usize]);
        assert!(out.to_vec()?.into_iter().eq(read), "{len}");
        // A few places have several writers, and the last of them wins.
        let index: Vec<u64> = index.iter().map(|place| place / 5 * 5).collect();
        let mut expected = vec![-7_i32; len];
        index.iter().zip(&values).for_each(|(place, value)| expected[*place as usize] = *value);
        let mut out = DeviceArray::<i32, _>::full(len, -7)?;
        ops::scatter(&a, &SmartArray::from(index), &mut out)?;
        assert!(out.copy_to_host()?.to_vec() == expected, "{len}");
    }
    Ok(())
}

/// About the number of products from which on all cores multiply, and about the rows and the
/// columns of a task.
#[test]
fn products_of_matrices_at_the_sizes_of_tasks() -> Result<()> {
    let _here = rust().enter();
    for (n, k, m) in
        [(64, 255, 64), (64, 256, 64), (256, 64, 256), (257, 64, 64), (64, 70, 257), (513, 3, 800)]
    {
        let (a, b) = (elements(n * k, 1), elements(k * m, 2));
        let (a, b) = (Array2::from_shape_vec((n, k), a), Array2::from_shape_vec((k, m), b));
        let (a, b) = (a.expect("all elements"), b.expect("all elements"));
        let sum = |i, j| (0..k).map(|l| a[(i, l)] * b[(l, j)]).sum::<i32>();
        let expected = Array2::from_shape_fn((n, m), |(i, j)| sum(i, j));
        let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
        let mut c = SmartArray::<i32, _>::uninit((n, m));
        ops::matmul(&ours_a, &ours_b, &mut c)?;
        assert!(c.host()?.view() == expected, "{n} {k} {m}");
        let turned = SmartArray::from(b.t().as_standard_layout().into_owned());
        let real = |array: &SmartArray<i32, ndarray::Ix2>| {
            let mut real = SmartArray::<f64, _>::uninit(array.raw_dim());
            ops::cast(array, &mut real).map(|()| real)
        };
        let mut c = SmartArray::<f64, _>::uninit((n, m).f());
        ops::matmul(&real(&ours_a)?, &real(&turned)?.t(), &mut c)?;
        assert!(c.host()?.view() == expected.mapv(f64::from), "{n} {k} {m}");
    }
    Ok(())
}

/// The first bad index of many is named, wherever it is.
#[test]
fn a_bad_index_among_many_is_named() -> Result<()> {
    let _here = rust().enter();
    let a = SmartArray::from(Array1::<i32>::zeros(10));
    for (len, bad) in [(PARALLEL_LEN_MIN - 1, 5), (PARALLEL_LEN_MIN, 0), (PARALLEL_LEN_MIN, 77_777)]
    {
        let mut index = vec![3_u64; len];
        (index[bad], index[len - 1]) = (10, 11);
        let (index, mut out) = (SmartArray::from(index), SmartArray::<i32, _>::uninit(len));
        let refused = ops::gather(&a, &index.slice(s![..]), &mut out);
        let named = format!("10, the index at {bad}");
        assert!(refused.is_err_and(|error| error.to_string().contains(&named)), "{len} {bad}");
    }
    Ok(())
}
