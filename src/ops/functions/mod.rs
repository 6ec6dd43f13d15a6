//! The public functions.

mod operation;

pub(super) mod elementwise;
pub(super) mod indexed;
pub(super) mod linear;
pub(super) mod reductions;
