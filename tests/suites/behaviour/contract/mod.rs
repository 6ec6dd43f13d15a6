//! The public face, sentence by sentence: what programs that were written against the contract rely
//! on.

// Every guard must be forgettable, whether or not it does something when it drops.
#![allow(clippy::forget_non_drop)]

mod asking;
mod audit;
mod call_shapes;
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
mod order;
mod parts;
mod promises;
mod streams;
mod where_newest;
