//! Kernels: their signatures and bodies, and how a launch acquires its arguments, submits the work,
//! and marks the arguments as used.

mod arguments;
mod arity;
mod comparator;
mod compare_bodies;
mod compared_body;
mod compile_for;
mod device_code;
mod flat;
mod host_body;
mod kernel;
mod signature;
mod slice;
mod source;
mod submit;
mod variable;
mod without_gpu;

pub(crate) use arguments::bound::{BoundArgument, Rearranged};
pub use arguments::{Argument, Arguments};
pub(crate) use arity::for_each_arity;
pub use compare_bodies::Difference;
pub use compile_for::Compiled;
pub use kernel::Kernel;
pub use signature::{Described, Flat, In, InOut, Out, Parameter, Signature};
pub use slice::Slice;
pub use source::{CudaSource, GpuSource};
pub use variable::Variable;
