//! Copies. The path of one that an access needs: `missing` (the loop that decides what is copied
//! next) -> `plan` (which copies, from where, on which route, how many at once) -> `upload` or
//! `download` (in chunks, for pageable memory) -> `job` (after conflicting uses; queued, recorded)
//! -> `pipeline` (what the call has queued so far) -> `report` (counted). Copies between two arrays
//! are `between_arrays`.

pub(super) mod between_arrays;
pub(super) mod changed_bytes;
pub(super) mod download;
pub(super) mod job;
pub(super) mod missing;
pub(super) mod pipeline;
pub(super) mod plan;
pub(super) mod report;
pub(super) mod small_upload;
pub(super) mod upload;
