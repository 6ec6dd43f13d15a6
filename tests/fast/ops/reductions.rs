//! Reductions give what ndarray gives.

use ndarray::{ArrayD, Axis, IxDyn, RemoveAxis};
use resident::ops::{self, Number};
use resident::{Device, Error, Result, SmartArray};

use crate::part::{Part, Random, Sample, on_device};
use crate::{PARALLEL_LEN_MIN, cuda, devices, rust};

/// Calls `check` with random parts on a device.
fn each_part<T: Sample>(
    device: &Device,
    (cases, axes_max): (u64, usize),
    check: impl Fn(&Part, &ArrayD<T>, &SmartArray<T, IxDyn>) -> Result<()>,
) {
    let _here = device.enter();
    for case in 0..cases {
        let mut random = Random::new(case + 77);
        let mut shape = Part::shape(axes_max, &mut random);
        if case % 7 == 6 {
            // Several chunks in a row, and rows side by side.
            shape = [vec![3, 3000], vec![1500, 33], vec![9000], vec![2, 300, 30]]
                [(case / 7) as usize % 4]
                .clone();
        }
        let part = Part::of_shape(&shape, &mut random);
        let array = part.array::<T>(&mut random);
        check(&part, &array, &SmartArray::from(array.clone()))
            .unwrap_or_else(|error| panic!("case {case}, {part:?}: {error}"));
    }
}

/// Exact reductions of one type: its sums wrap around.
pub(crate) fn exact<T: Sample + Number + Ord>(
    device: &Device,
    cases: (u64, usize),
    add: fn(T, T) -> T,
) {
    let zero = |a: T| a == T::zeroed();
    each_part::<T>(device, cases, |part, array, ours| {
        let (view, ours) = (part.of(array), part.of_ours(ours));
        let sum = view.iter().fold(T::zeroed(), |sum, x| add(sum, *x));
        assert!(ours.sum()? == sum, "{part:?}");
        let (min, max) = (view.iter().min(), view.iter().max());
        match (min, max) {
            (Some(min), Some(max)) => {
                assert!(ours.min()? == *min && ours.max()? == *max, "{part:?}");
                let place = |wanted: &T| view.iter().position(|x| x == wanted).map(|n| n as u64);
                assert_eq!(Some(ours.argmin()?), place(min), "{part:?}");
                assert_eq!(Some(ours.argmax()?), place(max), "{part:?}");
            }
            _ => assert!(ours.min().is_err() && ours.argmax().is_err() && zero(ours.sum()?)),
        }
        for axis in (0..view.ndim()).map(Axis) {
            let mut out = SmartArray::<T, _>::uninit(view.raw_dim().remove_axis(axis));
            ops::sum_axis(&ours, axis, &mut out)?;
            let sums = view.fold_axis(axis, T::zeroed(), |sum, x| add(*sum, *x));
            assert_eq!(out.host()?.view(), sums, "{part:?} {axis:?}");
            if view.len_of(axis) == 0 {
                continue;
            }
            ops::min_axis(&ours, axis, &mut out)?;
            let least = view.map_axis(axis, |line| *line.iter().min().expect("not empty"));
            assert_eq!(out.host()?.view(), least, "{part:?} {axis:?}");
            ops::max_axis(&ours, axis, &mut out)?;
            let most = view.map_axis(axis, |line| *line.iter().max().expect("not empty"));
            assert_eq!(out.host()?.view(), most, "{part:?} {axis:?}");
            let mut places = SmartArray::<u64, _>::uninit(most.raw_dim());
            ops::argmax_axis(&ours, axis, &mut places)?;
            let first = view.map_axis(axis, |line| {
                let most = line.iter().max();
                line.iter().position(|x| Some(x) == most).expect("there is one") as u64
            });
            assert_eq!(places.host()?.view(), first, "{part:?} {axis:?}");
        }
        Ok(())
    });
}

#[test]
fn reductions_of_integers_are_exact() {
    let device = rust();
    exact::<i32>(&device, (42, 4), i32::wrapping_add);
    exact::<i64>(&device, (21, 4), i64::wrapping_add);
    exact::<u32>(&device, (21, 4), u32::wrapping_add);
    exact::<u64>(&device, (21, 4), u64::wrapping_add);
    exact::<u8>(&device, (42, 5), u8::wrapping_add);
}

