//! What always counts, without a capture.

pub(super) mod counters;
pub(super) mod inventory;
mod prometheus;
