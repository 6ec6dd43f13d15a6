//! Device code: from CUDA C, PTX or a cubin to a kernel that can be launched.
//!
//! | file | what it is |
//! |---|---|
//! | `programs`, `once` | from a program to a loaded kernel, each step once for all who need it |
//! | `source`, `options`, `prelude` | CUDA C; its options; what stands before it |
//! | `compile`, `compilation`, `nvrtc` | what comes of it; one run of NVRTC; its functions |
//! | `cache` | what earlier runs compiled |
//! | `image`, `module`, `function` | machine code of a user's; loaded code; one function of it |
//! | `ptx`, `signature` | what PTX says of its kernels; compiled parameters against the signature |
//! | `kernel`, `limits` | a loaded kernel, and the grids that it can be launched on |

mod cache;
mod compilation;
mod compile;
mod function;
mod image;
mod kernel;
mod limits;
mod module;
mod nvrtc;
mod once;
mod options;
mod prelude;
mod programs;
mod ptx;
#[cfg(test)]
mod real_nvrtc;
mod signature;
mod source;

pub(super) use kernel::CudaKernel;
pub(super) use programs::{Programs, load};
