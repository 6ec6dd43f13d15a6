//! Room on a full device: evicts copies, and pages of copies, until an allocation fits, or until
//! all that is left is in use.

use std::collections::VecDeque;

use super::evict::{Candidate, Eviction, evict};
use crate::device::{Device, Stream};
use crate::storage::{self, Storage};
use crate::transfer::access::request::{Queued, Request};
use resident_backend::call_site::CallSite;
use resident_backend::{BackendError, BackendErrorKind, DeviceKind, Position};
use resident_core::layout::Selection;

/// What a search for room freed, and what it found in use.
#[derive(Default)]
struct Search {
    freed_bytes: u64,
    kept: Kept,
    /// Copies to the host, after which more copies may be evicted.
    arriving: Queued,
    /// Whether a copy was used or given up after it was ranked, and so passed over.
    has_passed_over: bool,
}

/// Copies in use, which may be evicted once they are not.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Kept {
    len_bytes: u64,
    /// The number of uses of these arrays that have begun.
    uses: u64,
}

/// The searches for room of a thread that holds `allocate_alone`.
pub(super) struct Searches<'a> {
    device: &'a Device,
    /// The elements that need the room.
    except: Option<&'a Request<'a>>,
    site: CallSite,
    /// What the last search found in use, if it freed nothing.
    before: Option<Kept>,
}

impl<'a> Searches<'a> {
    pub(super) fn new(device: &'a Device, except: Option<&'a Request<'a>>, site: CallSite) -> Self {
        Self { device, except, site, before: None }
    }

    /// Evicts copies until `missing_bytes` are freed. If none can be evicted now, waits for copies
    /// to the host that are under way. Returns `false` if all copies are in use.
    pub(super) fn make_room(&mut self, missing_bytes: u64) -> bool {
        // Write-backs that are complete give back their staging memory.
        self.device.backend().reap();
        let Search { freed_bytes, kept, arriving, has_passed_over } = self.search(missing_bytes);
        if freed_bytes > 0 {
            self.wait_for_frees();
        }
        if freed_bytes > 0 || has_passed_over || self.wait(&arriving) {
            self.before = None;
            return true;
        }
        // Each copy may have been in use when the search came to it, though not all at one time.
        // They were, if no use has begun since the last search.
        let is_final = |before| before == kept || kept.len_bytes < missing_bytes;
        !self.before.replace(kept).is_some_and(is_final)
    }

    /// On a GPU with a limit, what is freed must be there for reuse before the next allocation:
    /// else the driver's pool would grow beyond the limit. The embedded device waits by itself.
    fn wait_for_frees(&self) {
        if self.device.kind() != DeviceKind::Cpu
            && self.device.memory_limit().is_some()
            && let Some(stream) = self.device.stream_for_frees()
        {
            // If this thread may not wait, the allocation returns what is too much.
            let _refused = stream.wait_until(stream.raw().tail(), self.site);
        }
    }

    /// `false` if there are none, or if this thread may not wait.
    fn wait(&self, arriving: &Queued) -> bool {
        let is_over =
            |(stream, end): &(Stream, Position)| stream.wait_until(*end, self.site).is_ok();
        !arriving.is_empty() && arriving.iter().all(is_over)
    }

    /// Evicts what was used least recently.
    fn search(&self, missing_bytes: u64) -> Search {
        let mut search = Search::default();
        if let Some(mut known) = self.device.take_eviction_queue::<EvictionQueue>() {
            self.evict_from(&mut known, missing_bytes, &mut search);
            if search.freed_bytes >= missing_bytes {
                self.device.keep_eviction_queue(known);
                return search;
            }
            search = Search { freed_bytes: search.freed_bytes, ..Search::default() };
        }
        let mut ranked = self.rank_all();
        self.evict_from(&mut ranked, missing_bytes, &mut search);
        self.device.keep_eviction_queue(ranked);
        search
    }

