//! The audit: records, findings, documents, and reports at exit.

mod at_exit;
mod attribute;
mod avoided;
mod causes;
mod counters;
mod documents;
#[cfg(target_os = "linux")]
mod exits;
mod findings;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod gpu_times;
mod logs;
mod long_programs;
mod memory;
mod memory_use;
mod messages;
mod pages;
mod readme;
mod records;
mod scopes;
mod snapshots;
mod subscribers;
mod traces;
mod unused_copies;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod waits;

use resident::{Grid, In, InOut, Kernel, Out};

#[global_allocator]
static ALLOCATOR: support::allocations::Counting = support::allocations::Counting;

/// Doubles each element.
fn double() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0))
}

/// Copies an array.
fn copy() -> Kernel<(In<f32>, Out<f32>)> {
    Kernel::<(In<f32>, Out<f32>)>::new("copy").host(|_grid, (from, to)| to.copy_from_slice(from))
}

/// A grid for arrays of any length: host bodies run once.
fn grid() -> Grid {
    Grid::cover(1)
}
