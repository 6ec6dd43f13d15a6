//! The only module that copies contents: it asks `coherence` for a plan, queues the copies in the
//! order that `ordering` requires, and reports them to `audit`.
//!
//! Every access has three steps:
//!
//! 1. *Acquire* makes the elements available at one location, and makes a stream or the host wait
//!    for conflicting uses.
//! 2. The caller queues its own work.
//! 3. *Mark* records the use and its effect.
//!
//! No lock is held between the steps. No conflicting access can occur between the steps, because
//! the caller's Rust borrow of the part lasts for all three.
//!
//! `access` has these steps, `copy` the copies that accesses need, `contents` the calls that change
//! or copy contents, `memory` where they lie, and `watch` the watches.

mod access;
mod contents;
mod copy;
mod memory;
mod watch;

pub(crate) use access::acquire::acquire_on;
pub(crate) use access::acquired::Acquired;
pub(crate) use access::error::{host_full, lost_update, wrong_device};
#[cfg(feature = "nccl")]
pub(crate) use access::guard::close_fallible_guard;
pub(crate) use access::guard::{Opened, close_guard, open_guard};
pub(crate) use access::launch::{LaunchedArrays, Marked, use_copies};
pub(crate) use access::mark::{mark_foreign, mark_host_written, write_on_host};
pub(crate) use access::request::{Request, StoredView};
pub(crate) use contents::assign::{Target, assign, clone_into};
pub(crate) use contents::constant::{discard, fill, fill_on};
pub(crate) use contents::copy_out::{CallerWaits, failure_of_copies, wait_for_arrival};
pub(crate) use contents::element::{read_element, read_newest, write_element};
pub(crate) use contents::lent::{LentView, copy_from_host, copy_to_host};
pub(crate) use contents::newest::device_where_newest;
pub(crate) use contents::pinned_copy::{
    CopyCall, ReadAt, copy_from_pinned, copy_to_pinned, snapshot_to_pinned,
};
pub(crate) use contents::snapshot::{Snapshot, SnapshotCall, snapshot};
pub(crate) use copy::chained::copy_step;
pub(crate) use copy::missing::{
    acquire_host, acquire_host_to_write, is_host_at_hand, prefetch_host,
};
pub(crate) use memory::allocate::allocate;
pub(crate) use memory::evict::release_on;
pub(crate) use memory::mapped::{
    advise, allocate_managed, allocate_mapped, map_lent, prefetch_managed,
};
pub(crate) use memory::one_memory::unshare_host;
pub(crate) use memory::page_lock::{allocate_pinned, end_loan, expect_outside_kernels, page_lock};
#[cfg(feature = "cuda")]
pub(crate) use memory::release::take_memory;
pub(crate) use memory::release::{finish_watches, release};
pub(crate) use memory::release_host::release_host;
pub(crate) use watch::{Next, WatchCore, WatchedState};
