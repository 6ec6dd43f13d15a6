//! The accesses that calls make: which elements, whether an access may go on, and what is recorded
//! of it. `request` says what is accessed. `acquire` and `mark` are the first and the last step of
//! an access, which `launch` takes for the arrays of a launch, and `guard` for other code.

pub(super) mod acquire;
pub(super) mod acquired;
pub(super) mod denied;
pub(super) mod error;
pub(super) mod guard;
pub(super) mod launch;
mod left_out;
pub(super) mod mark;
pub(super) mod request;
