//! `Elementwise`: each type, each layout, arrays of both kinds, on devices that run the body in
//! Rust, the text, and the text while it is checked.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use half::{bf16, f16};
use ndarray::{ArrayD, Ix2, IxDyn, Zip, arr2, s};
use resident::ops::{Arithmetic, Elementwise};
use resident::{Device, DeviceArray, Emulation, Error, In, InOut, Out, Result, SmartArray};

use crate::half_floats::{BF16, F16, integers};
use crate::part::{Part, Random, Sample, on_device};
use crate::{PARALLEL_LEN_MIN, compiling, devices, rust, sample};

/// A device that runs texts, and checks each access.
pub(crate) fn checked() -> Device {
    Device::emulated(Emulation::new().prefer_cuda(true).sanitize(true))
}

pub(crate) fn all() -> [Device; 3] {
    [rust(), compiling(), checked()]
}

/// `z += x - y` of a type.
fn add_difference<T: Arithmetic>(
    change: impl Fn(T, T, T) -> T + Send + Sync + 'static,
) -> Elementwise<(In<T>, In<T>, InOut<T>)> {
    Elementwise::<(In<T>, In<T>, InOut<T>)>::new("add_difference", "z += x - y", ["x", "y", "z"])
        .host(move |(x, y, z)| *z = change(x, y, *z))
}

/// Applies `z += x - y` to random parts of random arrays, and compares all of `z`.
fn check_parts<T: Sample + Arithmetic>(
    operation: &Elementwise<(In<T>, In<T>, InOut<T>)>,
    change: impl Fn(T, T, T) -> T,
    shape: &[usize],
    random: &mut Random,
) -> Result<()> {
    let [of_x, of_y, of_z] = [(); 3].map(|()| Part::of_shape(shape, random));
    let (x, y): (ArrayD<T>, ArrayD<T>) = (of_x.array(random), of_y.array(random));
    let mut z: ArrayD<T> = of_z.array(random);
    let ours_x = SmartArray::from(x.clone());
    let mut ours_z = SmartArray::from(z.clone());
    let ours_y = on_device(&of_y.of(&y).to_owned());
    operation.apply((&of_x.of_ours(&ours_x), &ours_y, &mut of_z.of_ours_mut(&mut ours_z)))?;
    let mut part = of_z.of_mut(&mut z);
    Zip::from(&mut part)
        .and(of_x.of(&x))
        .and(of_y.of(&y))
        .for_each(|z, x, y| *z = change(*x, *y, *z));
    assert!(ours_z.into_array()? == z, "{of_x:?} {of_y:?} {of_z:?}");
    Ok(())
}

/// Random parts of up to three axes, on the current device.
pub(crate) fn parts<T: Sample + Arithmetic>(
    change: impl Fn(T, T, T) -> T + Copy + Send + Sync + 'static,
    cases: u64,
) -> Result<()> {
    let operation = add_difference(change);
    (0..cases).try_for_each(|case| {
        let mut random = Random::new(case + 1);
        let shape = Part::shape(3, &mut random);
        check_parts(&operation, change, &shape, &mut random)
    })
}

#[test]
fn each_layout() -> Result<()> {
    for (device, cases) in all().into_iter().zip(sample([60, 5, 2], [200, 16, 6])) {
        let _here = device.enter();
        parts::<f32>(|x, y, z| z + (x - y), cases)?;
    }
    Ok(())
}

fn each_type_of<T: Sample + Arithmetic>(
    change: impl Fn(T, T, T) -> T + Copy + Send + Sync + 'static,
) -> Result<()> {
    let operation = add_difference(change);
    for (has_gaps, (_, _here)) in [true, sample(false, true)].into_iter().zip(devices()) {
        let mut random = Random::new(7);
        if has_gaps {
            check_parts(&operation, change, &[5, 9], &mut random)?;
        }
        let [x, y] = [(); 2].map(|()| {
            SmartArray::from((0..700).map(|_| T::sample(&mut random)).collect::<Vec<_>>())
        });
        let mut z = y.try_clone()?;
        operation.apply((&x, &y, &mut z))?;
        let (x, y, z) = (x.to_vec()?, y.to_vec()?, z.to_vec()?);
        let expected = x.iter().zip(&y).map(|(x, y)| change(*x, *y, *y));
        assert!(expected.zip(&z).all(|(expected, z)| expected == *z));
    }
    Ok(())
}

