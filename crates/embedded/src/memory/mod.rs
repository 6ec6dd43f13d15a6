//! Device memory: blocks of this process's memory, and the device addresses that refer to them.

mod address_space;
mod block;
mod leftovers;
mod machine;
mod pages;
mod pinned;
mod staging;

pub(super) use address_space::{AddressSpace, LocatedMemory, LockedAddresses};
pub(super) use block::ALIGNMENT_BYTES;
pub(super) use machine::machine_memory;
pub(super) use pinned::PinnedBlock;
pub(super) use staging::StagingPool;
