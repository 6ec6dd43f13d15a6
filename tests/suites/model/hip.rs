//! The model on the HIP backend, over the stand-in for HIP.

pub(crate) use support::hip::face;

#[path = "stand_in.rs"]
mod stand_in;
