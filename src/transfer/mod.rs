//! The one module that moves: it asks `coherence` for a plan, turns it into backend calls behind
//! what `order` says, and tells `audit`.
//!
//! Every access has three steps. *Acquire* brings to one location what is needed there and orders a
//! stream (or the host) behind what it must come after. The caller then *enqueues* its own work.
//! *Mark* enters the use and its effect. Between the steps no lock is held; nobody who could
//! conflict can come in between, because the caller holds the Rust borrow of the part for as long
//! as all three take.
//!
//! While copies for a part are being prepared, the part is *claimed* at their destination, so that
//! of many threads that need the same bytes one moves them and the others wait. No claim is held
//! while waiting for a device.

mod assign;
mod constant;
mod device_side;
mod error;
mod evict;
mod fetch;
mod host_side;
mod lock;
mod release;
mod snapshot;
mod stale;
#[cfg(test)]
mod tests;
mod window;

use smallvec::SmallVec;

use crate::access::Access;
use crate::audit::{self, Cause, Direction, Record, Stale, Traffic};
use crate::backend::{Dependencies, Position, scope};
use crate::call_site::CallSite;
use crate::coherence::{CopyCosts, Location, PlannedCopy, Region};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::layout::Selection;
use crate::ordering::{Mark, UseEnd};
use crate::storage::{ArrayState, StaleOrigin, Storage};
use crate::sync::{self, EventCount, ShortGuard};

pub(crate) use assign::{End, Target, assign, clone_into};
pub(crate) use constant::{fill, fill_on, read_element, write_element};
pub(crate) use device_side::{
    Acquired, acquire_on, acquire_whole, close_whole, close_write, mark, mark_foreign,
    mark_launched, mark_whole_launched, open_guard, open_whole,
};
pub(crate) use error::{host_full, lost_update};
pub(crate) use evict::release_on;
pub(crate) use host_side::{
    acquire_host, mark_host_written, prefetch_host, write_on_host, write_whole_on_host,
};
pub(crate) use lock::page_lock;
pub(crate) use release::release;
#[cfg(feature = "cuda")]
pub(crate) use release::take_memory;
pub(crate) use snapshot::{Snapshot, snapshot};

/// Who wants what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) selection: &'a Selection,
    pub(crate) cause: Cause,
    /// As a message says it: `host`, `kernel "blur"`.
    pub(crate) operation: &'a str,
    pub(crate) site: CallSite,
}

/// Turned whenever a claim on some array is given back.
static MOVED: EventCount = EventCount::new();

/// What had to wait until no lock is held: listeners are told of copies, and streams that nobody
/// needs any more go.
fn run_deferred() {
    audit::tell();
    sync::run_deferred_drops();
}

/// Marks collected under the lock, few as a rule.
type Marks = SmallVec<[Mark; 4]>;

/// Nearest first: the host's memory before another device's is left to the device's family; within
/// one process a device's link is all there is.
struct LinkCosts<'a> {
    state: &'a ArrayState,
    destination: Option<&'a Device>,
}

impl CopyCosts for LinkCosts<'_> {
    fn cost(&self, from: Location) -> u32 {
        let Some(destination) = self.destination else { return u32::from(from != Location::HOST) };
        if from == Location::HOST {
            return 2;
        }
        let source = &self.state.device_copy(from).device;
        if destination.backend().can_access_peer(&**source.backend()) { 1 } else { 3 }
    }
}

/// A claim that is being served. It is given back also where something unwinds: nobody waits for it
/// for ever.
struct Claim<'a> {
    request: Request<'a>,
    location: Location,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let storage = self.request.storage;
        let mut state = storage.lock();
        state.unclaim(self.location, self.request.selection);
        storage.publish(&state);
        drop(state);
        MOVED.turn();
    }
}

impl<'a> Request<'a> {
    /// Claims the selection at `location` while `serve` queues copies to it, with no lock held.
    fn claimed<T>(
        &self,
        mut state: ShortGuard<'_, ArrayState>,
        location: Location,
        serve: impl FnOnce() -> T,
    ) -> T {
        state.claim(location, self.selection);
        drop(state);
        let _claim = Claim { request: *self, location };
        serve()
    }
}