    fn evict_from(&self, queue: &mut EvictionQueue, missing_bytes: u64, search: &mut Search) {
        let mut used = Vec::new();
        while search.freed_bytes < missing_bytes
            && let Some(known) = queue.pop_front()
        {
            let Some(array) = known.array.upgrade() else {
                search.has_passed_over = true;
                continue;
            };
            let except = self.except_of(&array);
            let lacking_bytes = missing_bytes - search.freed_bytes;
            let next = known.next_part(&array, self.device, except, lacking_bytes);
            let Some((part, rest)) = next else {
                // The request's own array is passed over each time.
                search.has_passed_over |= except.is_none();
                continue;
            };
            rest.into_iter().for_each(|rest| queue.push_front(rest));
            match evict(&array, self.device, &part, except, self.site) {
                Eviction::Nothing => continue,
                Eviction::Freed { len_bytes } => {
                    search.freed_bytes += len_bytes;
                    continue;
                }
                Eviction::Kept { len_bytes, uses } => {
                    search.kept.len_bytes += len_bytes;
                    search.kept.uses = search.kept.uses.wrapping_add(uses);
                }
                Eviction::Arriving(queued) => search.arriving.extend(queued),
            }
            used.push(part);
        }
        used.into_iter().rev().for_each(|entry| queue.push_front(entry));
    }

    /// What may be evicted once nothing uses it, in the order of eviction.
    fn rank_all(&self) -> EvictionQueue {
        let mut ranked = Vec::new();
        for array in &storage::live_arrays() {
            Candidate::add_all(array, self.device, &mut ranked);
        }
        ranked.sort_by_key(Candidate::rank);
        ranked.into()
    }

    /// The elements of an array that need the room.
    fn except_of(&self, array: &Storage) -> Option<&'a Selection> {
        let is_this = |request: &&Request<'_>| std::ptr::eq(request.storage, array);
        self.except.filter(is_this).map(|request| request.selection)
    }
}

/// What is evicted, in this order, as it was ranked at one time. What was used since, or got
/// memory, comes after all of it: so the next searches, too, begin here, and only one of many looks
/// at all arrays.
type EvictionQueue = VecDeque<Candidate>;

/// Calls `allocate`. If the device is full, evicts as many bytes as the allocation needs, and those
/// that the caller needs `beyond` it, none of the request's elements, and calls `allocate` again.
/// What is in use is kept. The caller holds no lock.
pub(super) fn with_room<T>(
    device: &Device,
    request: &Request<'_>,
    beyond_bytes: u64,
    allocate: impl Fn() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    let beside = {
        let _beside = device.allocate_beside();
        allocate()
    };
    if missing_bytes(&beside, beyond_bytes).is_none() {
        return beside;
    }
    let _alone = device.allocate_alone();
    let mut searches = Searches::new(device, Some(request), request.site);
    loop {
        // A refused free of a copy that was evicted is tried again.
        device.retry_deferred_frees();
        // No other thread allocates now, so this does not grow.
        let in_use_bytes = device.backend().memory().in_use;
        let outcome = allocate();
        let missing_bytes = match missing_bytes(&outcome, beyond_bytes) {
            Some(missing_bytes) if missing_bytes <= in_use_bytes => missing_bytes,
            // It fits, or would not fit if all copies gave way.
            _ => return outcome,
        };
        if !searches.make_room(missing_bytes) {
            return outcome;
        }
    }
}

/// The bytes that must be freed before the allocation fits, and as many `beyond` it; `None` if it
/// was not refused for lack of memory.
fn missing_bytes<T>(outcome: &Result<T, BackendError>, beyond_bytes: u64) -> Option<u64> {
    match outcome {
        Err(BackendError {
            kind: BackendErrorKind::OutOfMemory { requested, free, draining },
            ..
        }) => {
            let all_bytes = requested.saturating_add(beyond_bytes);
            match all_bytes.saturating_sub(free.saturating_add(*draining)) {
                // Other programs took the memory meanwhile, or it is in pieces.
                0 => Some(*requested),
                missing => Some(missing),
            }
        }
        _ => None,
    }
}
