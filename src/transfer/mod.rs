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
//! The path of a copy through the files: `acquire` (what an access of a device needs) -> `missing`
//! (the loop that decides what is copied next, and accesses of the host) -> `plan` (which copies,
//! from where, on which route, how many at once) -> `upload`, `download`, `peer` or `constant` (one
//! kind of copy each) -> `submit` (after conflicting uses, and recorded). `pipeline` knows what the
//! call has queued so far.

mod acquire;
mod allocate;
mod assign;
mod changed_bytes;
mod claim;
mod constant;
mod copy_out;
mod denied;
mod download;
mod element;
mod error;
mod evict;
mod explicit;
mod guard;
mod launch;
mod mapped;
mod mark;
mod missing;
mod peer;
mod pin;
mod pinned;
mod pipeline;
mod plan;
mod poison;
mod refused;
mod release;
mod report;
mod request;
mod room;
mod small_upload;
mod snapshot;
mod submit;
mod upload;
mod watch;

pub(crate) use acquire::acquire_on;
pub(crate) use allocate::allocate;
pub(crate) use assign::{Target, assign, clone_into};
pub(crate) use constant::{fill, fill_on};
pub(crate) use copy_out::{CallerWaits, failure_of_copies, wait_for_arrival};
pub(crate) use element::{read_element, read_newest, write_element, write_element_on};
pub(crate) use error::{host_full, lost_update, wrong_device};
pub(crate) use evict::release_on;
pub(crate) use explicit::{LentView, copy_from_host, copy_to_host};
#[cfg(feature = "nccl")]
pub(crate) use guard::close_fallible_guard;
pub(crate) use guard::{Opened, close_guard, open_guard, open_whole};
pub(crate) use launch::LaunchedArrays;
pub(crate) use mapped::{advise, allocate_managed, allocate_mapped, map_lent, prefetch_managed};
pub(crate) use mark::{mark_foreign, mark_host_written, write_on_host, write_whole_on_host};
pub(crate) use missing::{acquire_host, prefetch_host};
pub(crate) use pin::{allocate_pinned, end_loan, expect_outside_kernels, page_lock};
pub(crate) use pinned::{CopyCall, ReadAt, copy_from_pinned, copy_to_pinned, snapshot_to_pinned};
#[cfg(feature = "cuda")]
pub(crate) use release::take_memory;
pub(crate) use release::{finish_watches, release};
pub(crate) use request::{Request, StoredView};
pub(crate) use snapshot::{Snapshot, SnapshotCall, snapshot};
pub(crate) use watch::{Next, WatchCore, WatchedState};
