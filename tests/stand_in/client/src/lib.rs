//! How a program loads the shared object of a stand-in, and controls a simulated GPU in it.
//!
//! * `library`: finds and loads shared objects
//! * `settings`: the simulated machine, with the settings of CUDA and of HIP
//! * `client`, `launch`: the functions that tests call; the arguments of a host function that
//!   replaces a kernel
//! * `above_driver`: what libraries share whose kernels run on the stand-in driver
//! * `protocol`: the types that client and shared object share
//!
//! Program and shared object have this crate each for itself, so a static of it is never common to
//! both.

pub mod above_driver;
mod client;
mod launch;
pub mod library;
pub mod protocol;
pub mod settings;

pub use client::{Call, Client};
pub use launch::{Fault, Launch, View, register};
