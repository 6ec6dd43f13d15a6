//! Operations on corresponding elements give what ndarray gives, and touch nothing beside.

use ndarray::{ArrayD, IxDyn, Zip, arr2, s};
use resident::ops::{self, Arithmetic, Ordered, Right, Unary};
use resident::{Device, Result, SmartArray};

use crate::part::{Part, Random, Sample, on_device};
use crate::{LARGE_SIDE, cuda, devices, rust, sample};

/// How many random cases there are for each type on a device, and their most axes.
pub(crate) type Cases = (u64, usize);

fn many() -> Cases {
    (sample(20, 60), 5)
}

/// Each number of axes is compiled by a C++ compiler.
const FEW: Cases = (25, 3);

/// Calls `check` on the devices, with random parts of one shape and the number of the case.
fn each_case(
    devices: [Option<(Device, Cases)>; 2],
    check: impl Fn(&mut Random, &[usize]) -> Result<()>,
) {
    for (device, (cases, axes_max)) in devices.into_iter().flatten() {
        let _here = device.enter();
        for case in 0..cases {
            let mut random = Random::new(case + 1);
            let shape = Part::shape(axes_max, &mut random);
            check(&mut random, &shape)
                .unwrap_or_else(|error| panic!("case {case}, shape {shape:?}: {error}"));
        }
    }
}

fn both() -> [Option<(Device, Cases)>; 2] {
    [Some((rust(), many())), cuda().map(|device| (device, FEW))]
}

/// In CUDA C usually on one axis.
fn both_on_lines() -> [Option<(Device, Cases)>; 2] {
    [Some((rust(), many())), cuda().map(|device| (device, sample((12, 1), FEW)))]
}

pub(crate) fn rust_only() -> [Option<(Device, Cases)>; 2] {
    [Some((rust(), many())), None]
}

/// Runs an operation on parts of two arrays into a part of a third, and compares all of the third.
fn check_two<T: Sample>(
    random: &mut Random,
    shape: &[usize],
    operation: impl Fn(
        &resident::SmartView<'_, T, IxDyn>,
        &resident::SmartView<'_, T, IxDyn>,
        &mut resident::SmartViewMut<'_, T, IxDyn>,
    ) -> Result<()>,
    expected: impl Fn(T, T) -> T,
) -> Result<()> {
    let [of_a, of_b, of_out] = [(); 3].map(|()| Part::of_shape(shape, random));
    let (a, b): (ArrayD<T>, ArrayD<T>) = (of_a.array(random), of_b.array(random));
    let mut out: ArrayD<T> = of_out.array(random);
    let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
    let mut ours = SmartArray::from(out.clone());
    operation(&of_a.of_ours(&ours_a), &of_b.of_ours(&ours_b), &mut of_out.of_ours_mut(&mut ours))?;
    let mut sums = of_out.of(&out).to_owned();
    Zip::from(&mut sums)
        .and(of_a.of(&a))
        .and(of_b.of(&b))
        .for_each(|sum, a, b| *sum = expected(*a, *b));
    assign(&of_out, &mut out, &sums);
    assert!(ours.into_array()? == out, "{of_a:?} {of_b:?} {of_out:?}");
    Ok(())
}

/// Writes the part of an array.
fn assign<T: Sample>(part: &Part, array: &mut ArrayD<T>, values: &ArrayD<T>) {
    let numbers = ArrayD::from_shape_vec(array.raw_dim(), (0..array.len()).collect())
        .expect("as many as elements");
    let places: Vec<usize> = part.of(&numbers).iter().copied().collect();
    let memory = array.as_slice_mut().expect("a new array");
    places.into_iter().zip(values).for_each(|(place, value)| memory[place] = *value);
}

pub(crate) fn arithmetic<T: Sample + Arithmetic + Right<T>>(
    devices: fn() -> [Option<(Device, Cases)>; 2],
    [add, sub, mul, div]: [fn(T, T) -> T; 4],
) {
    each_case(devices(), |random, shape| {
        check_two(random, shape, |a, b, c| ops::add(a, b, c), add)?;
        check_two(random, shape, |a, b, c| ops::sub(a, b, c), sub)?;
        check_two(random, shape, |a, b, c| ops::mul(a, b, c), mul)?;
        check_two(random, shape, |a, b, c| ops::div(a, b, c), div)
    });
    // On one axis, for which there are fewer kernels to compile.
    let lines = devices().map(|entry| entry.map(|(device, (cases, _))| (device, (cases, 1))));
    each_case(lines, |random, shape| {
        let number = T::sample(random);
        check_two(random, shape, |a, _, c| ops::add(a, number, c), |a, _| add(a, number))?;
        check_two(random, shape, |a, _, c| ops::sub(a, number, c), |a, _| sub(a, number))?;
        check_two(random, shape, |a, _, c| ops::mul(a, number, c), |a, _| mul(a, number))?;
        check_two(random, shape, |a, _, c| ops::div(a, number, c), |a, _| div(a, number))
    });
}

