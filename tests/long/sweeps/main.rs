//! Repeated runs of whole programs: in each run another call fails, or the work runs in another
//! legal order.

mod bench;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod cuda;
mod device_arrays;
mod each_call;
mod environment;
#[cfg(feature = "dlpack")]
mod exchange;
mod faults;
mod full_devices;
mod guards_in_place;
#[cfg(all(target_os = "linux", feature = "hip"))]
mod hip;
mod in_place;
mod interleavings;
mod model;
mod pictures;
mod refused_writes;
mod scenario;
mod seeds;
#[cfg(target_os = "linux")]
mod soak;
mod steps;
mod stress;
mod unwinding;
