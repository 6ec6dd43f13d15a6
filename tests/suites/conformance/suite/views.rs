//! Views: random chains of rearrangements have the elements that ndarray's have, and only these
//! move.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};
use resident::Result;

use self::programs::Chain;
use self::programs::chain::Step;
pub(super) use self::programs::chain::slice_of;
use super::lab::{Lab, with_checked_totals};

#[path = "../../../../fuzz/operations/views/mod.rs"]
mod programs;

fn cases() -> impl Strategy<Value = Chain> {
    (vec(0_usize..6, 0..4), any::<bool>(), vec(any::<Step>(), 1..7)).prop_map(
        |(mut shape, is_fortran, steps)| {
            // Most arrays have elements.
            if steps.len() > 1 {
                shape.iter_mut().for_each(|len| *len = (*len).max(1));
            }
            Chain { shape, is_fortran, steps }
        },
    )
}

pub(super) fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(10),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })
}

fn run_all(lab: &Lab<'_>, run: impl Fn(&Chain) -> Result<()>) -> Result<()> {
    let outcome = runner(96).run(&cases(), |chain| {
        with_checked_totals(&[lab.device()], || run(&chain))
            .unwrap_or_else(|error| panic!("{error}"));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}

pub(crate) fn chains_of_rearrangements_have_the_elements_of_ndarrays(lab: &Lab<'_>) -> Result<()> {
    run_all(lab, |chain| chain.run_on_views(&lab.stream()))
}

pub(crate) fn chains_on_device_arrays_have_the_elements_of_ndarrays(lab: &Lab<'_>) -> Result<()> {
    run_all(lab, |chain| chain.run_on_device_views(&lab.stream()))
}

pub(crate) fn chains_on_exclusive_views_write_the_elements_of_ndarrays(
    lab: &Lab<'_>,
) -> Result<()> {
    run_all(lab, |chain| chain.run_on_exclusive_views(&lab.stream()))
}

pub(crate) fn chains_on_exclusive_device_views_write_the_elements_of_ndarrays(
    lab: &Lab<'_>,
) -> Result<()> {
    run_all(lab, |chain| chain.run_on_exclusive_device_views(&lab.stream()))
}

pub(crate) fn chains_on_fields_have_the_elements_of_ndarrays(lab: &Lab<'_>) -> Result<()> {
    run_all(lab, |chain| chain.run_on_fields(&lab.stream()))?;
    run_all(lab, |chain| chain.run_on_device_fields(&lab.stream()))
}

pub(crate) fn chains_on_exclusive_fields_write_the_elements_of_ndarrays(
    lab: &Lab<'_>,
) -> Result<()> {
    run_all(lab, |chain| chain.run_on_exclusive_fields(&lab.stream()))
}