#[test]
fn reductions_of_integers_are_exact_in_cuda_c() {
    if let Some(device) = cuda() {
        exact::<i32>(&device, (28, 2), i32::wrapping_add);
        exact::<u8>(&device, (6, 1), u8::wrapping_add);
    }
}

pub(crate) fn running(device: &Device, cases: (u64, usize)) {
    each_part::<i32>(device, cases, |part, array, ours| {
        let (view, ours) = (part.of(array), part.of_ours(ours));
        let mut sum = 0_i32;
        let expected: Vec<i32> = view
            .iter()
            .map(|x| {
                sum = sum.wrapping_add(*x);
                sum
            })
            .collect();
        let mut line = SmartArray::<i32, _>::uninit(view.len());
        ops::cumulative_sum(&ours, &mut line)?;
        assert_eq!(line.to_vec()?, expected, "{part:?}");
        let mut same = SmartArray::<i32, _>::uninit(view.raw_dim());
        ops::cumulative_sum(&ours, &mut same)?;
        assert_eq!(same.to_vec()?, expected, "{part:?}");
        for axis in (0..view.ndim()).map(Axis) {
            let mut expected = view.to_owned();
            expected.accumulate_axis_inplace(axis, |before, x| *x = x.wrapping_add(*before));
            ops::cumulative_sum_axis(&ours, axis, &mut same)?;
            assert_eq!(same.host()?.view(), expected, "{part:?} {axis:?}");
        }
        Ok(())
    });
}

#[test]
fn running_sums_are_exact() {
    running(&rust(), (42, 4));
    if let Some(device) = cuda() {
        running(&device, (21, 2));
    }
}

#[test]
fn running_products_are_exact() {
    let check = |device: &Device, cases| {
        each_part::<u32>(device, cases, |part, array, ours| {
            // Odd, so that none is a multiple of all powers of 2.
            let (view, mut ours_odd) = (part.of(array), SmartArray::uninit_like(ours));
            ops::mul(ours, 2, &mut ours_odd)?;
            let odd = (&ours_odd + 1)?;
            let mut product = 1_u32;
            let product_up_to = |x: &u32| {
                product = product.wrapping_mul(x.wrapping_mul(2).wrapping_add(1));
                product
            };
            let expected: Vec<u32> = view.iter().map(product_up_to).collect();
            let mut products = SmartArray::<u32, _>::uninit(view.raw_dim());
            ops::cumulative_product(&part.of_ours(&odd), &mut products)?;
            assert_eq!(products.to_vec()?, expected, "{part:?}");
            let mut line = SmartArray::<u32, _>::uninit(view.len());
            ops::cumulative_product(&part.of_ours(&odd), &mut line)?;
            assert_eq!(line.to_vec()?, expected, "{part:?}");
            Ok(())
        });
    };
    check(&rust(), (42, 4));
    if let Some(device) = cuda() {
        check(&device, (14, 1));
    }
}

#[test]
fn running_products_begin_with_the_first_element() -> Result<()> {
    for (_, _here) in devices() {
        let mut products = SmartArray::<f64, _>::uninit(4);
        let a = SmartArray::from([-0.0, 3.0, f64::INFINITY, 2.0]);
        ops::cumulative_product(&a, &mut products)?;
        let products = products.to_vec()?;
        assert_eq!(products[..2].iter().map(|x| x.to_bits()).max(), Some((-0.0_f64).to_bits()));
        assert!(products[2].is_nan() && products[3].is_nan(), "{products:?}");
    }
    Ok(())
}

#[test]
fn variances_are_those_of_ndarray() {
    let check = |device: &Device, cases| {
        each_part::<f32>(device, cases, |part, array, ours| {
            let (view, ours) = (part.of(array).mapv(f64::from), part.of_ours(ours));
            for ddof in [0.0, 0.5, 1.0].into_iter().filter(|ddof| *ddof <= view.len() as f64) {
                let found = [ours.var(ddof as f32)?, ours.std(ddof as f32)?].map(f64::from);
                let expected = [view.var(ddof), view.std(ddof)];
                let is_near = |(found, expected): (f64, f64)| {
                    near(found, expected) || found.is_nan() && expected.is_nan()
                };
                assert!(found.into_iter().zip(expected).all(is_near), "{part:?}: {found:?}");
            }
            Ok(())
        });
    };
    check(&rust(), (42, 4));
    if let Some(device) = cuda() {
        check(&device, (7, 1));
    }
}

