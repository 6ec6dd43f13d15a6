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
mod logs;
mod long_programs;
mod memory;
mod memory_use;
mod messages;
mod pages;
mod records;
mod scopes;
mod snapshots;
mod traces;
mod unused_copies;

use resident::{In, Kernel, Out};
use support::bodies::{double, one as grid};

#[global_allocator]
static ALLOCATOR: support::allocations::Counting = support::allocations::Counting;

/// Copies an array.
fn copy() -> Kernel<(In<f32>, Out<f32>)> {
    Kernel::<(In<f32>, Out<f32>)>::new("copy").host(|_grid, (from, to)| to.copy_from_slice(from))
}
