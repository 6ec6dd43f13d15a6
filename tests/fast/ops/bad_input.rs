//! Operands that do not fit are refused, and stay as they are.

use ndarray::Axis;
use resident::ops::{self, Unary};
use resident::{DeviceArray, Error, Result, SmartArray};

use crate::rust;

/// The error says what was expected and what was seen, and names the call.
fn refused(outcome: Result<()>, words: [&str; 2]) {
    let Err(Error::Shape { operation, expected, seen, call, .. }) = outcome else {
        panic!("{outcome:?} instead of {words:?}")
    };
    assert!(operation.starts_with("ops::"), "{operation}");
    assert!(expected.contains(words[0]) && seen.contains(words[1]), "{expected} / {seen}");
    assert!(call.location().is_some_and(|location| location.file().ends_with("bad_input.rs")));
}

#[test]
fn shapes_that_do_not_fit() -> Result<()> {
    let _here = rust().enter();
    let (a, b) = (SmartArray::<f32, _>::ones((3, 4)), SmartArray::<f32, _>::ones(3));
    let mut c = SmartArray::<f32, _>::full((3, 4), 5.0).named("c");
    let mut one = SmartArray::<f32, _>::full(1, 5.0);
    let mut two = SmartArray::<f32, _>::full(2, 5.0);
    let mut place = SmartArray::<u64, _>::full(2, 5);
    refused(ops::add(&a, &b, &mut c), ["`b` to broadcast to \"c\" of shape [3, 4]", "shape [3]"]);
    refused(ops::copy(&a, &mut one), ["shape [1]", "shape [3, 4]"]);
    refused(ops::sum(&a, &mut two), ["one element", "shape [2]"]);
    refused(ops::argmin(&a, &mut place), ["one element", "shape [2]"]);
    refused(ops::sum_axis(&a, Axis(0), &mut one), ["shape [4]", "shape [1]"]);
    refused(ops::sum_axis(&a, Axis(2), &mut one), ["shape [3, 4]", "Axis(2)"]);
    refused(ops::dot(&a, &b, &mut one), ["shape [3, 4]", "shape [3]"]);
    refused(ops::matmul(&a, &a, &mut c), ["`b` of 4 rows", "3 rows of f32[3, 4]"]);
    refused(ops::matmul(&a, &a.t(), &mut c), ["shape [3, 3]", "shape [3, 4]"]);
    refused(ops::cumulative_sum(&a, &mut one), ["shape [3, 4]", "shape [1]"]);
    assert_eq!((c.to_vec()?, one.get(0)?, two.get(1)?), (vec![5.0; 12], 5.0, 5.0));
    assert_eq!(place.get(0)?, 5);
    Ok(())
}

#[test]
fn numbers_of_nothing() -> Result<()> {
    let _here = rust().enter();
    let none = SmartArray::<f32, _>::zeros((3, 0));
    assert_eq!((none.sum()?, none.norm_l2()?, none.dot(&none)?), (0.0, 0.0, 0.0));
    for outcome in [none.min(), none.max(), none.mean()] {
        refused(outcome.map(drop), ["at least one element", "shape [3, 0]"]);
    }
    refused(none.argmin().map(drop), ["at least one element", "shape [3, 0]"]);
    let mut sums = SmartArray::<f32, _>::uninit(3);
    ops::sum_axis(&none, Axis(1), &mut sums)?;
    assert_eq!(sums.to_vec()?, [0.0; 3]);
    refused(ops::min_axis(&none, Axis(1), &mut sums), ["at least one element", "[3, 0]"]);
    refused(ops::mean_axis(&none, Axis(1), &mut sums), ["at least one element", "[3, 0]"]);
    let mut nothing = SmartArray::<f32, _>::uninit(0);
    ops::min_axis(&none, Axis(0), &mut nothing)?;
    // The shape is the array's own, whichever axis is reduced.
    let mut rows = SmartArray::<f32, _>::uninit(3);
    refused(ops::max_axis(&none.t(), Axis(0), &mut rows), ["at least one element", "[0, 3]"]);
    let mut places = SmartArray::<u64, _>::uninit(3);
    refused(ops::argmax_axis(&none.t(), Axis(0), &mut places), ["one element", "[0, 3]"]);
    Ok(())
}