macro_rules! integers {
    ($($name:ident $type:ty, $devices:ident;)+) => {
        $(#[test]
        fn $name() {
            arithmetic::<$type>($devices, [
                <$type>::wrapping_add,
                <$type>::wrapping_sub,
                <$type>::wrapping_mul,
                |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
            ]);
        })+
    };
}

integers! {
    arithmetic_of_i32 i32, both;
    arithmetic_of_i64 i64, rust_only;
    arithmetic_of_u32 u32, rust_only;
    arithmetic_of_u64 u64, rust_only;
    arithmetic_of_u8 u8, both_on_lines;
}

#[test]
fn arithmetic_of_f32() {
    arithmetic::<f32>(both_on_lines, [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b]);
}

#[test]
fn arithmetic_of_f64() {
    arithmetic::<f64>(rust_only, [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b]);
}

#[test]
fn scaled_add_clamp_and_select() {
    let in_cuda_c = cuda().map(|device| (device, sample((20, 2), FEW)));
    each_case([Some((rust(), many())), in_cuda_c], |random, shape| {
        let alpha = i32::sample(random);
        let add = |a: i32, b: i32| a.wrapping_add(b.wrapping_mul(alpha));
        check_two(
            random,
            shape,
            |a, b, c| {
                ops::copy(a, c)?;
                ops::scaled_add(alpha, b, c)
            },
            add,
        )?;
        check_two::<i32>(random, shape, |a, _, c| ops::clamp(a, -3, 4, c), |a, _| a.clamp(-3, 4))?;
        let mask = SmartArray::from(ArrayD::from_elem(vec![1; shape.len()], 7_u8));
        check_two::<i32>(random, shape, |a, b, c| ops::select(&mask, a, b, c), |a, _| a)?;
        let none = SmartArray::<u8, _>::zeros(IxDyn(&[]));
        check_two::<i32>(random, shape, |a, b, c| ops::select(&none, a, b, c), |_, b| b)
    });
}

#[test]
fn select_takes_each_element_by_its_mask() -> Result<()> {
    for (_, _here) in devices() {
        let mask = SmartArray::from(arr2(&[[0_u8, 1, 2], [255, 0, 0]]));
        let (a, b) = (SmartArray::from([1_u64, 2, 3]), SmartArray::full((2, 1), 9_u64));
        let mut c = SmartArray::<u64, _>::uninit((2, 3));
        ops::select(&mask, &a, &b, &mut c)?;
        assert_eq!(c.to_vec()?, [9, 2, 3, 1, 9, 9]);
    }
    Ok(())
}

fn casts<T: Sample + Arithmetic, U: Sample + Arithmetic>(device: &Device, cast: fn(T) -> U) {
    let _here = device.enter();
    let mut random = Random::new(5);
    let part = Part::of_shape(&[4, 50], &mut random);
    let a: ArrayD<T> = part.array(&mut random);
    let ours = SmartArray::from(a.clone());
    let mut out = SmartArray::<U, _>::uninit((4, 50));
    ops::cast(&part.of_ours(&ours), &mut out).expect("shapes fit");
    let expected = part.of(&a).mapv(cast);
    assert_eq!(out.into_array().expect("written").into_dyn(), expected);
}

macro_rules! cast_from {
    ($device:expr, $from:ty => $($to:ty),+) => {
        $(casts::<$from, $to>($device, |value| value as $to);)+
    };
}

macro_rules! cast_all {
    ($device:expr, $($from:ty),+) => {
        $(cast_from!($device, $from => f32, f64, i32, i64, u32, u64, u8);)+
    };
}

#[test]
fn casts_are_those_of_rust() {
    cast_all!(&rust(), f32, f64, i32, i64, u32, u64, u8);
    if let Some(device) = cuda() {
        cast_from!(&device, f32 => i32, f64);
        cast_from!(&device, i64 => u8, f32);
        if sample(false, true) {
            cast_from!(&device, f32 => u8);
            cast_from!(&device, i64 => i32);
            cast_from!(&device, u8 => f32);
        }
    }
}

