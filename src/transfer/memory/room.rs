//! Room on a full device: evicts copies of other arrays until an allocation fits, or until all that
//! is left is in use.

use super::evict::{Eviction, evict};
use crate::device::Device;
use crate::storage;
use crate::transfer::access::request::Request;
use resident_backend::{BackendError, BackendErrorKind};

/// What a search for room freed, and what it found in use.
#[derive(Default)]
struct Search {
    freed_bytes: u64,
    kept: Kept,
}

/// Copies in use, which may be evicted once they are not.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Kept {
    len_bytes: u64,
    /// The number of uses of these arrays that have begun.
    uses: u64,
}

/// Calls `allocate`. If the device is full, evicts as many copies of other arrays as the allocation
/// needs, and calls `allocate` again. Contents are never copied, and copies in use are kept. The
/// caller holds no lock.
pub(super) fn with_room<T>(
    device: &Device,
    request: &Request<'_>,
    allocate: impl Fn() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    let beside = {
        let _beside = device.allocate_beside();
        allocate()
    };
    if missing_bytes(&beside).is_none() {
        return beside;
    }
    let _alone = device.allocate_alone();
    let mut before: Option<Kept> = None;
    loop {
        // No other thread allocates now, so this does not grow.
        let in_use_bytes = device.backend().memory().in_use;
        let outcome = allocate();
        let missing_bytes = match missing_bytes(&outcome) {
            Some(missing_bytes) if missing_bytes <= in_use_bytes => missing_bytes,
            // It fits, or would not fit if all copies gave way.
            _ => return outcome,
        };
        let Search { freed_bytes, kept } = make_room(device, missing_bytes, request);
        // Each copy may have been in use when the search came to it, though not all at one time.
        // They were, if no use has begun since the last search.
        let is_final = |before| before == kept || kept.len_bytes < missing_bytes;
        if freed_bytes == 0 && before.is_some_and(is_final) {
            return outcome;
        }
        before = (freed_bytes == 0).then_some(kept);
    }
}

/// The bytes that must be freed before the allocation fits; `None` if it was not refused for lack
/// of memory.
fn missing_bytes<T>(outcome: &Result<T, BackendError>) -> Option<u64> {
    match outcome {
        Err(BackendError {
            kind: BackendErrorKind::OutOfMemory { requested, free, draining },
            ..
        }) => match requested.saturating_sub(free.saturating_add(*draining)) {
            // Other programs took the memory meanwhile, or it is in pieces.
            0 => Some(*requested),
            missing => Some(missing),
        },
        _ => None,
    }
}

/// Frees copies of other arrays, the oldest array's first, until `missing_bytes` are freed or all
/// copies are in use.
fn make_room(device: &Device, missing_bytes: u64, request: &Request<'_>) -> Search {
    let mut search = Search::default();
    for array in storage::live_arrays() {
        if std::ptr::eq(&*array, request.storage) {
            continue;
        }
        match evict(&array, device, request.site) {
            Eviction::Nothing => {}
            Eviction::Freed { len_bytes } => search.freed_bytes += len_bytes,
            Eviction::Kept { len_bytes, uses } => {
                search.kept.len_bytes += len_bytes;
                search.kept.uses = search.kept.uses.wrapping_add(uses);
            }
        }
        if search.freed_bytes >= missing_bytes {
            break;
        }
    }
    search
}
