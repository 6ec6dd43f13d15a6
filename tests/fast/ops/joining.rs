//! Arrays side by side, beside ndarray's.

use ndarray::{ArrayD, Axis, Ix2, IxDyn, arr2, concatenate, s, stack};
use resident::{DeviceArray, Error, Result, SmartArray, SmartView, Validity, audit, ops};

use crate::part::{Part, Random, Sample};
use crate::{devices, rust};

/// Random parts, whose shapes differ along the axis if one is given, and what `check` is to find.
fn each_case<T: Sample>(
    axes_min: usize,
    check: impl Fn(Axis, &[ndarray::ArrayViewD<'_, T>], &[SmartView<'_, T, IxDyn>]) -> Result<()>,
    differ: bool,
) {
    for case in 0..40 {
        let mut random = Random::new(case + 1);
        let mut shape = Part::shape(4, &mut random);
        shape.resize(shape.len().max(axes_min), 3);
        let axis = random.below(shape.len() + usize::from(!differ));
        let parts: Vec<Part> = (0..=random.below(4))
            .map(|_| {
                let mut shape = shape.clone();
                if differ {
                    shape[axis] = random.below(5);
                }
                Part::of_shape(&shape, &mut random)
            })
            .collect();
        let arrays: Vec<ArrayD<T>> = parts.iter().map(|part| part.array(&mut random)).collect();
        let ours: Vec<SmartArray<T, IxDyn>> = arrays.iter().cloned().map(Into::into).collect();
        let views: Vec<_> = parts.iter().zip(&arrays).map(|(part, array)| part.of(array)).collect();
        let ours: Vec<_> = parts.iter().zip(&ours).map(|(part, ours)| part.of_ours(ours)).collect();
        check(Axis(axis), &views, &ours)
            .unwrap_or_else(|error| panic!("case {case}, {parts:?}: {error}"));
    }
}

#[test]
fn arrays_one_after_the_other() {
    fn check<T: Sample + ops::Arithmetic>() {
        let same =
            |axis, arrays: &[ndarray::ArrayViewD<'_, T>], ours: &[SmartView<'_, T, IxDyn>]| {
                let expected = concatenate(axis, arrays).expect("they fit");
                assert_eq!(ops::concatenate(axis, ours)?.into_array()?, expected);
                Ok(())
            };
        each_case::<T>(1, same, true);
    }
    let _here = rust().enter();
    check::<f32>();
    check::<u8>();
    check::<half::f16>();
    check::<i64>();
}

#[test]
fn arrays_along_a_new_axis() {
    let _here = rust().enter();
    let same =
        |axis, arrays: &[ndarray::ArrayViewD<'_, i32>], ours: &[SmartView<'_, i32, IxDyn>]| {
            let expected = stack(axis, arrays).expect("they fit");
            assert_eq!(ops::stack(axis, ours)?.into_array()?, expected);
            Ok(())
        };
    each_case::<i32>(0, same, false);
}

#[test]
fn arrays_of_all_kinds() -> Result<()> {
    for (device, _here) in devices() {
        let (a, b) = (arr2(&[[1.0, 2.0], [3.0, 4.0]]), arr2(&[[5.0], [6.0]]));
        let there = (DeviceArray::from_host(&a)?, DeviceArray::from_host(&b)?);
        let expected = concatenate![Axis(1), a, b, a.slice(s![.., ..;-1])];
        let found = ops::concatenate(
            Axis(1),
            &[there.0.view(), there.1.view(), there.0.slice(s![.., ..;-1])],
        )?;
        assert_eq!(found.strides(), [5, 1]);
        assert_eq!(*found.host()?, expected);
        let ours: SmartArray<f64, Ix2> = a.into();
        let line = ours.row(1);
        let found = ops::stack_on(&device.stream(), Axis(0), &[line, ours.column(0)])?;
        assert_eq!(*found.host()?, arr2(&[[3.0, 4.0], [1.0, 3.0]]));
        let found = ops::concatenate_on(&device.stream(), Axis(0), &[ours.t(), found.view()])?;
        assert_eq!(found.row(2).to_vec()?, [3.0, 4.0]);
    }
    Ok(())
}

#[test]
fn they_are_joined_where_they_are_newest() -> Result<()> {
    let (here, there) = (rust(), rust());
    let _here = here.enter();
    let mut a = SmartArray::<f32, _>::ones(100);
    drop(a.gpu_mut_on(&there.stream())?);
    let b = SmartArray::<f32, _>::zeros(50);
    let (found, report) = audit::capture(|| ops::concatenate(Axis(0), &[b.view(), a.view()]));
    let (found, traffic) = (found?, report.traffic());
    assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (0, 0));
    assert_eq!(found.residency().on(&there), Validity::Valid);
    assert_eq!((found.sum()?, found.len()), (100.0, 150));
    Ok(())
}

#[test]
fn arrays_that_do_not_fit() {
    let _here = rust().enter();
    fn refused<T: std::fmt::Debug>(outcome: Result<T>, words: [&str; 3]) {
        let Err(Error::Shape { operation, expected, seen, call, .. }) = outcome else {
            panic!("{outcome:?} instead of {words:?}")
        };
        assert_eq!([operation, expected, seen], words);
        let location = call.location().expect("a line");
        assert!(location.file().ends_with("joining.rs"));
    }
    let a = SmartArray::<f32, _>::ones((2, 3)).named("a");
    let (b, c) = (SmartArray::ones((2, 4)).named("b"), SmartArray::ones((5, 3)).named("c"));
    let (a, b, c) = (a.view(), b.view(), c.view());
    refused(
        ops::concatenate(Axis(0), &[a, c, b]),
        [
            "ops::concatenate",
            "arrays of the shape of array 0, \"a\" of shape [2, 3], except along Axis(0)",
            "array 2, \"b\" of shape [2, 4]",
        ],
    );
    refused(
        ops::stack(Axis(0), &[a, c]),
        [
            "ops::stack",
            "arrays of the shape of array 0, \"a\" of shape [2, 3]",
            "array 1, \"c\" of shape [5, 3]",
        ],
    );
    let of_any = [a.into_dyn(), a.row(0).into_dyn()];
    refused(
        ops::concatenate(Axis(1), &of_any),
        [
            "ops::concatenate",
            "arrays of the shape of array 0, \"a\" of shape [2, 3], except along Axis(1)",
            "array 1, \"a\" of shape [3]",
        ],
    );
    refused(
        ops::concatenate(Axis(2), &[a, b]),
        ["ops::concatenate", "arrays with Axis(2)", "\"a\" of shape [2, 3]"],
    );
    refused(
        ops::stack(Axis(3), &[a, a]),
        ["ops::stack", "an axis up to Axis(2)", "Axis(3) for \"a\" of shape [2, 3]"],
    );
    let none: [SmartView<'_, f32, Ix2>; 0] = [];
    refused(ops::concatenate(Axis(0), &none), ["ops::concatenate", "at least one array", "none"]);
    refused(ops::stack(Axis(0), &none), ["ops::stack", "at least one array", "none"]);
    let number = SmartArray::<u64, _>::zeros(1);
    let many = number.broadcast(1 << 59).expect("a shape");
    assert!(matches!(ops::concatenate(Axis(0), &[many; 9]), Err(Error::OutOfMemory { .. })));
}
