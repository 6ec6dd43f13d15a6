//! Device code: compiles and loads CUDA C, PTX and cubins into kernels that can be launched.
//!
//! | file | purpose |
//! |---|---|
//! | `programs` | from a program to a loaded kernel; each step runs once per key |
//! | `source`, `options` | CUDA C and its options |
//! | `compile`, `compilation`, `nvrtc` | the compiler; one run of NVRTC; NVRTC's functions |
//! | `image`, `ptx` | a check of a cubin; the kernels that PTX declares |
//! | `module`, `function` | loaded code; one function of it |
//! | `signature` | the sizes of the compiled parameters |
//! | `kernel`, `limits` | a loaded kernel, and the grids that it can be launched on |
//! | `parameter_starts` | where a kernel's parameters start in the words of a launch |

mod compilation;
mod compile;
mod function;
mod image;
mod kernel;
mod limits;
mod module;
mod nvrtc;
mod options;
mod parameter_starts;
mod programs;
mod ptx;
#[cfg(test)]
mod real_nvrtc;
mod signature;
mod source;
#[cfg(test)]
mod tests;

pub(super) use kernel::CudaKernel;
pub(super) use parameter_starts::PARAMETERS_MAX;
#[cfg(test)]
pub(super) use parameter_starts::ParameterStarts;
pub(super) use programs::{Programs, load};
