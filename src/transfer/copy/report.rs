//! Counting and reporting copies.

use super::changed_bytes::{changed_bytes, contents_hash};
use crate::audit::{self, Accessed, Cause, Copied, Direction, MemoryChange, MemoryUse, Staleness};
use crate::device::{self, Device, Stream};
use crate::storage::{ArrayState, StaleOrigin, Storage, notify_watchers};
use crate::traffic::Traffic;
use crate::transfer::access::request::Request;
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_backend::{DeviceKind, Position};
use resident_core::coherence::{Location, Region};
use resident_core::layout::{MemoryOrder, Selection};

/// Does the work that must be done with no lock held: asks for the times of much work, drops
/// streams that have no other handle, tells watchers of changes, and tells subscribers of copies.
/// These last, since they may panic.
pub(in crate::transfer) fn run_deferred() {
    device::take_some_times();
    sync::run_deferred_drops();
    notify_watchers();
    audit::report_recorded();
}

/// Does work that a subscriber must not interrupt by a panic, such as ending the uses of borrowed
/// memory; what else is deferred is done afterwards, subscribers last.
pub(in crate::transfer) fn report_after<T>(work: impl FnOnce() -> T) -> T {
    let held = audit::hold_reports();
    let outcome = work();
    drop(held);
    run_deferred();
    outcome
}

/// The last call that made these regions stale at `location`, where they are about to be copied. It
/// is looked up only if there is a capture or a subscriber.
pub(in crate::transfer) fn stale_since(
    state: &ArrayState,
    location: Location,
    regions: &[Region],
) -> StaleOrigin {
    if audit::has_listeners() {
        state.stale_since(location, regions)
    } else {
        StaleOrigin::Unreported
    }
}

/// As [`stale_since`], for a whole array that is stale at `location`.
#[inline]
pub(super) fn all_stale_since(
    state: &ArrayState,
    location: Location,
    memory_order: &MemoryOrder,
) -> StaleOrigin {
    if audit::has_listeners() {
        state.all_stale_since(location, memory_order)
    } else {
        StaleOrigin::Unreported
    }
}

/// What one copy moves, and the positions of its first and its last operation on its stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::transfer) struct Moved {
    pub(in crate::transfer) direction: Direction,
    pub(in crate::transfer) bytes: u64,
    pub(in crate::transfer) first: Position,
    pub(in crate::transfer) last: Position,
    /// When the first operation was queued; 0 for now.
    pub(in crate::transfer) queued_ns: u64,
    /// When the call began to queue it; 0 if that is not known.
    pub(in crate::transfer) begun_ns: u64,
    /// A hash of what the program lent for an upload, if contents are compared.
    pub(in crate::transfer) lent_hash: Option<u64>,
}

impl Moved {
    /// A copy of one operation.
    pub(in crate::transfer) fn at(position: Position, direction: Direction, bytes: u64) -> Self {
        let (first, last, queued_ns, begun_ns) = (position, position, 0, 0);
        Self { direction, bytes, first, last, queued_ns, begun_ns, lent_hash: None }
    }

    /// A copy of these operations, which are all on one stream.
    pub(in crate::transfer) fn of(
        queued: &[(Stream, Position)],
        direction: Direction,
        bytes: u64,
    ) -> Self {
        let position = |queued: Option<&(Stream, Position)>| queued.map_or(Position(0), |it| it.1);
        let last = Self::at(position(queued.last()), direction, bytes);
        Self { first: position(queued.first()), ..last }
    }
}

/// Adds a queued copy to the totals, and records it for captures and subscribers, to which
/// [`run_deferred`] passes it. `device` is the device of the copy; for a copy between two devices
/// it is the source, and the stream's device the destination.
pub(in crate::transfer) fn count(
    request: &Request<'_>,
    state: &mut ArrayState,
    Moved { direction, bytes, first, last, queued_ns, begun_ns, lent_hash }: Moved,
    device: &Device,
    stream: &Stream,
    stale_since: StaleOrigin,
) {
    let padding = if direction == Direction::ToHost { 0 } else { state.take_padding(bytes) };
    let changed_bytes = changed_bytes(request, state, direction, device, bytes);
    let contents_hash = lent_hash.or_else(|| contents_hash(request, direction, bytes));
    let traffic = Traffic::of(direction, bytes);
    let launched = state.count_traffic(request.storage.memory_order(), &traffic);
    device.count(&traffic, launched);
    let is_peer_copy = stream.device_ref() != device;
    if is_peer_copy {
        stream.device_ref().count(&traffic, launched);
    }
    audit::record_copy(bytes, || Copied {
        queued_ns,
        changed_bytes,
        contents_hash,
        host_ns: (begun_ns > 0).then(|| audit::listened_ns().saturating_sub(begun_ns)),
        is_pageable: request.cause != Cause::Explicit
            && direction != Direction::BetweenDevices
            && device.kind() != DeviceKind::Cpu
            && !state.is_host_pinned_for(device.kind()),
        is_explicit: state.is_explicit(),
        storage: request.storage,
        direction,
        bytes,
        padding,
        stream,
        source: is_peer_copy.then_some(device),
        positions: (first.0, last.0),
        cause: request.cause,
        site: request.site,
        staleness: match stale_since {
            StaleOrigin::Never => Staleness::NeverThere,
            StaleOrigin::Unreported => Staleness::Unreported,
            StaleOrigin::Call { site, .. } => Staleness::Since(site),
        },
    });
}

impl Request<'_> {
    /// Records for captures an access that is no launch, on a device or on the host.
    #[inline]
    pub(in crate::transfer) fn record_access(&self, device: Option<&Device>) {
        let Self { storage, selection, access, site, .. } = *self;
        let is_whole = matches!(selection, Selection::Whole);
        audit::record_access(|| Accessed { storage, device, access, is_whole, site });
    }
}

/// Counts, and records for captures, what happened to bytes of an array on a device.
pub(in crate::transfer) fn record_memory(
    storage: &Storage,
    device: &Device,
    kind: MemoryChange,
    bytes: u64,
    site: CallSite,
) {
    audit::record_memory(&MemoryUse { kind, storage, device, bytes, site });
}
