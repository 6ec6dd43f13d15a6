//! Kernels: what they read and write is in their type, and launching them moves what they need and
//! nothing else.

mod argument;
mod body;
mod code;
mod compare;
mod flat;
mod judge;
mod kernel;
mod queue;
mod signature;

pub use argument::{Argument, Arguments};
pub use compare::Difference;
pub use kernel::Kernel;
pub use signature::{Described, Flat, In, InOut, Out, Parameter, Signature};
