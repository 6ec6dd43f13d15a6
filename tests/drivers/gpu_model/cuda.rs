//! The model on the CUDA backend, over the stand-in driver.

pub(crate) use support::cuda::face;

// Included for each of the two stand-ins: a `Lab` has functions that know their stand-in.
#[path = "stand_in.rs"]
mod stand_in;
