//! NCCL between the GPUs of the processes: exchanges and collective operations on arrays go by it
//! where it is there, on a stream of its own. All processes use it, or none does.
//!
//! * `wish`: what processes tell each other at `init`, and what they conclude. Pure
//! * `joining`: the communicator, made by all processes together
//! * `communicator`: operations on its stream, of which a thread knows until when they may take
//! * `watch`: that thread, which aborts the communicator if another process never comes
//! * `absent`: instead of these, without feature `nccl`

#[cfg(not(feature = "nccl"))]
mod absent;
#[cfg(feature = "nccl")]
mod communicator;
mod joining;
#[cfg(feature = "nccl")]
mod watch;
mod wish;

#[cfg(not(feature = "nccl"))]
pub(crate) use absent::{Communicator, Group};
#[cfg(feature = "nccl")]
pub(crate) use communicator::{Communicator, Group};
pub(crate) use joining::join;
pub(crate) use wish::Wish;
