//! Guards of device copies, for foreign work (work that code outside this library queues).

#![allow(clippy::forget_non_drop, reason = "the tests drop guards with and without a destructor")]

use super::prelude::*;
use std::mem::forget;

const LEN: usize = 64;

/// Foreign work on the guard's stream runs before the next use of the array. In this test the
/// foreign work is represented by a launch on another array.
pub(crate) fn an_open_guard_holds_a_writer_elsewhere_back(lab: &Lab) -> Result<()> {
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let (mut array, mut aside) = (numbers(LEN), numbers(LEN));
    let guard = array.gpu_on(&one)?;
    lab.gated(&one, &gate, &mut aside)?;
    drop(guard);
    lab.add(&other, 1, &mut array)?;
    assert!(!other.is_idle()?, "the writer comes after the work queued while the guard was open");
    gate.open();
    other.synchronize()?;
    assert!(one.is_idle()?);
    assert_eq!((array.host()?[0], aside.host()?[0]), (1, 1));
    Ok(())
}

pub(crate) fn forgotten_guards_lose_nothing(lab: &Lab) -> Result<()> {
    let [one, other] = lab.two_streams()?;
    let mut array = numbers(LEN);
    for _ in 0..10 {
        forget(array.gpu_on(&one)?);
        forget(array.gpu_mut_on(&other)?);
        lab.add(&one, 1, &mut array)?;
        forget(array.slice_mut(s![3..9]).gpu_mut_on(&other)?);
        forget(array.host()?);
        forget(array.host_mut()?);
        forget(array.snapshot_on(&other)?);
    }
    assert_eq!(*array.host()?, counting(LEN) + 10);
    drop(array.gpu_mut_on(&one)?);
    Ok(())
}

pub(crate) fn a_guard_on_another_stream_follows_what_was_queued(lab: &Lab) -> Result<()> {
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let mut array = lab.gated_numbers(&one, &gate, LEN)?;
    drop(array.gpu_on(&other)?);
    assert!(!other.is_idle()?, "the guard's stream comes after the writer");
    gate.open();
    other.synchronize()?;
    assert!(one.is_idle()?);
    let guard = array.view_mut().into_gpu_mut_on(&one)?;
    assert_eq!(guard.len(), LEN);
    Ok(())
}

pub(crate) fn declared_changes_are_changes(lab: &Lab) -> Result<()> {
    let (device, mut array) = (lab.device(), numbers(LEN));
    let _here = device.enter();
    drop(array.gpu()?);
    array.gpu_changed_on(&lab.new_stream()?)?;
    assert_eq!(validity(&array.residency(), &device), [Stale, Valid]);
    array.gpu_changed()?;
    assert_eq!(*array.host()?, counting(LEN));
    assert_eq!(bytes(array.traffic()), [256, 256, 0]);
    array.host_changed()?;
    assert_eq!(validity(&array.residency(), &device), [Valid, Stale]);
    drop(array.gpu()?);
    assert_eq!(bytes(array.traffic()), [512, 256, 0]);
    Ok(())
}

pub(crate) fn a_declared_change_that_would_lose_an_update_is_refused(lab: &Lab) -> Result<()> {
    let mut array = numbers(LEN);
    let _here = lab.device().enter();
    assert!(matches!(array.gpu_changed(), Err(Error::LostUpdate { .. })), "it was never there");
    make_newest(&mut array, &lab.stream())?;
    let refused = array.host_changed();
    let Err(error @ Error::LostUpdate { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains(&lab.device().name()), "{error}");
    array.host_mut()?.fill(1);
    assert!(matches!(array.gpu_changed_on(&lab.stream()), Err(Error::LostUpdate { .. })));
    assert_eq!(array.host()?.sum(), LEN as u32);
    Ok(())
}

pub(crate) fn disjoint_parts_are_guarded_at_once(lab: &Lab) -> Result<()> {
    let [one, other] = lab.two_streams()?;
    let mut array = numbers(LEN);
    let (mut low, mut high) = array.split_at_mut(Axis(0), 20);
    let (first, second) = (low.gpu_mut_on(&one)?, high.gpu_mut_on(&other)?);
    assert_eq!((first.len(), second.len(), second.address() - first.address()), (20, 44, 80));
    drop((first, second));
    let mut host = high.host_mut()?;
    let device = low.gpu_mut_on(&other)?;
    host[0] = 9;
    drop((device, host));
    let mut expected = counting(LEN);
    expected[20] = 9;
    assert_eq!(*array.host()?, expected);
    Ok(())
}
