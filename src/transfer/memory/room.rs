//! Room on a full device: evicts copies of other arrays until an allocation fits, or until all that
//! is left is in use.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::evict::{Eviction, Rank, evict, rank};
use crate::device::{Device, Stream};
use crate::storage::{self, Storage};
use crate::transfer::access::request::{Queued, Request};
use resident_backend::call_site::CallSite;
use resident_backend::{BackendError, BackendErrorKind, DeviceKind, Position};

/// What a search for room freed, and what it found in use.
#[derive(Default)]
struct Search {
    freed_bytes: u64,
    kept: Kept,
    /// Copies to the host, after which more copies may be evicted.
    arriving: Queued,
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
    /// An array that needs the room, and has no copy.
    except: Option<&'a Storage>,
    site: CallSite,
    /// What the last search found in use, if it freed nothing.
    before: Option<Kept>,
}

impl<'a> Searches<'a> {
    pub(super) fn new(device: &'a Device, except: Option<&'a Storage>, site: CallSite) -> Self {
        Self { device, except, site, before: None }
    }

    /// Evicts copies until `missing_bytes` are freed. If none can be evicted now, waits for copies
    /// to the host that are under way. Returns `false` if all copies are in use.
    pub(super) fn make_room(&mut self, missing_bytes: u64) -> bool {
        // Write-backs that are complete give back their staging memory.
        self.device.backend().reap();
        let Search { freed_bytes, kept, arriving } = self.search(missing_bytes);
        if freed_bytes > 0 {
            self.wait_for_frees();
        }
        if freed_bytes > 0 || self.wait(&arriving) {
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

    /// Evicts copies, first those that were used least recently.
    fn search(&self, missing_bytes: u64) -> Search {
        let mut search = Search::default();
        if let Some(mut known) = self.device.take_eviction_queue::<EvictionQueue>() {
            self.evict_from(&mut known, missing_bytes, &mut search);
            if search.freed_bytes >= missing_bytes {
                self.device.keep_eviction_queue(known);
                return search;
            }
            (search.kept, search.arriving) = Default::default();
        }
        let mut ranked = self.rank_all();
        self.evict_from(&mut ranked, missing_bytes, &mut search);
        self.device.keep_eviction_queue(ranked);
        search
    }

    fn evict_from(&self, queue: &mut EvictionQueue, missing_bytes: u64, search: &mut Search) {
        let mut used = Vec::new();
        while search.freed_bytes < missing_bytes
            && let Some((known, weak)) = queue.pop_front()
        {
            let Some(array) = weak.upgrade() else { continue };
            let is_known = |rank: Rank| rank.last_use == known.last_use;
            if self.is_excepted(&array) || !rank(&array, self.device).is_some_and(is_known) {
                continue;
            }
            match evict(&array, self.device, self.site) {
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
            used.push((known, weak));
        }
        used.into_iter().rev().for_each(|entry| queue.push_front(entry));
    }

    /// The arrays with a copy that may be evicted once nothing uses it, in the order of eviction.
    fn rank_all(&self) -> EvictionQueue {
        let mut ranked: Vec<(Rank, Weak<Storage>)> = storage::live_arrays()
            .iter()
            .filter_map(|array| Some((rank(array, self.device)?, Arc::downgrade(array))))
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into()
    }

    fn is_excepted(&self, array: &Storage) -> bool {
        self.except.is_some_and(|except| std::ptr::eq(array, except))
    }
}

/// Arrays in the order in which their copies are evicted, as they were ranked at one time. Those
/// that were used since, or got a copy, come after all of them: so the next searches, too, begin
/// here, and only one of many looks at all arrays.
type EvictionQueue = VecDeque<(Rank, Weak<Storage>)>;

/// Calls `allocate`. If the device is full, evicts as many copies of other arrays as the allocation
/// needs, and calls `allocate` again. Copies in use are kept. The caller holds no lock.
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
    let mut searches = Searches::new(device, Some(request.storage), request.site);
    loop {
        // A refused free of a copy that was evicted is tried again.
        device.retry_deferred_frees();
        // No other thread allocates now, so this does not grow.
        let in_use_bytes = device.backend().memory().in_use;
        let outcome = allocate();
        let missing_bytes = match missing_bytes(&outcome) {
            Some(missing_bytes) if missing_bytes <= in_use_bytes => missing_bytes,
            // It fits, or would not fit if all copies gave way.
            _ => return outcome,
        };
        if !searches.make_room(missing_bytes) {
            return outcome;
        }
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
