//! Numba's test of its `SmartArray`: a transpose by a kernel, which costs one upload and one
//! download. The kernel is CUDA C, and uses shared memory. `ops::copy` of a transposed view does
//! the same; the view alone moves nothing.
//!
//! Usage: `transpose [ROWS]`, of a table with twice as many columns, 1,000 by default.

use std::process::ExitCode;

use resident::ndarray::{Array2, Ix2};
use resident::ops;
use resident::prelude::*;
use resident_example_programs::{is_ready, number_argument};

/// The rows and columns of a block.
const TILE: u32 = 16;

fn transpose() -> Kernel<(In<f64, Ix2>, Out<f64, Ix2>)> {
    let kernel = Kernel::<(In<f64, Ix2>, Out<f64, Ix2>)>::new("transpose")
        .require("the result is as long as the table is wide", |_grid, (a, b)| {
            [a.shape()[1], a.shape()[0]] == b.shape()
        })
        .require("blocks are tiles", |grid, _| {
            let threads = grid.threads();
            (threads.x, threads.y, threads.z) == (TILE, TILE, 1)
        });
    // SAFETY: it accesses elements inside the views only, and shared memory inside the tile, whose
    // size is that of the blocks by the requirement.
    unsafe { kernel.cuda(include_str!("transpose.cu")) }
}

fn main() -> Result<ExitCode> {
    let Some(rows) = number_argument("transpose", 1_000) else { return Ok(ExitCode::from(2)) };
    let (device, transpose) = (Device::current()?, transpose());
    if !is_ready("transpose", transpose.prepare(&device))? {
        return Ok(ExitCode::FAILURE);
    }
    let shape = (rows, 2 * rows);
    let table = Array2::from_shape_fn(shape, |(i, j)| (i * shape.1 + j) as f64);
    let expected = table.t().to_owned();
    let a = SmartArray::from(table).named("table");
    let mut b = SmartArray::<f64, _>::uninit((shape.1, shape.0)).named("transpose");
    let (outcome, report) = audit::capture(|| -> Result<bool> {
        transpose.launch(Grid::cover_2d(shape, (TILE, TILE)), (&a, &mut b))?;
        Ok(*b.host()? == expected)
    });
    assert!(outcome?, "the kernel transposes");
    println!("{} x {} on {device}, by the kernel:\n{report}", shape.0, shape.1);
    let mut c = SmartArray::<f64, _>::uninit((shape.1, shape.0));
    ops::copy(&a.t(), &mut c)?; // the table is there already
    assert_eq!(*c.host()?, expected);
    println!("and by `ops::copy`: the same");
    Ok(ExitCode::SUCCESS)
}