macro_rules! types {
    ($($name:ident: $type:ty, $change:expr;)+) => {
        $(#[test]
        fn $name() -> Result<()> {
            each_type_of::<$type>($change)
        })+
    };
}

types! {
    of_f64: f64, |x, y, z| z + (x - y);
    of_i32: i32, |x, y, z| z.wrapping_add(x.wrapping_sub(y));
    of_i64: i64, |x, y, z| z.wrapping_add(x.wrapping_sub(y));
    of_u32: u32, |x, y, z| z.wrapping_add(x.wrapping_sub(y));
    of_u64: u64, |x, y, z| z.wrapping_add(x.wrapping_sub(y));
    of_u8: u8, |x, y, z| z.wrapping_add(x.wrapping_sub(y));
    of_f16: f16, |x, y, z| f16::from_f32(z.to_f32() + (x.to_f32() - y.to_f32()));
    of_bf16: bf16, |x, y, z| bf16::from_f32(z.to_f32() + (x.to_f32() - y.to_f32()));
}

#[test]
fn inputs_broadcast_to_outputs() -> Result<()> {
    let operation = Elementwise::<(f64, In<f32>, In<i32>, Out<f64>, Out<u8>)>::new(
        "table",
        "sum = a * row + column; large = sum > 5",
        ["a", "row", "column", "sum", "large"],
    )
    .host(|(a, row, column, sum, large)| {
        *sum = a * f64::from(row) + f64::from(column);
        *large = u8::from(*sum > 5.0);
    });
    for device in all() {
        let _here = device.enter();
        let row = SmartArray::from([1.0_f32, 2.0, 3.0]);
        let column = DeviceArray::from_host(&arr2(&[[0], [1]]))?;
        let mut sum = SmartArray::<f64, _>::uninit((2, 3));
        let mut large = SmartArray::<u8, Ix2>::uninit((3, 2));
        let factor = 2.0;
        operation.apply((
            &factor,
            &row,
            &column,
            &mut sum,
            &mut large.view_mut().reversed_axes(),
        ))?;
        assert_eq!(sum.to_vec()?, [2.0, 4.0, 6.0, 3.0, 5.0, 7.0]);
        assert_eq!(large.to_vec()?, [0, 0, 0, 0, 1, 1]);
        assert_eq!(row.traffic().to_device.count, 1);
        assert_eq!(sum.traffic().to_device.count, 0, "an output is not uploaded");
        let mut one = SmartArray::<f64, _>::uninit(IxDyn(&[]));
        let mut is_large = SmartArray::<u8, _>::uninit(IxDyn(&[]));
        let (x, n) = (SmartArray::full(IxDyn(&[]), 3.0_f32), SmartArray::full(IxDyn(&[]), 4_i32));
        operation.apply((factor, &x, &n, &mut one, &mut is_large))?;
        assert_eq!((one.to_vec()?, is_large.to_vec()?), (vec![10.0], vec![1]));
        let mut nothing = SmartArray::<f64, _>::uninit((0, 3));
        let mut none = SmartArray::<u8, _>::uninit((0, 3));
        operation.apply((factor, &row, &n, &mut nothing, &mut none))?;
    }
    Ok(())
}

