//! What the stand-ins for NVRTC and hiprtc share: they make a shared library of a source with a C++
//! compiler, and describe its kernels to a driver.
//!
//! * `options`: what differs: options, logs and code
//! * `kernels`, `kernels.hpp`: the source, so that the library lists its kernels
//! * `compiler`: from options and source to the library and the code
//! * `programs`: the programs by handle, and what the C functions do with them
//! * `client`: the functions that tests call
//!
//! Libraries are kept in `stand_in_code` beside the program, for later runs. Without a C++
//! compiler, each compilation fails, and the log says so.
//!
//! Each shared object is built with this crate for itself, and has programs of its own.

pub mod client;
pub mod compiler;
mod kernels;
pub mod options;
pub mod programs;
