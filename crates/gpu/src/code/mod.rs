//! Device code: compiles and loads CUDA C, PTX and machine code into kernels to launch.
//!
//! | file | purpose |
//! |---|---|
//! | `programs` | from a program to a loaded kernel; each step runs once per key |
//! | `source` | CUDA C and its options |
//! | `attributes` | what compiled code says that a kernel needs |
//! | `compile`, `compilation` | the compiler; one run of it |
//! | `missing_header` | what to do about a header that it does not find |
//! | `compiler_library` | NVRTC or hiprtc: how it is found; its functions |
//! | `nvrtc`, `nvrtc_options` | NVRTC: its names; what its options mean |
//! | `hiprtc`, `hip_options` | hiprtc: its names; NVRTC's options as it takes them |
//! | `image`, `ptx` | a check of a cubin; the kernels that PTX declares |
//! | `module`, `function` | loaded code; one function of it |
//! | `described_code`, `variable` | types of parameters; variables of a module |
//! | `kernel`, `limits` | a loaded kernel, and the grids that it can be launched on |
//! | `parameter_starts` | where a kernel's parameters start in the words of a launch |

mod attributes;
mod compilation;
mod compile;
mod compiler_library;
mod described_code;
mod function;
#[cfg(feature = "hip")]
mod hip_options;
#[cfg(feature = "hip")]
mod hiprtc;
mod image;
mod kernel;
mod limits;
mod missing_header;
mod module;
#[cfg(feature = "cuda")]
mod nvrtc;
#[cfg(feature = "cuda")]
mod nvrtc_options;
mod parameter_starts;
mod programs;
mod ptx;
#[cfg(all(test, feature = "cuda"))]
mod real_nvrtc;
mod source;
mod variable;
#[cfg(feature = "cuda")]
mod without_gpu;

pub(super) use kernel::GpuKernel;
pub(super) use parameter_starts::PARAMETERS_MAX;
#[cfg(test)]
pub(super) use parameter_starts::ParameterStarts;
pub use programs::{CompiledProgram, compile_for, compiles_for};
pub(super) use programs::{Programs, load, variable};
#[cfg(feature = "cuda")]
pub use without_gpu::{kernel_names_by_nvrtc, ptx_by_nvrtc};
