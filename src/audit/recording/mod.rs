//! What is recorded while the program runs: facts of copies, launches and messages, in the blocks
//! of threads.

pub(super) mod block;
pub(super) mod cause;
pub(super) mod contents;
pub(super) mod facts;
pub(super) mod launched_arrays;
pub(super) mod listeners;
pub(super) mod log;
pub(crate) mod messages;
