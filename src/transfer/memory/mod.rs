//! An array's memory: allocated, mapped, pinned, evicted from a full device, and freed.

pub(super) mod allocate;
mod by_pages;
pub(super) mod evict;
mod in_use;
mod limit;
pub(super) mod mapped;
pub(super) mod one_memory;
pub(super) mod page_lock;
pub(super) mod poison;
pub(super) mod release;
pub(super) mod release_host;
pub(super) mod room;
