//! The sweeps on the HIP backend, over the stand-in for HIP.

use support::hip::{driver as kernels, face};

#[allow(clippy::duplicate_mod, reason = "each of the two stand-ins has its own copy")]
#[path = "driver_faults.rs"]
mod driver_faults;
#[allow(clippy::duplicate_mod, reason = "each of the two stand-ins has its own copy")]
#[path = "driver_in_place.rs"]
mod driver_in_place;
#[allow(clippy::duplicate_mod, reason = "each of the two stand-ins has its own copy")]
#[path = "driver_interleavings.rs"]
mod driver_interleavings;
