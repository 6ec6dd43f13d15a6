//! `Reduction`: each layout, axes, types, on devices that run the bodies in Rust, the texts, and
//! the texts while they are checked. Results are equal on all of them, so no thread matters.

use half::f16;
use ndarray::{Array2, ArrayD, Axis, IxDyn, Zip, arr2, s};
use resident::ops::Reduction;
use resident::{DeviceArray, Error, In, Result, SmartArray};

use crate::elementwise_texts::all;
use crate::part::{Part, Random, on_device};
use crate::{LARGE_SIDE, devices, rust, sample};

type OfTwo = Reduction<(In<i32>, In<i32>), i64>;

/// A sum of products that is exact, so that the grouping does not matter.
fn products() -> OfTwo {
    OfTwo::new("products", ["x", "y"], "(long long)x * y + 1", "a + b", 100)
        .host(|(x, y)| (i64::from(x).wrapping_mul(y.into())).wrapping_add(1), i64::wrapping_add)
}

/// Random parts of up to three axes, of all elements and along each axis, on the current device.
pub(crate) fn parts(cases: u64) -> Result<()> {
    let products = products();
    for case in 0..cases {
        let mut random = Random::new(case + 1);
        let shape = Part::shape(3, &mut random);
        let [of_x, of_y] = [(); 2].map(|()| Part::of_shape(&shape, &mut random));
        let (x, y): (ArrayD<i32>, ArrayD<i32>) = (of_x.array(&mut random), of_y.array(&mut random));
        let (ours_x, ours_y) = (SmartArray::from(x.clone()), on_device(&of_y.of(&y).to_owned()));
        let mut terms = ArrayD::<i64>::zeros(shape.clone());
        Zip::from(&mut terms).and(of_x.of(&x)).and(of_y.of(&y)).for_each(|term, x, y| {
            *term = i64::from(*x).wrapping_mul((*y).into()).wrapping_add(1);
        });
        let sum = |terms: ndarray::ArrayViewD<'_, i64>| {
            terms.iter().fold(0, |a: i64, b| a.wrapping_add(*b))
        };
        let total = products.apply((&of_x.of_ours(&ours_x), &ours_y))?;
        assert_eq!(total, sum(terms.view()).wrapping_add(100), "{of_x:?} {of_y:?}");
        for axis in (0..shape.len()).map(Axis) {
            let mut results = shape.clone();
            results.remove(axis.0);
            let of_out = Part::of_shape(&results, &mut random);
            let mut out = of_out.array::<i64>(&mut random);
            let mut ours = SmartArray::from(out.clone());
            let mut place = of_out.of_ours_mut(&mut ours);
            products.apply_axis(axis, (&of_x.of_ours(&ours_x), &ours_y), &mut place)?;
            let mut expected = of_out.of_mut(&mut out);
            Zip::from(&mut expected).and(terms.lanes(axis)).for_each(|out, lane| {
                *out = sum(lane.into_dyn()).wrapping_add(100);
            });
            assert!(ours.into_array()? == out, "{axis:?} {of_x:?} {of_y:?} {of_out:?}");
        }
    }
    Ok(())
}

#[test]
fn each_layout() -> Result<()> {
    for (device, cases) in all().into_iter().zip(sample([40, 4, 2], [150, 10, 3])) {
        let _here = device.enter();
        parts(cases)?;
    }
    Ok(())
}

/// Shapes that take several stages, by blocks and by threads.
const LARGE: [(usize, usize); 6] = [
    (1, 100_003),
    (3, 20_001),
    (70_001, 2),
    (300, 600),
    (4000, 70),
    (LARGE_SIDE + 69, LARGE_SIDE + 169),
];

