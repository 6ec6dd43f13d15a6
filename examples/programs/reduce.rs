//! A sum in two launches of one kernel, in CUDA C: first of each block, then of the blocks' sums.
//! Compares it with `ops::sum` and with ndarray. Only the sums come to the host.
//!
//! Usage: `reduce [LEN]`, the number of elements, 10,000,000 by default.

use std::process::ExitCode;

use resident::ndarray::Array1;
use resident::prelude::*;
use resident_example_programs::{is_ready, number_argument};

/// The blocks and the threads of the first launch. The second has one block.
const BLOCKS: usize = 128;
const THREADS: u32 = 256;

fn block_sums() -> Kernel<(u64, In<f32>, Out<f32>)> {
    let kernel = Kernel::<(u64, In<f32>, Out<f32>)>::new("block_sums")
        .require("the length is that of the elements", |_grid, (len, x, _)| len == x.len() as u64)
        .require("a sum for each block", |grid, (_, _, sums)| {
            sums.len() as u64 == grid.blocks().count()
        })
        .require("a power of two of threads, and shared memory for each", |grid, _| {
            let threads = grid.threads().x;
            threads.is_power_of_two() && grid.dynamic_shared_bytes() == 4 * threads
        });
    // SAFETY: it reads `len` elements of `x`, writes one sum for each block, and uses one number of
    // shared memory for each thread. The requirements say that these are there.
    unsafe { kernel.cuda(include_str!("reduce.cu")) }
}

fn main() -> Result<ExitCode> {
    let Some(len) = number_argument("reduce", 10_000_000) else { return Ok(ExitCode::from(2)) };
    let (device, block_sums) = (Device::current()?, block_sums());
    if !is_ready("reduce", block_sums.prepare(&device))? {
        return Ok(ExitCode::FAILURE);
    }
    let numbers = Array1::from_shape_fn(len, |i| (i % 7) as f32 / 8.0);
    let x = SmartArray::from(numbers.clone()).named("numbers");
    let mut sums = SmartArray::<f32, _>::uninit(BLOCKS).named("sums of blocks");
    let mut sum = SmartArray::<f32, _>::uninit(1).named("sum");
    let (outcome, report) = audit::capture(|| -> Result<(f32, f32)> {
        let grid = |blocks| Grid::new(blocks, THREADS).shared_bytes(4 * THREADS);
        block_sums.launch(grid(BLOCKS as u32), (len as u64, &x, &mut sums))?;
        block_sums.launch(grid(1), (BLOCKS as u64, &sums, &mut sum))?;
        Ok((sum.get(0)?, x.sum()?))
    });
    let (by_kernel, by_ops) = outcome?;
    println!("{len} numbers on {device}");
    println!("by the kernel {by_kernel}, by `sum` {by_ops}, by ndarray {}", numbers.sum());
    println!("{report}");
    Ok(ExitCode::SUCCESS)
}
