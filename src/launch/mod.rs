//! Kernels: what they read and write is in their type, and launching them moves what they need and nothing else.

mod argument;
mod body;
mod flat;
mod kernel;
mod queue;
mod signature;

pub use argument::{Argument, Arguments};
pub use kernel::Kernel;
pub use signature::{Described, Flat, In, InOut, Out, Parameter, Signature};
