//! The operators of arrays and views give what ndarray's give, in new arrays.

use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};
use ndarray::{ArrayD, ArrayViewD, Axis, Ix1, Ix2, IxDyn, ShapeBuilder, Zip, arr2, s};
use resident::ops::{Arithmetic, RightOperand};
use resident::{DeviceArray, Error, Result, SmartArray, SmartView, Validity, audit};

use crate::part::{Part, Random, Sample, on_device};
use crate::{devices, rust, sample};

/// A shape, and two that broadcast to it together.
fn shapes(random: &mut Random) -> [Vec<usize>; 3] {
    let whole = Part::shape(4, random);
    let mut pair = [whole.clone(), whole.clone()];
    for axis in 0..whole.len() {
        if let Some(shape) = pair.get_mut(random.below(4)) {
            shape[axis] = 1;
        }
    }
    let shorter = random.below(2);
    let ones = pair[1 - shorter].len();
    pair[shorter].drain(..random.below(ones + 1));
    let [a, b] = pair;
    let more = a.len().abs_diff(b.len());
    let (long, short) = if a.len() < b.len() { (&b, &a) } else { (&a, &b) };
    let mut common = long.clone();
    let pairs = common[more..].iter_mut().zip(short);
    pairs.filter(|(common, _)| **common == 1).for_each(|(common, len)| *common = *len);
    [common, a, b]
}

