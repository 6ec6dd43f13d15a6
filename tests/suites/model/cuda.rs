//! The model on the CUDA backend, over the stand-in driver.

pub(crate) use support::cuda::face;

#[path = "stand_in.rs"]
mod stand_in;
