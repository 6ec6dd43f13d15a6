//! The accesses that calls make: which elements, whether an access may go on, and what is recorded
//! of it. `request` says what is accessed; `acquire` and `mark` are the first and the last step of
//! an access of a device, which `launch` and `guard` make for many arrays, and for other code.

pub(super) mod acquire;
pub(super) mod denied;
pub(super) mod error;
pub(super) mod guard;
pub(super) mod launch;
pub(super) mod mark;
pub(super) mod refused;
pub(super) mod request;