#[test]
fn several_stages() -> Result<()> {
    for (_, _here) in devices() {
        for (rows, columns) in LARGE {
            let x =
                Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 7 + j * 3) % 23) as i32 - 9);
            let (ours, five) = (SmartArray::from(x.clone()), SmartArray::full(1, 5_i32));
            let term = |x: &i32| i64::from(*x) * 5 + 1;
            let products = products();
            assert_eq!(
                products.apply((&ours, &five))?,
                x.iter().map(term).sum::<i64>() + 100,
                "{rows} x {columns}"
            );
            for axis in [Axis(0), Axis(1)] {
                let expected = x.map_axis(axis, |lane| lane.iter().map(term).sum::<i64>() + 100);
                let mut sums = SmartArray::<i64, _>::uninit(expected.len());
                products.apply_axis(axis, (&ours, &five), &mut sums)?;
                assert!(*sums.host()? == expected, "{rows} x {columns}, {axis:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn results_of_floats_do_not_depend_on_the_device() -> Result<()> {
    let distance = Reduction::<(In<f32>, In<f32>), f32>::new(
        "distance",
        ["x", "y"],
        "(x - y) * (x - y)",
        "a + b",
        0.0,
    )
    .host(|(x, y)| (x - y) * (x - y), |a, b| a + b);
    let table = |seed: usize| {
        Array2::from_shape_fn((LARGE_SIDE, LARGE_SIDE + 100), |(i, j)| {
            ((i * 31 + j * seed) % 1009) as f32 * 0.37
        })
    };
    let mut found = Vec::new();
    for (_, _here) in devices() {
        let (x, y) = (SmartArray::from(table(17)), SmartArray::from(table(23)));
        let mut results = vec![distance.apply((&x, &y))?, distance.apply((&x.t(), &y.t()))?];
        for axis in [Axis(0), Axis(1)] {
            let mut sums = SmartArray::<f32, _>::uninit(LARGE_SIDE + [100, 0][axis.0]);
            distance.apply_axis(axis, (&x, &y), &mut sums)?;
            results.extend(sums.to_vec()?);
        }
        assert_eq!(distance.apply((&x, &y))?, results[0], "the same in each run");
        found.push(results);
    }
    let exact: f64 = (table(17) - table(23)).iter().map(|x| f64::from(*x).powi(2)).sum();
    assert!((f64::from(found[0][0]) / exact - 1.0).abs() < 1e-5);
    assert!(found.iter().all(|results| *results == found[0]));
    Ok(())
}

#[test]
fn other_types_and_operations() -> Result<()> {
    let largest = Reduction::<(f32, In<f16>), f64>::new(
        "largest",
        ["scale", "x"],
        "fabs(scale * x)",
        "max(a, b)",
        -1.0,
    )
    .host(|(scale, x)| f64::from((scale * x.to_f32()).abs()), f64::max);
    let product = Reduction::<(In<u8>,), u8>::new("product", ["x"], "x", "a * b", 1)
        .host(|(x,)| x, u8::wrapping_mul);
    let any = Reduction::<(In<f64>,), u32>::new("any", ["x"], "x < 0", "a | b", 0)
        .host(|(x,)| u32::from(x < 0.0), |a, b| a | b);
    for (device, _here) in devices() {
        let x: Vec<f16> = [1.0, -5.5, 3.0].map(f16::from_f32).to_vec();
        assert_eq!(largest.apply((2.0, &SmartArray::from(x)))?, 11.0);
        let x = DeviceArray::from_host(&arr2(&[[3_u8, 5], [7, 11]]))?;
        assert_eq!(product.apply((&x,))?, 131, "1,155 modulo 256");
        assert_eq!(any.apply_on(&device.stream(), (&SmartArray::from([1.0, -2.0]),))?, 1);
        assert_eq!(any.apply((&SmartArray::from([1.0, 2.0]),))?, 0);
    }
    Ok(())
}

#[test]
fn nothing_is_the_initial_value() -> Result<()> {
    let _here = rust().enter();
    let products = products();
    let (none, one) = (SmartArray::<i32, _>::zeros((2, 0)), SmartArray::full(1, 5_i32));
    assert_eq!(products.apply((&none, &one))?, 100);
    let mut sums = SmartArray::<i64, _>::uninit(2);
    products.apply_axis(Axis(1), (&none, &one), &mut sums)?;
    assert_eq!(sums.to_vec()?, [100, 100]);
    let mut sum = SmartArray::<i64, _>::uninit(IxDyn(&[]));
    products.apply_axis(Axis(0), (&none.slice(s![0, ..]), &one), &mut sum)?;
    assert_eq!(sum.to_vec()?, [100]);
    products.apply_axis(Axis(0), (&none, &one), &mut SmartArray::<i64, _>::uninit(0))
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let _here = rust().enter();
    let products = products();
    let (x, y) = (SmartArray::<i32, _>::ones((2, 3)), SmartArray::<i32, _>::ones(2));
    let mut out = SmartArray::<i64, _>::full(2, 7);
    let refused = |outcome: Result<()>, words: [&str; 2]| {
        let Err(Error::Shape { operation, expected, seen, .. }) = outcome else {
            panic!("{outcome:?} instead of {words:?}")
        };
        assert_eq!(operation, "reduction \"products\"");
        assert!(expected.contains(words[0]) && seen.contains(words[1]), "{expected} / {seen}");
    };
    refused(products.apply((&x, &y)).map(drop), ["with each other to [2, 3]", "shape [2]"]);
    refused(products.apply_axis(Axis(2), (&x, &x), &mut out), ["shape [2, 3]", "Axis(2)"]);
    refused(products.apply_axis(Axis(0), (&x, &x), &mut out), ["`out` of shape [3]", "shape [2]"]);
    let many = y.insert_axis(Axis(1));
    let many = many.broadcast((2, 1 << 40))?;
    refused(products.apply((&many, &many)).map(drop), ["at most 17179869184", "1099511627776"]);
    let compile = |reduction: OfTwo, words: &str| {
        let Err(Error::Compile { log, .. }) = reduction.apply((&x, &x)) else { panic!("accepted") };
        assert!(log.contains(words), "{log}");
    };
    let new = |map: &str, join: &str| OfTwo::new("r", ["x", "y"], map, join, 0);
    compile(new("x + z", "a + b"), "in the text of the values, line 1, column 5, at `z`");
    compile(new("x", "a + x"), "in the text that joins, line 1, column 5, at `x`");
    compile(new("y = x", "a + b"), "assignments are statements");
    compile(new("x; y", "a + b"), "one expression is expected");
    compile(new("x, y", "a + b"), "one expression is expected");
    compile(new("x) + (y", "a + b"), "one expression is expected");
    compile(OfTwo::new("r", ["x"], "x", "a + b", 0), "there are 1 names for 2 parameters");
    let scalars = Reduction::<(i32,), i64>::new("r", ["x"], "x", "a + b", 0);
    let Err(Error::Compile { log, .. }) = scalars.apply((3,)) else { panic!("accepted") };
    assert!(log.contains("no input is an array"), "{log}");
    assert_eq!((x.traffic().to_device.count, out.to_vec()?), (0, vec![7, 7]));
    products.apply_axis(Axis(1), (&x, &x), &mut out)?;
    assert_eq!(out.to_vec()?, [106, 106]);
    Ok(())
}
