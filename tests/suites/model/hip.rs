//! The model on the HIP backend, over the stand-in for HIP.

pub(crate) use support::hip::face;

#[allow(clippy::duplicate_mod, reason = "each of the two stand-ins has its own copy")]
#[path = "stand_in.rs"]
mod stand_in;