/// The mean of squares less the square of the mean would be 0, or below.
#[test]
fn variances_far_from_0_lose_no_digits() -> Result<()> {
    let _here = rust().enter();
    let xs = SmartArray::from(ndarray::Array1::from_shape_fn(1000, |i| 1e9 + (i % 2) as f64));
    assert_eq!(xs.var(0.0)?, 0.25);
    assert_eq!(SmartArray::from([200_u8, 202]).var(1.0)?, 2.0, "of integers, an f64");
    assert_eq!(SmartArray::from([i64::MAX, i64::MAX]).std(0.0)?, 0.0);
    let first = xs.std(1.0)?.to_bits();
    assert!((0..3).all(|_| xs.std(1.0).is_ok_and(|again| again.to_bits() == first)));
    // Their mean is a rounded one.
    let xs = SmartArray::from_iter((0..1000).map(|i| 1e15 + f64::from(i % 2)));
    assert_eq!(xs.var(0.0)?, 0.25);
    let xs = SmartArray::from_iter((0..300_000).map(|i| 1e6_f32 + (i % 2) as f32));
    assert!((xs.var(0.0)? - 0.25).abs() < 1e-4, "{:?}", xs.var(0.0));
    let xs = SmartArray::full(1000, 0.1_f32);
    assert!((0.0..1e-12).contains(&xs.std(0.0)?), "{:?}", xs.std(0.0));
    let wide = SmartArray::from([1e30_f32, -1e30, 1e30]);
    assert_eq!(wide.var(0.0)?, f32::INFINITY);
    Ok(())
}

