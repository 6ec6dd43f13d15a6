//! The sweeps on the HIP backend, over the stand-in for HIP.

use support::hip::{driver as kernels, face};

#[path = "driver_faults.rs"]
mod driver_faults;
#[path = "driver_in_place.rs"]
mod driver_in_place;
#[path = "driver_interleavings.rs"]
mod driver_interleavings;