/// Values at and beyond the ends of the integers.
#[test]
fn casts_of_extreme_floats_are_those_of_rust() -> Result<()> {
    let values = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.9,
        255.5,
        256.0,
        2147483647.5,
        -2147483648.9,
        4294967296.0,
        9.3e18,
        -9.3e18,
        1.8446744073709552e19,
        1e300,
    ];
    macro_rules! check {
        ($($to:ty),+) => {
            $({
                let mut out = SmartArray::<$to, _>::uninit(values.len());
                ops::cast(&SmartArray::from(values), &mut out)?;
                assert_eq!(out.to_vec()?, values.map(|value| value as $to));
                let small = values.map(|value| value as f32);
                ops::cast(&SmartArray::from(small), &mut out)?;
                assert_eq!(out.to_vec()?, small.map(|value| value as $to));
            })+
        };
    }
    for (is_rust, (_, _here)) in [true, false].into_iter().zip(devices()) {
        check!(u8, i64);
        if is_rust || sample(false, true) {
            check!(i32, u32, u64);
        }
    }
    Ok(())
}

#[test]
fn copies_are_exact_for_every_size_of_element() {
    fn copy<T: Sample + Arithmetic>(devices: [Option<(Device, Cases)>; 2]) {
        each_case(devices, |random, shape| {
            check_two::<T>(random, shape, |a, _, c| ops::copy(a, c), |a, _| a)
        });
    }
    copy::<f32>(both());
    copy::<u8>(rust_only());
    copy::<f64>(rust_only());
    copy::<i32>(rust_only());
}

/// Large enough for all cores and for tiles.
#[test]
fn large_operands_are_walked_in_pieces() -> Result<()> {
    let _here = rust().enter();
    let (rows, columns) = (LARGE_SIDE, LARGE_SIDE + 2);
    let table =
        ndarray::Array2::from_shape_fn((rows, columns), |(i, j)| (i * 7919 + j * 31) as i32);
    let ours = SmartArray::from(table.clone());
    let mut turned = SmartArray::<i32, _>::uninit((columns, rows));
    ops::copy(&ours.t(), &mut turned)?;
    assert_eq!(turned.host()?.view(), table.t());
    let mut sums = SmartArray::<i32, _>::uninit((rows, columns));
    ops::add(&ours, &turned.t(), &mut sums)?;
    assert_eq!(sums.host()?.view(), &table + &table);
    let mut every_other = SmartArray::<i32, _>::uninit((rows, columns.div_ceil(2)));
    ops::sub(&ours.slice(s![.., ..;2]), &sums.slice(s![.., ..;-2]), &mut every_other)?;
    let doubled = &table + &table;
    assert_eq!(
        every_other.host()?.view(),
        &table.slice(s![.., ..;2]) - &doubled.slice(s![.., ..;-2])
    );
    Ok(())
}

/// Each function, and its value.
type Function = (Unary, fn(f64) -> f64);

