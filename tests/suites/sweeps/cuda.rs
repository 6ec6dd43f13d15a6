//! The sweeps on the CUDA backend, over the stand-in driver.

use support::cuda::{driver as kernels, face};

#[cfg(feature = "dlpack")]
#[path = "driver_exchange.rs"]
mod driver_exchange;
#[path = "driver_faults.rs"]
mod driver_faults;
#[path = "driver_in_place.rs"]
mod driver_in_place;
#[path = "driver_interleavings.rs"]
mod driver_interleavings;