impl Request<'_> {
    /// Nothing to read or write: such accesses never reach a device.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.storage.memory_order().is_empty() || self.selection.is_empty()
    }

    /// The copies that an access at `location` needs, over all boxes of the selection.
    fn plan(
        &self,
        state: &ArrayState,
        location: Location,
        access: Access,
    ) -> Result<Vec<PlannedCopy>> {
        let memory_order = self.storage.memory_order();
        let destination = (location != Location::HOST).then(|| &state.device_copy(location).device);
        let costs = LinkCosts { state, destination };
        let mut all = Vec::new();
        let mut refusal = None;
        self.selection.for_each(memory_order, |region| {
            if refusal.is_none() {
                let mut pieces = Vec::new();
                refusal = state.coherence.plan(location, region, access, &costs, &mut pieces).err();
                all.append(&mut pieces);
            }
        });
        match refusal {
            None => Ok(all),
            Some(refusal) => Err(error::undefined(self, state, &refusal)),
        }
    }

    /// Whether the access needs no copy, without allocating.
    fn is_valid(&self, state: &ArrayState, location: Location) -> bool {
        match (self.selection, state.coherence.uniform()) {
            (Selection::Whole, Some(content)) => content.is_valid(location),
            _ => {
                let mut valid = true;
                self.selection.for_each(self.storage.memory_order(), |region| {
                    valid = valid && state.coherence.is_valid(location, region)
                });
                valid
            }
        }
    }

    #[inline]
    fn apply(&self, state: &mut ArrayState, location: Location, access: Access) {
        self.selection.each(|region| match region {
            None => state.coherence.apply_to_all(location, access),
            Some(region) => state.coherence.apply(location, region, access),
        });
    }

    /// What an access of the selection's bytes at `location` must come after, other than uses of
    /// `stream` itself and those that are over.
    fn marks_before(
        &self,
        state: &ArrayState,
        location: Location,
        access: Access,
        stream: Option<&Stream>,
    ) -> Marks {
        let mut marks = Marks::new();
        self.selection.each(|region| {
            state.uses(location).visit_conflicts(region, access, |mark| {
                let own = stream.is_some_and(|stream| state.stream(mark.stream) == Some(stream));
                if !own && !marks.contains(&mark) && !state.is_retired(mark) {
                    marks.push(mark);
                }
            });
        });
        marks
    }

    /// Gives the lock back until a claim is, and takes it again. Inside a kernel body nothing is
    /// waited for.
    fn wait_for_claim<'s>(
        &'s self,
        state: ShortGuard<'s, ArrayState>,
    ) -> Result<ShortGuard<'s, ArrayState>> {
        if scope::is_in_body() {
            return Err(self.inside_kernel("another thread that is moving the same elements"));
        }
        let seen = MOVED.count();
        drop(state);
        MOVED.wait_past(seen);
        Ok(self.storage.lock())
    }

    /// Enters a use; one that writes is queued work, whose failure spoils what it writes.
    #[inline]
    fn mark_use(
        &self,
        state: &mut ArrayState,
        location: Location,
        access: Access,
        stream: &Stream,
        at: UseEnd,
    ) {
        let key = state.assign_key(stream);
        let mark = match (access.writes(), at.position()) {
            (true, Some(position)) => Mark::write(key, position),
            _ => Mark::lossless(key, at),
        };
        self.enter_mark(state, location, access, mark);
    }

    #[inline]
    fn enter_mark(&self, state: &mut ArrayState, location: Location, access: Access, mark: Mark) {
        let memory_order = self.storage.memory_order();
        self.selection.each(|region| {
            state.uses_mut(location).record(memory_order.extents(), region, access, mark)
        });
    }

    /// Work that wrote what will be read at `location`, and is not known to be over.
    fn dependencies(&self, state: &ArrayState, location: Location, depends: &mut Dependencies) {
        self.selection.each(|region| {
            state.uses(location).visit_writers(region, |mark| {
                if let (Some(stream), Some(position)) =
                    (state.stream(mark.stream), mark.written_by())
                    && !state.is_retired(mark)
                    && !depends.contains(&(stream.id(), position))
                {
                    depends.push((stream.id(), position));
                }
            });
        });
    }

    /// What made these regions stale at `location`, where they are about to be copied to. Looked up
    /// only if somebody listens.
    fn since(&self, state: &ArrayState, location: Location, regions: &[Region]) -> StaleOrigin {
        if audit::has_listeners() {
            state.stale_since(location, regions)
        } else {
            StaleOrigin::Unreported
        }
    }

    /// Counts a queued copy, and notes it for whoever listens: they are told by [`audit::tell`],
    /// once no lock is held. `device` is the copy's end that is not the host, and of two devices
    /// the source: the other is the stream's.
    fn count(
        &self,
        state: &mut ArrayState,
        direction: Direction,
        bytes: u64,
        device: &Device,
        stream: &Stream,
        since: StaleOrigin,
    ) {
        let traffic = Traffic::of(direction, bytes);
        *state.traffic_mut() += traffic;
        device.count(&traffic);
        if stream.device_ref() != device {
            stream.device_ref().count(&traffic);
        }
        audit::record(|| Record {
            direction,
            bytes,
            array: self.storage.name(),
            device: stream.device_ref().name_shared(),
            source: (stream.device_ref() != device).then(|| device.name_shared()),
            stream: stream.number(),
            cause: self.cause,
            site: self.site,
            stale: in_report(since),
        });
    }
}

fn in_report(since: StaleOrigin) -> Stale {
    match since {
        StaleOrigin::Never => Stale::Never,
        StaleOrigin::Unreported => Stale::Unreported,
        StaleOrigin::Call { site, .. } => Stale::StaleOrigin(site),
    }
}

/// A position that one call queued, to be looked at once it is complete.
pub(crate) type Queued = SmallVec<[(Stream, Position); 1]>;
