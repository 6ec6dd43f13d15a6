//! Messages and reductions of arrays between GPUs, with the stand-in for NCCL. Its calls wait for
//! no other rank, so a test that needs no threads is all ranks itself.

mod aborted;
mod collectives;
mod fixtures;
mod messages;
mod order;
mod refused;
