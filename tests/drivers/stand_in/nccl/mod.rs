//! The stand-in for NCCL, called through the real cudarc: what NCCL's manual says, and what the
//! stand-in's own documentation does. No call waits for another rank, so that one thread can be all
//! ranks.

mod collectives;
mod communicators;
mod failures;
mod messages;
mod processes;
mod ranks;
