//! The accesses that calls make: which elements, whether an access may go on, and what is recorded
//! of it. `request` says what is accessed, `readiness` whether the access may go on. `acquire` and
//! `mark` are its first and its last step, which `launch` takes for the arrays of a launch, and
//! `guard` for other code.

pub(super) mod acquire;
pub(super) mod denied;
pub(super) mod error;
pub(super) mod guard;
pub(super) mod launch;
pub(super) mod mark;
pub(super) mod readiness;
pub(super) mod refused;
pub(super) mod request;
