//! Copies. The path of one that an access needs: `missing` (the loop that decides what is copied
//! next) -> `plan` (which copies, from where, on which route, how many at once) -> `job` (after
//! conflicting uses; in chunks, for pageable memory, and for uploads of it by way of `upload`;
//! queued, recorded) -> `report` (counted). Copies between two arrays are `between_arrays`.

pub(super) mod between_arrays;
pub(super) mod chained;
pub(super) mod changed_bytes;
pub(super) mod job;
pub(super) mod missing;
pub(super) mod plan;
pub(super) mod report;
pub(super) mod small_upload;
pub(super) mod upload;
