//! Views: random chains of rearrangements have the elements that ndarray's have, on the host and in
//! kernels, and only these move.

use super::prelude::*;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};
use resident_programs::views::Chain;
use resident_programs::views::chain::Step;
pub(super) use resident_programs::views::chain::slice_of;
use resident_programs::views::launched::{Kernels, STEP};

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

fn run_all(lab: &Lab, run: impl Fn(&Chain, &Stream, &Kernels) -> Result<()>) -> Result<()> {
    let kernels = Kernels::new(Some(lab.code()));
    let outcome = runner((40, 96), 10).run(&cases(), |chain| {
        with_checked_totals(&[lab.device()], || run(&chain, &lab.stream(), &kernels))
            .unwrap_or_else(|error| panic!("{error}"));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}

pub(crate) fn chains_of_rearrangements_have_the_elements_of_ndarrays(lab: &Lab) -> Result<()> {
    run_all(lab, Chain::run_on_views)
}

pub(crate) fn chains_on_device_arrays_have_the_elements_of_ndarrays(lab: &Lab) -> Result<()> {
    run_all(lab, Chain::run_on_device_views)
}

pub(crate) fn chains_on_exclusive_views_write_the_elements_of_ndarrays(lab: &Lab) -> Result<()> {
    run_all(lab, Chain::run_on_exclusive_views)
}

pub(crate) fn chains_on_exclusive_device_views_write_the_elements_of_ndarrays(
    lab: &Lab,
) -> Result<()> {
    run_all(lab, Chain::run_on_exclusive_device_views)
}

pub(crate) fn chains_on_fields_have_the_elements_of_ndarrays(lab: &Lab) -> Result<()> {
    run_all(lab, Chain::run_on_fields)?;
    run_all(lab, Chain::run_on_device_fields)
}

pub(crate) fn chains_on_exclusive_fields_write_the_elements_of_ndarrays(lab: &Lab) -> Result<()> {
    run_all(lab, Chain::run_on_exclusive_fields)
}

/// Launches on parts of a table that are taken in turn, on an array of each kind. Each part is read
/// first.
macro_rules! change_parts {
    ($table:expr, $stream:expr, $kernels:expr, $expected:expr) => {{
        let (mut table, stream, kernels, expected) = ($table, $stream, $kernels, $expected);
        kernels.read(stream, &table.row(1).into_dyn(), &expected.row(1).to_owned().into_dyn())?;
        kernels.change(stream, &mut table.row_mut(1).into_dyn(), &[6])?;
        expected.row_mut(1).map_inplace(|x| *x += STEP);
        let column = expected.column(2).to_owned().into_dyn();
        kernels.read(stream, &table.column(2).into_dyn(), &column)?;
        kernels.change(stream, &mut table.column_mut(2).into_dyn(), &[5])?;
        expected.column_mut(2).map_inplace(|x| *x += STEP);
        let chunks = table.axis_chunks_iter(Axis(1), 4);
        for (chunk, expected) in chunks.zip(expected.axis_chunks_iter(Axis(1), 4)) {
            kernels.read(stream, &chunk.into_dyn(), &expected.to_owned().into_dyn())?;
        }
        for chunk in table.axis_chunks_iter_mut(Axis(0), 2).skip(1) {
            let shape = chunk.shape().to_vec();
            kernels.change(stream, &mut chunk.into_dyn(), &shape)?;
        }
        expected.slice_mut(s![2.., ..]).map_inplace(|x| *x += STEP);
        let inserted = expected.clone().insert_axis(Axis(1)).into_dyn();
        kernels.read(stream, &table.insert_axis(Axis(1)).into_dyn(), &inserted)?;
        let mut plane = table.view_mut().insert_axis(Axis(0)).into_dyn();
        kernels.change(stream, &mut plane, &[1, 5, 6])?;
        *expected += STEP;
        let first = expected.column(0).to_owned().into_dyn();
        kernels.read(stream, &table.remove_axis(Axis(1)).into_dyn(), &first)?;
        let mut row = table.view_mut().remove_axis(Axis(0)).into_dyn();
        kernels.change(stream, &mut row, &[6])?;
        expected.row_mut(0).map_inplace(|x| *x += STEP);
        table
    }};
}

pub(crate) fn kernels_take_rows_columns_chunks_and_other_axes(lab: &Lab) -> Result<()> {
    let (stream, contents): (_, Array2<u32>) = (lab.stream(), numbered((5, 6), 0));
    let kernels = Kernels::new(Some(lab.code()));
    let mut expected = contents.clone();
    let table = SmartArray::from(contents.clone());
    let table = change_parts!(table, &stream, &kernels, &mut expected);
    assert_eq!(*table.host()?, expected);
    let mut expected = contents.clone();
    let table = DeviceArray::from_host_on(&stream, &contents)?;
    let table = change_parts!(table, &stream, &kernels, &mut expected);
    assert_eq!(table.copy_to_host()?, expected);
    Ok(())
}
