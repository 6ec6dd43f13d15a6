//! Why a copy was made.

use std::fmt;

/// The kind of call that needed the bytes of a copy.
///
/// To add a cause: add a variant with its name below, and pass it in the
/// `transfer::Request` of the calls that have this cause: mostly in `array/part.rs` and
/// `launch/submit.rs`. Reports depend on causes, and what [`deny`](crate::audit::deny()) denies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// An argument of `launch` or `launch_on`.
    Launch,
    /// `host`, `host_mut`, `Kernel::call`, `into_array`.
    Host,
    /// `gpu`, `gpu_mut` and their variants, `into_cuda_slice`.
    Gpu,
    /// `prefetch`, `prefetch_host`.
    Prefetch,
    /// A copy that the program requested explicitly: `assign`, `assign_on`, `get`, `snapshot_on`,
    /// `snapshot_into`, the results of `Kernel::compare`.
    Explicit,
    /// `release_on`, and room on a full device: a copy to the host of what the device is about to
    /// free, at the line that needed the room.
    Evict,
    /// A state of an array that has a [`Watch`](crate::Watch).
    Watch,
    /// A message between processes, by the crate `resident-mpi`. Also one between GPUs by NCCL
    /// (feature `nccl`).
    Mpi,
}

impl Cause {
    /// Whether the call does something else than copying: see [`Implicit`](crate::audit::Implicit).
    #[inline]
    pub(crate) fn is_implicit(self) -> bool {
        matches!(self, Self::Launch | Self::Host | Self::Gpu)
    }

    /// The name in reports and in the field `cause` of the tracing event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Host => "host",
            Self::Gpu => "gpu",
            Self::Prefetch => "prefetch",
            Self::Explicit => "explicit",
            Self::Evict => "evict",
            Self::Watch => "watch",
            Self::Mpi => "mpi",
        }
    }
}

/// As [`as_str`](Self::as_str).
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
