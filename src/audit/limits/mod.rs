//! What a test or a thread may copy.

pub(super) mod budget;
pub(super) mod deny;
