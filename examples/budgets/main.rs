//! Tests of what a program copies: a budget for a function, budgets for random programs, and a call
//! that may copy nothing. In a crate of your own they are `#[test]` functions.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use resident::audit::{Budget, Implicit, deny};
use resident::ndarray::{Array1, Ix1};
use resident::{Device, Error, Result, SmartArray, ops, prelude::s};

/// Halves the numbers on a device, and leaves them there.
fn halve(x: &mut SmartArray<f32, Ix1>) -> Result<()> {
    let half = SmartArray::full(x.raw_dim(), 0.5);
    let mut product = SmartArray::uninit(x.raw_dim());
    ops::mul(&*x, &half, &mut product)?;
    *x = product;
    Ok(())
}

/// 1,000 numbers go up and one comes down.
#[resident::budget(to_device = 4_000, to_host = 4)]
fn one_upload_and_one_number() -> Result<()> {
    let mut x = SmartArray::from(vec![1.0_f32; 1_000]);
    (0..20).try_for_each(|_| halve(&mut x))?;
    assert!(x.get(7)? > 0.0);
    Ok(())
}

/// However often the array is halved, the part that the host reads is all that comes down.
fn only_the_part_that_is_read_comes_down() {
    let cases = (1_usize..200, 0_usize..5, 0_usize..200);
    let config = Config { failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&cases, |(len, times, at)| {
        let mut x = SmartArray::from(Array1::<f32>::ones(len));
        let part = at % len..len;
        let bytes = if times > 0 { 4 * part.len() as u64 } else { 0 };
        let read = Budget::new().to_device(4 * len as u64).to_host(bytes).enforce(|| {
            (0..times).try_for_each(|_| halve(&mut x))?;
            x.slice(s![part]).host().map(|host| host[0])
        });
        prop_assert_eq!(read.expect("in budget").expect("a part"), 0.5_f32.powi(times as i32));
        Ok(())
    });
    outcome.expect("all cases hold");
}

/// A copy that the program did not ask for is an error.
fn nothing_moves_by_itself() {
    let x = SmartArray::from(vec![1.0_f32; 10]);
    let _guard = deny(Implicit::ALL);
    let refused = x.gpu().map(drop).expect_err("an upload");
    assert!(matches!(refused, Error::Denied { .. }), "{refused}");
}

fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    one_upload_and_one_number()?;
    only_the_part_that_is_read_comes_down();
    nothing_moves_by_itself();
    println!("all budgets are kept");
    Ok(())
}