#[test]
fn functions_that_integers_do_not_have() -> Result<()> {
    let _here = rust().enter();
    let mut out = SmartArray::<i32, _>::full(2, 4);
    let outcome = ops::map(Unary::Exp, &SmartArray::from([1, 2]), &mut out);
    let Err(Error::Requirement { kernel, .. }) = outcome else { panic!("{outcome:?}") };
    assert!(kernel.contains("Exp"), "{kernel}");
    assert_eq!(out.to_vec()?, [4, 4]);
    Ok(())
}

#[test]
fn operands_that_were_never_written_and_those_elsewhere() -> Result<()> {
    let (here, there) = (rust(), rust());
    let _here = here.enter();
    let (empty, mut out) = (SmartArray::<f32, _>::uninit(3), SmartArray::<f32, _>::uninit(3));
    let outcome = ops::add(&empty, &empty, &mut out);
    assert!(matches!(outcome, Err(Error::Uninitialised { .. })), "{outcome:?}");
    let elsewhere = {
        let _there = there.enter();
        DeviceArray::<f32, _>::full(3, 1.0)?
    };
    let outcome = ops::add(&elsewhere, &elsewhere, &mut out);
    assert!(matches!(outcome, Err(Error::WrongDevice { .. })), "{outcome:?}");
    ops::add_on(&there.stream(), &elsewhere, &elsewhere, &mut out)?;
    assert_eq!(out.to_vec()?, [2.0; 3]);
    Ok(())
}

/// Each would run for days, and could not be stopped.
#[test]
fn operands_that_repeat_elements_without_end() -> Result<()> {
    let _here = rust().enter();
    // No address space has room for so many.
    const LEN: usize = 1 << 50;
    let (number, index) = (SmartArray::<u8, _>::ones(1), SmartArray::<u64, _>::zeros(1));
    let (many, indices) = (number.broadcast(LEN)?, index.broadcast(LEN)?);
    let mut one = SmartArray::<u8, _>::full(1, 5);
    let mut place = SmartArray::<u64, _>::full(1, 5);
    let mut result = SmartArray::<u8, _>::uninit(LEN);
    let words = ["at most 17179869184 elements", "shape [1125899906842624]"];
    refused(ops::sum(&many, &mut one), words);
    refused(ops::max(&many, &mut one), words);
    refused(ops::argmax(&many, &mut place), words);
    refused(ops::dot(&many, &many, &mut one), words);
    refused(ops::cumulative_sum(&many, &mut result), words);
    refused(ops::gather(&number, &indices, &mut result), words);
    refused(ops::scatter(&number, &indices, &mut one), words);
    refused(many.sum().map(drop), words);
    let words = [words[0], "shape [3, 1125899906842624]"];
    let table = number.broadcast((3, LEN))?;
    refused(ops::sum_axis(&table, Axis(1), &mut SmartArray::<u8, _>::uninit(3)), words);
    let mut sums = SmartArray::<u8, _>::uninit((3, LEN));
    refused(ops::cumulative_sum_axis(&table, Axis(1), &mut sums), words);
    refused(ops::argmin_axis(&table, Axis(1), &mut SmartArray::<u64, _>::uninit(3)), words);
    refused(ops::matmul(&table, &many, &mut SmartArray::<u8, _>::uninit(3)), words);
    // Here the result limits the elements.
    let wide = index.broadcast(1_usize << 45)?;
    let mut result = SmartArray::<u64, _>::uninit(1 << 45);
    assert!(matches!(ops::copy(&wide, &mut result), Err(Error::OutOfMemory { .. })));
    assert!(matches!(ops::add(&wide, &wide, &mut result), Err(Error::OutOfMemory { .. })));
    assert_eq!((one.get(0)?, place.get(0)?), (5, 5));
    Ok(())
}
