//! The embedded device: an asynchronous device made of this process's memory and threads.
//!
//! Programs run on it if there is no GPU, and tests use it to check the modules that use the
//! backend. Streams run in one of two modes: each on its own worker thread, or all in an order that
//! a seed determines.
//!
//! * `device`, `backend`, `stream_handle`, `event` implement the three traits of
//!   `resident_backend`. They check and count calls, refuse invalid ones, and forward valid ones to
//!   the engine.
//! * `engine` runs operations: `stream` (a stream's pending operations, which outlive its
//!   handle), `operation`, `execute`, `progress` (the completed position and its waiters),
//!   `worker`, `streams` (all streams of a device), `device_core`, `clock`.
//! * `memory` is device memory: `address_space` (addresses, the pool, the limit; reservations
//!   in `reserved`), `pages` and `block`.
//! * `simulation` contains the features of emulated devices: `emulation` (settings), `seeded` (the
//!   seeded scheduler), `faults`, `call_log`, `instruments`.
//! * `race_check` reports accesses without a defined order: `tracker`, `hazard` (its reports),
//!   `access` (the bytes that an operation accesses), `vector_clock`, `overlap`, `written`.
//!
//! Lock order: a simulation's turn (locked while an operation runs), a simulation's state, a
//! stream's state, then any one leaf (an address space, a tracker, a call log, the waiters of a
//! stream). User code (kernel bodies, wakers, drops of queued work) runs under no lock except a
//! simulation's turn. A call on a thread that runs queued work never takes the turn.

mod backend;
mod device;
mod engine;
mod errors;
mod event;
mod memory;
mod race_check;
mod simulation;
mod stream_handle;

#[cfg(test)]
mod tests;

pub use race_check::{Hazard, HazardKind, HazardOperation, Touch};
pub use simulation::{Call, CallKind, Emulation, EmulationLog, Fault, Link, Outcome};

pub use device::EmbeddedDevice;
