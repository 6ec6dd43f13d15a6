//! Copies that accesses need. The path of a copy: `missing` (the loop that decides what is copied
//! next) -> `plan` (which copies, from where, on which route, how many at once) -> `upload`,
//! `download` or `peer` (one kind of copy each) -> `submit` (after conflicting uses, and recorded)
//! -> `report` (counted). `pipeline` knows what the call has queued so far.

pub(super) mod changed_bytes;
pub(super) mod download;
pub(super) mod missing;
pub(super) mod peer;
pub(super) mod pipeline;
pub(super) mod plan;
pub(super) mod report;
pub(super) mod small_upload;
pub(super) mod submit;
pub(super) mod upload;
