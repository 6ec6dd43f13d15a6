#![forbid(unsafe_code)]
//! The decisions of `resident`: which copies an access needs, which bytes they are, and which work
//! must wait for which. Pure: no input or output, no clock, lock, thread or device.
//!
//! Programs use the crate `resident`. This one has no stable interface.

mod access;
pub mod coherence;
pub mod layout;
pub mod ordering;
mod position;

pub use access::Access;
pub use position::Position;