#[test]
fn statements_of_each_kind() -> Result<()> {
    let text = "
        // The iteration of Mandelbrot.
        float re = 0, im = 0;
        int rounds = 0;
        for (int i = 0; i < limit; ++i) {
            if (re * re + im * im > 4) break;
            const float next = re * re - im * im + x;   /* z = z z + c */
            im = 2 * re * im + y;
            re = next;
            rounds++;
        }
        n = rounds;
        int left = rounds;
        while (left >= 10) left -= 10;
        do { --left; if (left == 3) continue; } while (left > 5);
        last = left < 0 ? 200u : left";
    let body = |x: f32, y: f32, limit: i32| {
        let (mut re, mut im, mut rounds) = (0.0_f32, 0.0_f32, 0);
        while rounds < limit && re * re + im * im <= 4.0 {
            (re, im) = (re * re - im * im + x, 2.0 * re * im + y);
            rounds += 1;
        }
        let mut left = rounds % 10 - 1;
        while left > 5 {
            left -= 1;
        }
        (rounds, if left < 0 { 200 } else { left as u8 })
    };
    let names = ["limit", "x", "y", "n", "last"];
    let operation =
        Elementwise::<(i32, In<f32>, In<f32>, Out<i32>, Out<u8>)>::new("mandelbrot", text, names)
            .host(move |(limit, x, y, n, last)| (*n, *last) = body(x, y, limit));
    for device in all() {
        let _here = device.enter();
        let x: Vec<f32> = (0..40).map(|n| n as f32 / 20.0 - 1.5).collect();
        let y: Vec<f32> = (0..30).map(|n| n as f32 / 15.0 - 1.0).collect();
        let (ours_x, ours_y) = (SmartArray::from(x.clone()), SmartArray::from(y.clone()));
        let (mut n, mut last) = (SmartArray::uninit((30, 40)), SmartArray::uninit((30, 40)));
        operation.apply((
            100,
            &ours_x,
            &ours_y.insert_axis(ndarray::Axis(1)),
            &mut n,
            &mut last,
        ))?;
        let points = y.iter().flat_map(|y| x.iter().map(move |x| body(*x, *y, 100)));
        let (expected_n, expected_last): (Vec<_>, Vec<_>) = points.unzip();
        assert_eq!((n.to_vec()?, last.to_vec()?), (expected_n, expected_last));
    }
    Ok(())
}

#[test]
fn sixteen_parameters_and_large_arrays() -> Result<()> {
    type I = In<f32>;
    type Sixteen = (f32, I, I, I, I, I, I, I, I, I, I, I, I, I, InOut<f32>, Out<f32>);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    let operation = Elementwise::<Sixteen>::new(
        "sixteen",
        "p = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o; o = p + p",
        names,
    )
    .host(|(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)| {
        *p = a + b + c + d + e + f + g + h + i + j + k + l + m + n + *o;
        *o = *p + *p;
    });
    for (_, _here) in devices() {
        let len = PARALLEL_LEN_MIN + 77;
        let x = SmartArray::from((0..len).map(|n| (n % 1000) as f32).collect::<Vec<_>>());
        let (mut o, mut p) = (SmartArray::full(len, 1.0_f32), SmartArray::uninit(len));
        operation
            .apply((2.0, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &mut o, &mut p))?;
        let host = p.host()?;
        let is_right = |(n, p): (usize, &f32)| *p == (n % 1000) as f32 * 13.0 + 3.0;
        assert!(host.iter().enumerate().all(is_right));
        assert_eq!(o.get(999)?, 2.0 * (999.0 * 13.0 + 3.0));
    }
    Ok(())
}

