//! Parameters that few kernels have: slices as kernels in Rust get them; what a launch takes as its
//! grid; and what chains are recorded with.

// Kernels: their signatures and bodies, and how a launch acquires its arguments, submits the work,
// and marks the arguments as used.

mod arguments;
mod arity;
mod chain;
mod comparator;
mod compare_bodies;
mod compared_body;
mod compile_for;
mod device_code;
mod each;
mod flat;
mod host_body;
mod kernel;
pub(crate) mod parallel;
mod signature;
mod slice;
mod source;
mod submit;
mod variable;
mod without_gpu;

pub use arguments::IntoGrid;
pub(crate) use arguments::bound::{BoundArgument, Rearranged};
pub(crate) use arity::for_each_arity;
pub use chain::{
    ChainArguments, ChainGrid, ChainParameter, ChainSignature, Intent, Recorder, StepArgument,
    StepArguments, Symbol, SymbolPart,
};
pub(crate) use chain::{ServeStep, StepKernel};
pub use slice::Slice;
pub(crate) use submit::expect_written;

// These are at the root of the crate.
#[doc(hidden)]
pub use arguments::{Argument, Arguments};
#[doc(hidden)]
pub use chain::{Chain, Temp};
#[doc(hidden)]
pub use compare_bodies::Difference;
#[doc(hidden)]
pub use compile_for::Compiled;
#[doc(hidden)]
pub use kernel::Kernel;
#[doc(hidden)]
pub use signature::{Described, Flat, In, InOut, Out, Parameter, Signature};
#[doc(hidden)]
pub use source::{CudaSource, GpuSource};
#[doc(hidden)]
pub use variable::Variable;
