//! The documented behaviour of the public API, sentence by sentence.

// These tests forget every kind of guard, including guards that do nothing when they drop.
#![allow(clippy::forget_non_drop)]

mod asking;
mod audit;
mod budgets;
mod call_shapes;
mod denials;
mod device_code;
mod devices;
mod early;
mod emulation;
mod errors;
mod failures;
mod first_program;
mod grids;
mod host_and_device;
mod host_guards;
mod kernels;
mod making;
mod parts;
mod promises;
mod reused_memory;
mod streams;
mod unwinding;
mod where_newest;
