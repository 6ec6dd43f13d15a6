//! The stand-ins for HIP and hiprtc, called by their C functions; and in `sources` the machine's
//! own hiprtc, which needs no GPU. Each test has a process of its
//! own, because the settings, the record and the faults belong to the process.

mod api;
mod boxes;
mod compiler;
mod devices;
mod faults;
mod memory;
mod programs;
mod runtimes;
mod sources;
mod streams;
mod two_stand_ins;