#[test]
fn freedom_beyond_the_elements_is_refused() {
    let _here = rust().enter();
    let a = SmartArray::from([1.0_f32, 2.0]).named("a");
    for (outcome, kernel, ddof) in
        [(a.var(2.5), "ops::var", "2.5"), (a.std(-1.0), "ops::std", "-1")]
    {
        let Err(Error::Requirement { kernel: seen, requirement, arguments, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        let expected = "`ddof` is at least 0 and at most the number of elements";
        assert_eq!((&*seen, &*requirement), (kernel, expected));
        assert_eq!(arguments, format!("ddof = {ddof}, for \"a\" of shape [2]"));
    }
    assert!(a.slice(ndarray::s![..0]).var(0.0).is_ok_and(f32::is_nan), "as ndarray's");
}

#[test]
fn large_running_sums_and_places_use_all_cores() -> Result<()> {
    let _here = rust().enter();
    let (len, columns) = (PARALLEL_LEN_MIN + 77, PARALLEL_LEN_MIN / 1024);
    let line = SmartArray::from(ndarray::Array1::from_shape_fn(len, |i| (i % 1000) as i32));
    let mut sums = SmartArray::<i32, _>::uninit(len);
    ops::cumulative_sum(&line, &mut sums)?;
    let mut sum = 0;
    assert!(sums.to_vec()?.into_iter().enumerate().all(|(i, found)| {
        sum += (i % 1000) as i32;
        found == sum
    }));
    assert_eq!((line.argmax()?, line.argmin()?), (999, 0));
    let mut last = SmartArray::from(ndarray::Array1::<f32>::zeros(len));
    last.set(len - 1, -1.0)?;
    assert_eq!(last.argmin()?, len as u64 - 1);
    let table = SmartArray::<i32, _>::ones((2048, columns));
    let mut sums = SmartArray::<i32, _>::uninit((2048, columns));
    ops::cumulative_sum_axis(&table, Axis(0), &mut sums)?;
    assert_eq!(sums.get((2047, columns - 1))?, 2048);
    ops::cumulative_sum_axis(&table, Axis(1), &mut sums)?;
    let (last, first) = (sums.get((2047, columns - 1))?, sums.get((5, 0))?);
    assert_eq!((last, first), (columns as i32, 1));
    Ok(())
}

fn near(found: f64, expected: f64) -> bool {
    found == expected || (found - expected).abs() <= 1e-5 * expected.abs().max(1.0)
}

#[test]
fn products_norms_and_means_are_those_of_ndarray() {
    let check = |device: &Device, cases| {
        each_part::<f32>(device, cases, |part, array, ours| {
            let (view, ours) = (part.of(array).mapv(f64::from), part.of_ours(ours));
            let squares: f64 = view.iter().map(|x| x * x).sum();
            assert!(near(f64::from(ours.dot(&ours)?), squares), "{part:?}");
            assert!(near(f64::from(ours.norm_l2()?), squares.sqrt()), "{part:?}");
            match view.mean() {
                Some(mean) => assert!(near(f64::from(ours.mean()?), mean), "{part:?}"),
                None => assert!(ours.mean().is_err()),
            }
            for axis in (0..view.ndim()).map(Axis) {
                let Some(means) = view.mean_axis(axis) else { continue };
                let mut out = SmartArray::<f32, _>::uninit(means.raw_dim());
                ops::mean_axis(&ours, axis, &mut out)?;
                assert!(all_near(&out, &means)?, "{part:?} {axis:?}");
                ops::norm_l2_axis(&ours, axis, &mut out)?;
                let norms = view.map_axis(axis, |line| line.dot(&line).sqrt());
                assert!(all_near(&out, &norms)?, "{part:?} {axis:?}");
            }
            Ok(())
        });
    };
    check(&rust(), (42, 4));
    if let Some(device) = cuda() {
        check(&device, (21, 2));
    }
}

/// Whether an array is nearly another.
fn all_near(found: &SmartArray<f32, IxDyn>, expected: &ArrayD<f64>) -> Result<bool> {
    let mut pairs = found.to_vec()?.into_iter().zip(expected);
    Ok(pairs.all(|(found, expected)| near(f64::from(found), *expected)))
}

#[test]
fn means_and_norms_of_integers_are_real() -> Result<()> {
    for (_, _here) in devices() {
        let xs = SmartArray::from([200_u8, 200, 200, 201]);
        assert_eq!((xs.mean()?, xs.sum()?), (200.25, 33));
        assert_eq!(SmartArray::from([-3_i32, 4]).norm_l2()?, 5.0);
    }
    Ok(())
}

#[test]
fn nan_is_the_least_and_the_most_as_in_numpy() -> Result<()> {
    for (_, _here) in devices() {
        for len in [5, 700, 20_000] {
            let mut xs = vec![1.0_f32; len];
            xs[len / 2] = f32::NAN;
            xs[len - 1] = f32::NAN;
            xs[0] = -7.0;
            let xs = SmartArray::from(xs);
            assert!(xs.min()?.is_nan() && xs.max()?.is_nan());
            assert_eq!((xs.argmin()?, xs.argmax()?), (len as u64 / 2, len as u64 / 2));
        }
        assert_eq!(SmartArray::from([2.0, 1.0, 1.0, 2.0]).argmin()?, 1, "the first of several");
    }
    Ok(())
}

#[test]
fn device_arrays_have_the_methods_too() -> Result<()> {
    for device in [Some(rust()), cuda()].into_iter().flatten() {
        let table = ndarray::Array2::from_shape_fn((30, 40), |(i, j)| (i * 40 + j) as i32);
        let ours = {
            let _here = device.enter();
            on_device(&table.clone().into_dyn())
        };
        // On the device that has them, whatever the current device is.
        let _here = Device::cpu().enter();
        assert_eq!((ours.sum()?, ours.min()?, ours.argmax()?), (table.sum(), 0, 1199));
        assert_eq!(ours.view().t().max()?, 1199);
        assert_eq!(ours.dot(&ours)?, table.mapv(|x| x * x).sum());
    }
    Ok(())
}

#[test]
fn broadcast_views_count_each_repetition() -> Result<()> {
    for (_, _here) in devices() {
        let row = SmartArray::from([1, 2, 3]);
        let table = row.broadcast((4, 3))?;
        assert_eq!((table.sum()?, table.argmax()?), (24, 2));
        let mut sums = SmartArray::<i32, _>::uninit(3);
        ops::sum_axis(&table, Axis(0), &mut sums)?;
        assert_eq!(sums.to_vec()?, [4, 8, 12]);
    }
    Ok(())
}