const FUNCTIONS: [Function; 19] = [
    (Unary::Neg, |x| -x),
    (Unary::Abs, f64::abs),
    (Unary::Sign, |x| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
    (Unary::Square, |x| x * x),
    (Unary::Reciprocal, |x| 1.0 / x),
    (Unary::Sqrt, f64::sqrt),
    (Unary::Exp, f64::exp),
    (Unary::Exp2, f64::exp2),
    (Unary::Log, f64::ln),
    (Unary::Log2, f64::log2),
    (Unary::Log10, f64::log10),
    (Unary::Sin, f64::sin),
    (Unary::Cos, f64::cos),
    (Unary::Tan, f64::tan),
    (Unary::Tanh, f64::tanh),
    (Unary::Floor, f64::floor),
    (Unary::Ceil, f64::ceil),
    (Unary::Round, f64::round),
    (Unary::Trunc, f64::trunc),
];

#[test]
fn functions_have_the_values_of_rusts() -> Result<()> {
    let xs = [-2.5, -1.5, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.5, 9.75];
    for (every, (device, _here)) in [1, sample(4, 1)].into_iter().zip(devices()) {
        for (function, value) in FUNCTIONS.into_iter().step_by(every) {
            let mut ys = SmartArray::<f64, _>::uninit((2, xs.len()));
            ops::map(function, &SmartArray::from(xs), &mut ys)?;
            for (x, y) in xs.iter().chain(&xs).zip(ys.to_vec()?) {
                let expected = value(*x);
                let is_near = (y - expected).abs() <= 1e-14 * expected.abs();
                assert!(
                    y == expected || is_near || (y.is_nan() && expected.is_nan()),
                    "{function:?} of {x} is {y} on {device}, not {expected}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn functions_of_integers_wrap_around() -> Result<()> {
    let xs = [i32::MIN, -7, 0, 1, 50_000];
    for (_, _here) in devices() {
        let map = |function| {
            let mut ys = SmartArray::<i32, _>::uninit(xs.len());
            ops::map(function, &SmartArray::from(xs), &mut ys)?;
            ys.to_vec()
        };
        assert_eq!(map(Unary::Neg)?, xs.map(i32::wrapping_neg));
        assert_eq!(map(Unary::Abs)?, xs.map(i32::wrapping_abs));
        assert_eq!(map(Unary::Sign)?, [-1, -1, 0, 1, 1]);
        assert_eq!(map(Unary::Square)?, xs.map(|x| x.wrapping_mul(x)));
        assert_eq!(map(Unary::Round)?, xs);
    }
    Ok(())
}

#[test]
fn device_arrays_and_their_parts_are_operands() -> Result<()> {
    for (_, _here) in devices() {
        let table = ndarray::Array2::from_shape_fn((6, 5), |(i, j)| (10 * i + j) as f32);
        let (a, mut out) =
            (on_device(&table.clone().into_dyn()), on_device(&table.clone().into_dyn()));
        ops::add(&a, &SmartArray::<f32, _>::ones(5), &mut out)?;
        assert_eq!(out.copy_to_host()?, (&table + 1.0).into_dyn());
        let two = resident::DeviceArray::<f32, _>::full((6, 5), 2.0)?;
        let mut half = resident::DeviceArray::<f32, _>::zeros((6, 5))?;
        ops::mul(
            &two.slice(s![..;2, 1..]),
            &two.slice(s![1..4, ..4]),
            &mut half.slice_mut(s![3.., 1..]),
        )?;
        assert_eq!(half.copy_to_host()?.sum(), 48.0);
    }
    Ok(())
}

#[test]
fn nan_stays_in_clamp() -> Result<()> {
    for (_, _here) in devices() {
        let mut out = SmartArray::<f32, _>::uninit(3);
        ops::clamp(&SmartArray::from([f32::NAN, 9.0, -9.0]), -1.0, 1.0, &mut out)?;
        let found = out.to_vec()?;
        assert!(found[0].is_nan() && found[1..] == [1.0, -1.0], "{found:?}");
        ops::clamp(&SmartArray::from([3.0_f32, 9.0, -9.0]), 5.0, 1.0, &mut out)?;
        assert_eq!(out.to_vec()?, [1.0; 3], "as NumPy's clip");
    }
    Ok(())
}

/// Of the parts of arrays too, whose other elements stay.
fn nan_bounds_of<T: Ordered + Into<f64>>(of: fn(f32) -> T) -> Result<()> {
    let table = |[a, b, c, d, e, f]: [f32; 6]| {
        SmartArray::from(arr2(&[[a, b, c], [d, e, f]].map(|row| row.map(of))))
    };
    let a = table([0.5, f32::NEG_INFINITY, 0.0, f32::NAN, f32::INFINITY, -0.0]);
    let (nan, one) = (of(f32::NAN), of(1.0));
    for (low, high) in [(nan, one), (one, nan), (nan, nan)] {
        let mut out = table([7.0; 6]);
        ops::clamp(&a.slice(s![.., ..2]), low, high, &mut out.slice_mut(s![.., ..2]))?;
        let found: Vec<f64> = out.to_vec()?.into_iter().map(Into::into).collect();
        assert!([0, 1, 3, 4].into_iter().all(|at| found[at].is_nan()), "{found:?}");
        assert_eq!([found[2], found[5]], [7.0; 2]);
    }
    let mut out = table([7.0; 6]);
    ops::clamp(&a, of(-1.0), one, &mut out)?;
    let found: Vec<f64> = out.to_vec()?.into_iter().map(Into::into).collect();
    assert!(found[3].is_nan(), "{found:?}");
    assert_eq!([found[0], found[1], found[2], found[4]], [0.5, -1.0, 0.0, 1.0]);
    assert!(found[5] == 0.0 && found[5].is_sign_negative());
    Ok(())
}

#[test]
fn nan_bounds_of_clamp_give_nan() -> Result<()> {
    for (_, _here) in devices() {
        nan_bounds_of::<f32>(|x| x)?;
        nan_bounds_of::<f64>(f64::from)?;
        nan_bounds_of(half::f16::from_f32)?;
        nan_bounds_of(half::bf16::from_f32)?;
    }
    Ok(())
}
