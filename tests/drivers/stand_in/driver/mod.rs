//! The behaviour of a driver, on the stand-in or on a real one. With `RESIDENT_REAL_DRIVER=1` each
//! test runs in a process of its own, because it may lose the context or hang where the driver
//! behaves otherwise.

#[macro_use]
mod choice;

mod boxes;
mod captures;
mod compiler;
mod graphs;
mod holes;
mod lost;
mod managed;
mod mappings;
mod memory;
mod no_device;
mod programs;