/// An expression of `x` and `y`, and its value.
type Function = (&'static str, fn(f64, f64) -> f64);

/// Each function of floats, of numbers between 0 and 1.
const FUNCTIONS: [Function; 48] = [
    ("acos(x)", |x, _| x.acos()),
    ("acosh(x + 1)", |x, _| (x + 1.0).acosh()),
    ("asin(x)", |x, _| x.asin()),
    ("asinh(x)", |x, _| x.asinh()),
    ("atan(x)", |x, _| x.atan()),
    ("atan2(x, -y)", |x, y| x.atan2(-y)),
    ("atanh(x)", |x, _| x.atanh()),
    ("cbrt(x)", |x, _| x.cbrt()),
    ("ceil(9 * x)", |x, _| (9.0 * x).ceil()),
    ("copysign(x, -y)", |x, _| -x),
    ("cos(x)", |x, _| x.cos()),
    ("cosh(x)", |x, _| x.cosh()),
    ("cospi(x)", |x, _| (x * std::f64::consts::PI).cos()),
    ("erf(x) + erfc(x)", |_, _| 1.0),
    ("erf(x) + erf(-x)", |_, _| 0.0),
    ("exp(x)", |x, _| x.exp()),
    ("exp10(x)", |x, _| 10_f64.powf(x)),
    ("exp2(x)", |x, _| x.exp2()),
    ("expm1(x)", |x, _| x.exp_m1()),
    ("fabs(-x)", |x, _| x),
    ("fdim(x, y)", |x, y| (x - y).max(0.0)),
    ("floor(9 * x)", |x, _| (9.0 * x).floor()),
    ("fma(x, y, y)", |x, y| x * y + y),
    ("fmax(x, y)", f64::max),
    ("fmin(x, y)", f64::min),
    ("fmod(x, y)", |x, y| x % y),
    ("hypot(x, y)", f64::hypot),
    ("log(x)", |x, _| x.ln()),
    ("log10(x)", |x, _| x.log10()),
    ("log1p(x)", |x, _| x.ln_1p()),
    ("log2(x)", |x, _| x.log2()),
    ("nearbyint(9 * x)", |x, _| (9.0 * x).round_ties_even()),
    ("nextafter(x, 2) > x", |_, _| 1.0),
    ("pow(x, y)", f64::powf),
    ("rcbrt(x)", |x, _| 1.0 / x.cbrt()),
    ("remainder(x, y)", |x, y| x - y * (x / y).round_ties_even()),
    ("rint(9 * x)", |x, _| (9.0 * x).round_ties_even()),
    ("round(9 * x)", |x, _| (9.0 * x).round()),
    ("rsqrt(x)", |x, _| 1.0 / x.sqrt()),
    ("sin(x)", |x, _| x.sin()),
    ("sinh(x)", |x, _| x.sinh()),
    ("sinpi(x)", |x, _| (x * std::f64::consts::PI).sin()),
    ("sqrt(x)", |x, _| x.sqrt()),
    ("tan(x)", |x, _| x.tan()),
    ("tanh(x)", |x, _| x.tanh()),
    ("tgamma(x + 1) - x * tgamma(x)", |_, _| 0.0),
    ("tgamma(5.0f + 0 * x)", |_, _| 24.0),
    ("trunc(-9 * x)", |x, _| (-9.0 * x).trunc()),
];

/// Each function of numbers of a type: a row for a function, a column for a pair of numbers.
fn functions_of<T: Arithmetic + Into<f64>>(of: fn(f64) -> T, tolerance: f64) -> Result<()> {
    let line = |(number, (text, _)): (usize, &Function)| format!("if (n == {number}) z = {text};");
    let text: String = FUNCTIONS.iter().enumerate().map(line).collect();
    type Four<T> = (In<i32>, In<T>, In<T>, Out<T>);
    let operation = Elementwise::<Four<T>>::new("functions", text, ["n", "x", "y", "z"]);
    let numbers: Vec<i32> = (0..FUNCTIONS.len() as i32).collect();
    let numbers = SmartArray::from(numbers);
    let (x, y) = ([0.125, 0.3, 0.5, 0.9].map(of), [0.25, 0.7, 0.5, 0.6].map(of));
    let mut z = SmartArray::<T, _>::uninit((FUNCTIONS.len(), 4));
    let n = numbers.insert_axis(ndarray::Axis(1));
    operation.apply((&n, &SmartArray::from(x), &SmartArray::from(y), &mut z))?;
    let z = z.to_vec()?;
    for (row, (text, value)) in FUNCTIONS.iter().enumerate() {
        for column in 0..4 {
            let expected = value(x[column].into(), y[column].into());
            let seen: f64 = z[row * 4 + column].into();
            let error = (seen - expected).abs() / (1.0 + expected.abs());
            assert!(error < tolerance, "{text}: {seen} instead of {expected}");
        }
    }
    Ok(())
}

#[test]
fn each_function_of_floats() -> Result<()> {
    let device = compiling();
    let _here = device.enter();
    functions_of::<f64>(|x| x, 1e-14)?;
    functions_of::<f32>(|x| x as f32, 1e-6)
}

#[test]
fn loops_without_an_end_end() -> Result<()> {
    let device = compiling();
    let _here = device.enter();
    let operation = Elementwise::<(Out<u32>, Out<i32>)>::new(
        "endless",
        "while (true) { } do { n = 1; } while (1); for (;;) m += 1",
        ["m", "n"],
    );
    let (mut m, mut n) = (SmartArray::uninit(3), SmartArray::uninit(3));
    operation.apply((&mut m, &mut n))?;
    // The first loop takes all rounds. A loop with its condition behind has one always.
    assert_eq!((m.to_vec()?, n.to_vec()?), (vec![0; 3], vec![1; 3]));
    Ok(())
}

/// What a text computes in `double` is rounded once to types of two bytes; integers that are stored
/// in shorter ones keep their lowest bits.
#[test]
fn numbers_become_those_of_the_outputs() -> Result<()> {
    let device = compiling();
    let _here = device.enter();
    let operation = Elementwise::<(In<f64>, In<i64>, Out<f16>, Out<bf16>, Out<i64>, Out<u8>)>::new(
        "store",
        "h = x; b = n; least = -9223372036854775808 + (n == 1); low = n",
        ["x", "n", "h", "b", "least", "low"],
    );
    let (doubles, mut h) = (F16.floats(), SmartArray::<f16, _>::uninit(F16.floats().len()));
    let whole: Vec<i64> = integers().into_iter().map(|n| n as i64).collect();
    let whole: Vec<i64> = whole.iter().copied().cycle().take(doubles.len()).collect();
    let mut b = SmartArray::<bf16, _>::uninit(whole.len());
    let mut least = SmartArray::<i64, _>::uninit(whole.len());
    let mut low = SmartArray::<u8, _>::uninit(whole.len());
    let (x, n) = (SmartArray::from(doubles.clone()), SmartArray::from(whole.clone()));
    operation.apply((&x, &n, &mut h, &mut b, &mut least, &mut low))?;
    for (x, h) in doubles.iter().zip(h.to_vec()?) {
        assert_eq!(h.to_bits(), F16.nearest_to_float(*x), "{x}");
    }
    let stored = b.to_vec()?.into_iter().zip(least.to_vec()?).zip(low.to_vec()?);
    for (n, ((b, least), low)) in whole.iter().zip(stored) {
        assert_eq!(b.to_bits(), BF16.nearest(*n < 0, n.unsigned_abs(), 0), "{n}");
        assert_eq!((least, low), (i64::MIN + i64::from(*n == 1), *n as u8));
    }
    Ok(())
}

#[test]
fn texts_and_names_that_cannot_be_used() -> Result<()> {
    let _here = rust().enter();
    let x = SmartArray::<f32, _>::ones(3);
    let mut y = SmartArray::<f32, _>::full(3, 5.0);
    let cases: [(&str, &[&str], &str); 5] = [
        ("y = x +", &["x", "y"], "line 1, column 8, at the end: a value is expected here"),
        ("y =\n  z", &["x", "y"], "line 2, column 3, at `z`: no variable of this name is known"),
        ("y = x", &["x"], "there are 1 names for 2 parameters"),
        ("y = x", &["x", "x"], "parameters 0 and 1 have the name `x`"),
        ("y = x", &["x", "float"], "has a meaning in C"),
    ];
    for (text, names, expected) in cases {
        let names = names.iter().copied();
        let operation =
            Elementwise::<(In<f32>, InOut<f32>)>::new("wrong", text, names).host(|(x, y)| *y = x);
        for _ in 0..2 {
            let Err(Error::Compile { kernel, log, call, .. }) = operation.apply((&x, &mut y))
            else {
                panic!("{text} is accepted")
            };
            assert!(log.contains(expected), "{log}");
            assert_eq!(kernel, "\"wrong\"");
            let file = call.location().expect("a call").file();
            assert!(file.ends_with("elementwise_texts.rs"), "{file}");
        }
    }
    let to_integers =
        Elementwise::<(In<f32>, Out<i32>)>::new("round", "n = 10 * x", ["x", "n"]).host(|_| ());
    let mut n = SmartArray::full(3, 5);
    let Err(Error::Compile { log, .. }) = to_integers.apply((&x, &mut n)) else {
        panic!("a float is truncated")
    };
    assert!(log.contains("at `n`: the elements of this output are `int`"), "{log}");
    assert!(log.contains("`(int)(..)` truncates"), "{log}");
    assert_eq!(n.to_vec()?, [5; 3]);
    let only_read = Elementwise::<(In<f32>,)>::new("read", "float z = x", ["x"]);
    let Err(Error::Compile { log, .. }) = only_read.apply((&x,)) else { panic!("accepted") };
    assert!(log.contains("no parameter is written"), "{log}");
    assert_eq!((x.traffic().to_device.count, y.to_vec()?), (0, vec![5.0; 3]));
    Ok(())
}

#[test]
fn shapes_that_do_not_fit() -> Result<()> {
    let _here = rust().enter();
    let operation =
        Elementwise::<(In<f32>, Out<f32>, Out<f32>)>::new("two", "y = x; z = x", ["x", "y", "z"])
            .host(|(x, y, z)| (*y, *z) = (x, x));
    let x = SmartArray::<f32, _>::ones((2, 3));
    let (mut y, mut z) = (SmartArray::full(3, 5.0_f32), SmartArray::full(3, 5.0_f32).named("z"));
    let Err(Error::Shape { operation: name, expected, seen, .. }) =
        operation.apply((&x, &mut y, &mut z))
    else {
        panic!("accepted")
    };
    assert_eq!(name, "elementwise operation \"two\"");
    assert!(
        expected.contains("`x` to broadcast to") && expected.contains("shape [3]"),
        "{expected}"
    );
    assert!(seen.contains("of shape [2, 3]"), "{seen}");
    let mut wide = SmartArray::full((1, 3), 5.0_f32);
    let Err(Error::Shape { expected, seen, .. }) = operation.apply((&z, &mut y, &mut wide)) else {
        panic!("accepted")
    };
    assert!(expected.contains("`z` to have the shape of the first output"), "{expected}");
    assert!(seen.contains("shape [1, 3]"), "{seen}");
    let never = SmartArray::<f32, _>::uninit(3);
    let unread = operation.apply((&never, &mut y, &mut z));
    assert!(matches!(unread, Err(Error::Uninitialised { .. })), "{unread:?}");
    assert_eq!(
        (y.to_vec()?, z.to_vec()?, wide.to_vec()?),
        (vec![5.0; 3], vec![5.0; 3], vec![5.0; 3])
    );
    operation.apply((&x.slice(s![0, ..]), &mut y, &mut z))?;
    assert_eq!(z.to_vec()?, [1.0; 3]);
    Ok(())
}

/// Such a body may take any time, so the call returns before it ends, even for few elements.
#[test]
fn a_call_does_not_wait_for_a_body_in_rust() -> Result<()> {
    let device = Device::cpu();
    let _here = device.enter();
    let (allow, allowed) = mpsc::channel();
    let allowed = Mutex::new(allowed);
    let operation = Elementwise::<(InOut<i32>,)>::new("wait", "x += 1", ["x"]).host(move |(x,)| {
        let allowed = allowed.lock().expect("no panic");
        allowed.recv_timeout(Duration::from_secs(20)).expect("the call returns before");
        *x += 1;
    });
    let mut x = SmartArray::from([3]);
    drop(x.gpu()?);
    // The calling thread could run the body of a brief launch on an idle stream.
    device.synchronize()?;
    operation.apply((&mut x,))?;
    allow.send(()).expect("the body waits");
    assert_eq!(x.to_vec()?, [4]);
    Ok(())
}

#[test]
fn a_body_in_rust_that_panics_loses_the_outputs() -> Result<()> {
    let _here = rust().enter();
    let operation = Elementwise::<(In<i32>, Out<i32>)>::new("divide", "y = 1 / x", ["x", "y"])
        .host(|(x, y)| *y = 1 / x);
    let (x, mut y) = (SmartArray::from([1, 0]), SmartArray::uninit(2));
    operation.apply((&x, &mut y))?;
    assert!(matches!(y.to_vec(), Err(Error::Lost { .. })));
    y.fill(3)?;
    assert_eq!(y.to_vec()?, [3, 3]);
    Ok(())
}