fn expected<T: Sample>(
    shape: &[usize],
    [a, b]: [ArrayViewD<'_, T>; 2],
    value: fn(T, T) -> T,
) -> ArrayD<T> {
    let broadcast = |x: &ArrayViewD<'_, T>| x.broadcast(IxDyn(shape)).expect("it fits").to_owned();
    Zip::from(&broadcast(&a)).and(&broadcast(&b)).map_collect(|a, b| value(*a, *b))
}

/// All operators on random parts of random arrays.
fn all<T>([add, sub, mul, div]: [fn(T, T) -> T; 4], neg: fn(T) -> T)
where
    T: Sample + Arithmetic + RightOperand<T, IxDyn, Dim = IxDyn>,
{
    let _here = rust().enter();
    for case in 0..sample(40, 200) {
        let mut random = Random::new(case + 1);
        let [shape, of_a, of_b] = shapes(&mut random);
        let [of_a, of_b] = [of_a, of_b].map(|shape| Part::of_shape(&shape, &mut random));
        let (a, b): (ArrayD<T>, ArrayD<T>) = (of_a.array(&mut random), of_b.array(&mut random));
        let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
        let (ours_a, ours_b) = (of_a.of_ours(&ours_a), of_b.of_ours(&ours_b));
        let (a, b, number) = (of_a.of(&a), of_b.of(&b), T::sample(&mut random));
        let numbers = ArrayD::from_elem(a.shape(), number);
        let check = |found: Result<SmartArray<T, IxDyn>>, expected: ArrayD<T>| {
            let found = found.and_then(SmartArray::into_array).expect("shapes fit");
            assert_eq!(found, expected, "case {case}");
        };
        let of_arrays = |value| expected(&shape, [a.view(), b.view()], value);
        let of_number = |value| expected(a.shape(), [a.view(), numbers.view()], value);
        check(&ours_a + &ours_b, of_arrays(add));
        check(&ours_a - &ours_b, of_arrays(sub));
        check(&ours_a * &ours_b, of_arrays(mul));
        check(&ours_a / &ours_b, of_arrays(div));
        check(&ours_a + number, of_number(add));
        check(&ours_a - number, of_number(sub));
        check(&ours_a * number, of_number(mul));
        check(&ours_a / number, of_number(div));
        check(-&ours_a, a.mapv(neg));
    }
}

#[test]
fn floats() {
    all::<f32>([f32::add, f32::sub, f32::mul, f32::div], f32::neg);
    all::<f64>([f64::add, f64::sub, f64::mul, f64::div], f64::neg);
    all::<f16>([f16::add, f16::sub, f16::mul, f16::div], f16::neg);
    all::<bf16>([bf16::add, bf16::sub, bf16::mul, bf16::div], bf16::neg);
}

#[test]
fn integers_wrap_around_and_quotients_by_0_are_0() {
    macro_rules! each {
        ($($type:ident),+) => {
            $(all::<$type>(
                [
                    $type::wrapping_add,
                    $type::wrapping_sub,
                    $type::wrapping_mul,
                    |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
                ],
                $type::wrapping_neg,
            );)+
        };
    }
    each!(i32, i64, u32, u64, u8);
}

/// The kernels of numbers on the left, in CUDA C too.
#[test]
fn numbers_on_the_left() -> Result<()> {
    for (_, _here) in devices() {
        let a = SmartArray::from([1.0_f32, -0.0, 4.0, f32::INFINITY]);
        assert_eq!((2.0 - &a)?.to_vec()?, [1.0, 2.0, -2.0, f32::NEG_INFINITY]);
        assert_eq!((2.0 / &a)?.to_vec()?, [2.0, f32::NEG_INFINITY, 0.5, 0.0]);
        let signs = (-&a)?.to_vec()?.into_iter().map(f32::to_bits);
        assert!(signs.eq([-1.0_f32, 0.0, -4.0, f32::NEG_INFINITY].map(f32::to_bits)));
        let i = SmartArray::from([2, 0, -1, i32::MIN]);
        assert_eq!((7 / &i)?.to_vec()?, [3, 0, -7, 0]);
        assert_eq!((i32::MIN / i.view())?.to_vec()?, [-1_073_741_824, 0, i32::MIN, 1]);
        assert_eq!((7 - i)?.to_vec()?, [5, 7, 8, i32::MIN + 7]);
    }
    let _here = rust().enter();
    macro_rules! each {
        ($($type:ident),+) => {
            $({
                let [one, two, six] = [1_u8, 2, 6].map($type::from);
                let a = SmartArray::from([one, two]);
                assert_eq!((six + &a)?.to_vec()?, [six + one, six + two]);
                assert_eq!((six - a.view())?.to_vec()?, [six - one, six - two]);
                assert_eq!((six * &a.view())?.to_vec()?, [six * one, six * two]);
                assert_eq!((six / a)?.to_vec()?, [six / one, six / two]);
            })+
        };
    }
    each!(f32, f64, i32, i64, u32, u64, u8, f16, bf16);
    Ok(())
}

#[test]
fn arrays_and_views_of_all_kinds_and_dimensions() -> Result<()> {
    let _here = rust().enter();
    let table = arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let ours = SmartArray::from(table.clone());
    let mut row = SmartArray::from([10.0, 20.0, 30.0]);
    let sum = &table + &arr2(&[[10.0, 20.0, 30.0]]);
    let found: SmartArray<f64, Ix2> = (&row + &ours)?;
    assert_eq!(*found.host()?, sum);
    let found: SmartArray<f64, Ix2> = (ours.view() + row.view_mut())?;
    assert_eq!(*found.host()?, sum);
    let found: SmartArray<f64, IxDyn> = (&ours.view().into_dyn() + row.view())?;
    assert_eq!(*found.host()?, sum.clone().into_dyn());
    let found: SmartArray<f64, Ix1> = ((&row * 2.0)? - ours.row(1))?;
    assert_eq!(found.to_vec()?, [16.0, 35.0, 54.0]);
    let found: SmartArray<f64, Ix1> = (-(row.view_mut() / ours.row(0))?)?;
    assert_eq!(found.to_vec()?, [-10.0; 3]);
    let there = on_device(&table.clone().into_dyn());
    assert_eq!((&there + &row)?.to_vec()?, sum.iter().copied().collect::<Vec<_>>());
    let mut there = DeviceArray::from_host(&table)?;
    assert_eq!((row + there.slice(s![1, ..]))?.to_vec()?, [14.0, 25.0, 36.0]);
    assert_eq!((-there.view_mut().slice(s![1, ..]))?.to_vec()?, [-4.0, -5.0, -6.0]);
    assert_eq!(((there * 2.0)? - ours)?.to_vec()?, table.into_raw_vec_and_offset().0);
    Ok(())
}

#[test]
fn results_have_the_order_of_operands_that_are_column_major() -> Result<()> {
    let _here = rust().enter();
    let (columns, rows) = (SmartArray::<f32, _>::ones((3, 4).f()), SmartArray::ones((3, 4)));
    let line = SmartArray::ones(4);
    let strides = |found: Result<SmartArray<f32, Ix2>>| found.map(|found| found.strides().to_vec());
    assert_eq!(strides(&columns + &columns)?, [1, 3]);
    assert_eq!(strides(-&rows.t())?, [1, 4]);
    assert_eq!(strides(&columns + &line)?, [1, 3]);
    assert_eq!(strides(&columns + &rows)?, [4, 1]);
    assert_eq!(strides(&rows + &line)?, [4, 1]);
    assert_eq!(strides(line.view().insert_axis(Axis(1)) + &line)?, [4, 1]);
    Ok(())
}

#[test]
fn results_are_made_where_operands_are_newest() -> Result<()> {
    let (here, there) = (rust(), rust());
    let _here = here.enter();
    let on = |device: &resident::Device| -> Result<SmartArray<f32, Ix1>> {
        let mut array = SmartArray::ones(100);
        drop(array.gpu_mut_on(&device.stream())?);
        Ok(array)
    };
    let (a, b, host) = (on(&here)?, on(&there)?, SmartArray::from([1.0; 100]));
    let made = |found: Result<SmartArray<f32, Ix1>>| {
        found.map(|found| [&here, &there].map(|device| found.residency().on(device)))
    };
    let (of_here, of_there) =
        ([Validity::Valid, Validity::Absent], [Validity::Absent, Validity::Valid]);
    let (outcome, report) = audit::capture(|| -> Result<()> {
        assert_eq!(made(&b * 2.0)?, of_there);
        assert_eq!(made(-b.slice(s![..50]))?, of_there);
        assert_eq!(made(&a + &a)?, of_here);
        let constants = SmartArray::<f32, _>::ones(100);
        assert_eq!(made(constants * &b)?, of_there);
        Ok(())
    });
    outcome?;
    let traffic = report.traffic();
    assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (0, 0));
    assert_eq!(made(&host + &b)?, of_there);
    assert_eq!(host.traffic().to_device.bytes, 400);
    assert_eq!(made(&b + &a)?, of_here, "the current device, if it has an operand");
    let host = SmartArray::from([1.0; 100]);
    assert_eq!(made(&host + &host)?, of_here, "the current device, if none has");
    let elsewhere = {
        let _there = there.enter();
        DeviceArray::<f32, _>::full(100, 1.0)?
    };
    assert_eq!(made(&host - &elsewhere)?, of_there);
    Ok(())
}

