//! The sweeps on the GPU backend, over the stand-in for a driver, `super::face`. Each of the two
//! stand-ins has its own copy.

#[cfg(feature = "dlpack")]
mod exchange;
mod faults;
mod guards_in_place;
mod in_place;
mod interleavings;
mod refused_writes;
mod unwinding;

use super::{face, kernels};
