//! Bodies in Rust, for devices without a compiler.

pub(super) mod indexed;
pub(super) mod matmul;
pub(super) mod rows;
pub(super) mod running;
pub(super) mod zip;