#[test]
fn operands_that_do_not_fit() -> Result<()> {
    let _here = rust().enter();
    let a = SmartArray::<f32, _>::ones((3, 4)).named("a");
    let b = SmartArray::<f32, _>::ones(3).named("b");
    let Err(Error::Shape { operation, expected, seen, call, .. }) = &a / &b else {
        panic!("they do not fit")
    };
    assert_eq!(operation, "ops::div");
    assert_eq!(expected, "operands that broadcast with each other");
    assert_eq!(seen, "\"a\" of shape [3, 4], and \"b\" of shape [3]");
    let file = call.location().map(|location| location.file().ends_with("operators.rs"));
    assert_eq!(file, Some(true));
    let empty = SmartArray::<f32, Ix1>::uninit(3);
    assert!(matches!(&empty + 1.0, Err(Error::Uninitialised { .. })));
    // No address space has room for so many.
    let number = SmartArray::<f64, _>::ones(1);
    let many: SmartView<'_, f64, Ix1> = number.broadcast(1 << 45)?;
    let line = many.view().insert_axis(Axis(1));
    assert!(matches!(&many + 1.0, Err(Error::OutOfMemory { .. })));
    assert!(matches!(line * many, Err(Error::OutOfMemory { .. })));
    Ok(())
}

#[test]
fn device_arrays_of_two_devices_are_refused() -> Result<()> {
    let of = |device: resident::Device| {
        let _here = device.enter();
        DeviceArray::<f32, _>::full(3, 1.0)
    };
    let (a, b) = (of(rust())?, of(rust())?);
    assert!(matches!(&a + &b, Err(Error::WrongDevice { .. })));
    Ok(())
}
