//! `#[resident::budget]`.

use resident::Result;
use support::lab::lab;

use crate::ones;

#[resident::budget(to_device = 40, to_host = 0)]
fn uploads(len: usize) -> Result<usize> {
    let array = ones(len);
    Ok(array.gpu_on(&lab().stream())?.len())
}

#[test]
#[resident::budget(to_device = 40, exactly)]
fn a_function_within_its_budget_runs_as_without() -> Result<()> {
    assert_eq!(uploads(10)?, 10);
    Ok(())
}

#[resident::budget(to_host = 0, between_devices = 2 * 4)]
#[test]
fn it_may_stand_above_the_test() {
    assert!(uploads(10).is_ok());
}

#[resident::budget(to_host = 0)]
fn applied<F: Fn(u32) -> u32, G>(f: F, g: G) -> u32
where
    G: Fn(u32) -> u32,
{
    g(f(3))
}

#[resident::budget(to_host = 0)]
fn nothing<F>(f: F)
where
    F: Fn() -> u32,
{
    f();
}

#[test]
fn arrows_of_generics_are_no_return_types() {
    assert_eq!(applied(|x| x + 1, |x| x * 2), 8);
    nothing(|| 3);
}

#[test]
fn a_function_over_its_budget_panics_with_the_line_that_spent_it() {
    let outcome = std::panic::catch_unwind(|| uploads(11));
    let payload = outcome.expect_err("44 bytes");
    let text = payload.downcast_ref::<String>().expect("a message");
    let spent = "44 bytes to_device of at most 40";
    assert!(text.contains(spent) && text.contains("attribute.rs:11:"), "{text}");
}
