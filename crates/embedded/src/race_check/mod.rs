//! The race check: reports conflicting accesses to the same bytes with no happens-before edge
//! between them, and accesses to memory that is freed, uninitialised or out of bounds.

mod access;
mod hazard;
pub(super) mod overlap;
mod tracker;
mod vector_clock;
pub(super) mod written;

pub use hazard::{Hazard, HazardKind, HazardOperation, Touch};

pub(super) use access::MemoryAccess;
pub(super) use tracker::{Submission, Tracker};
pub(super) use vector_clock::VectorClock;
