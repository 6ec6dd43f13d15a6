//! The guide: a page for each task, with programs that are tested.
//!
//! First steps, in reading order:
//!
//! 1. [From ndarray](from_ndarray): what ndarray's names are here, and what each of them copies.
//! 2. [From a loop to a GPU](from_a_loop_to_a_gpu): one kernel, written, tested and checked on a
//!    machine without a GPU.
//! 3. [Kernels on two and three dimensions](kernels_on_two_and_three_dimensions): views, grids,
//!    edges, halos, shared memory, strides.
//! 4. [Operations](operations): what there is without kernels of your own, by task.
//! 5. [Read a report](read_a_report): what a program copies, what it need not, and how to mend
//!    that.
//! 6. [Budgets in tests](budgets_in_tests): tests that fail if more is copied.
//! 7. [Several streams](several_streams): copies and kernels that overlap, without events.
//! 8. [Programs that run for long](programs_that_run_for_long), and many processes: numbers for
//!    monitoring, reports meanwhile, forked children, memory.
//! 9. [Threads that wait](threads_that_wait): rayon, async executors, and bodies that wait for each
//!    other.
//!
//! To look things up: [first hour on a GPU](first_hour_on_a_gpu), the [environment
//! variables](configuration), and [when not to use it](when_not_to_use_it).
//!
//! For those who know other libraries: [what differs](from_numba_cupy_and_cudarc) and the most
//! common names, all names of [Numba](from_numba), [CuPy](from_cupy) and [cudarc](from_cudarc), and
//! those of [NVIDIA's cuda-core and cuda-oxide](from_cuda_core_and_cuda_oxide).
//!
//! Other machines and languages: [kernels in Rust](kernels_in_rust), [AMD GPUs](amd_gpus),
//! [tensors of Python](tensors_of_python) (feature `dlpack`), and the module
//! `more_than_one_machine` of the crate `resident-mpi`.

#[allow(unused_imports, reason = "for links")]
use super::*;

#[doc = include_str!("../docs/guide/from_ndarray.md")]
pub mod from_ndarray {}

#[doc = include_str!("../docs/guide/from_a_loop_to_a_gpu.md")]
pub mod from_a_loop_to_a_gpu {}

#[doc = include_str!("../docs/guide/kernels_on_two_and_three_dimensions.md")]
pub mod kernels_on_two_and_three_dimensions {}

#[doc = include_str!("../docs/guide/operations.md")]
pub mod operations {}

#[doc = include_str!("../docs/guide/read_a_report.md")]
pub mod read_a_report {}

#[doc = include_str!("../docs/guide/budgets_in_tests.md")]
pub mod budgets_in_tests {}

#[doc = include_str!("../docs/guide/several_streams.md")]
pub mod several_streams {}

#[doc = include_str!("../docs/guide/programs_that_run_for_long.md")]
pub mod programs_that_run_for_long {}

#[doc = include_str!("../docs/guide/threads_that_wait.md")]
pub mod threads_that_wait {}

#[doc = include_str!("../docs/guide/first_hour_on_a_gpu.md")]
pub mod first_hour_on_a_gpu {}

#[doc = include_str!("../docs/guide/configuration.md")]
pub mod configuration {}

#[doc = include_str!("../docs/guide/when_not_to_use_it.md")]
pub mod when_not_to_use_it {}

#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/introduction.md")]
pub mod from_numba_cupy_and_cudarc {}

#[cfg_attr(
    not(all(feature = "cuda", feature = "dlpack")),
    allow(rustdoc::broken_intra_doc_links, reason = "some items exist only with the features")
)]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/numba.md")]
pub mod from_numba {}

#[cfg_attr(
    not(all(feature = "cuda", feature = "dlpack")),
    allow(rustdoc::broken_intra_doc_links, reason = "some items exist only with the features")
)]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/cupy.md")]
pub mod from_cupy {}

#[cfg_attr(
    not(all(feature = "cuda", feature = "dlpack")),
    allow(rustdoc::broken_intra_doc_links, reason = "some items exist only with the features")
)]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/cudarc.md")]
pub mod from_cudarc {}

#[doc = include_str!("../docs/guide/from_cuda_core_and_cuda_oxide.md")]
pub mod from_cuda_core_and_cuda_oxide {}

#[doc = include_str!("../docs/guide/kernels_in_rust/introduction.md")]
#[doc = "`escape.rs`, for both:\n\n```rust,ignore"]
#[doc = include_str!("../docs/guide/kernels_in_rust/escape.rs")]
#[doc = "```\n\n`kernel.rs`:\n\n```rust,ignore"]
#[doc = include_str!("../docs/guide/kernels_in_rust/kernel.rs")]
#[doc = "```"]
pub mod kernels_in_rust {}

#[doc = include_str!("../docs/guide/amd_gpus.md")]
pub mod amd_gpus {}

#[cfg_attr(
    not(feature = "dlpack"),
    allow(rustdoc::broken_intra_doc_links, reason = "its items exist only with the feature")
)]
#[cfg_attr(feature = "dlpack", doc = include_str!("../docs/guide/tensors_of_python.md"))]
#[cfg_attr(
    not(feature = "dlpack"),
    doc = "Arrays to NumPy, PyTorch and CuPy and back: this page needs the feature `dlpack`."
)]
pub mod tensors_of_python {}
