//! Counting and reporting copies.

use smallvec::SmallVec;

use super::request::Request;
use crate::audit::{self, CopyRecord, Direction, MemoryEvent, MemoryRecord, QueueSpan, Staleness};
use crate::backend::Position;
use crate::call_site::CallSite;
use crate::coherence::{Location, Region};
use crate::device::{Device, Stream};
use crate::storage::{ArrayState, StaleOrigin, Storage, notify_watchers};
use crate::sync;
use crate::traffic::Traffic;

/// Does the work that must be done with no lock held: passes reports to captures and subscribers,
/// drops streams that have no other handle, and tells watchers of changes.
pub(super) fn run_deferred() {
    audit::report_recorded();
    sync::run_deferred_drops();
    notify_watchers();
}

/// The last call that made these regions stale at `location`, where they are about to be copied. It
/// is looked up only if there is a capture or a subscriber.
pub(super) fn stale_since(
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

/// What one copy moves, and the positions of its first and its last operation on its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) direction: Direction,
    pub(super) bytes: u64,
    pub(super) first: Position,
    pub(super) last: Position,
}

impl Moved {
    /// A copy of one operation.
    pub(super) fn at(position: Position, direction: Direction, bytes: u64) -> Self {
        Self { direction, bytes, first: position, last: position }
    }

    /// A copy of these operations, which are all on one stream.
    pub(super) fn of(queued: &[(Stream, Position)], direction: Direction, bytes: u64) -> Self {
        let position = |queued: Option<&(Stream, Position)>| queued.map_or(Position(0), |it| it.1);
        let (first, last) = (position(queued.first()), position(queued.last()));
        Self { direction, bytes, first, last }
    }
}

/// Adds a queued copy to the totals, and records it for captures and subscribers, to which
/// [`run_deferred`] passes it. `device` is the device of the copy; for a copy between two devices
/// it is the source, and the stream's device the destination.
pub(super) fn count(
    request: &Request<'_>,
    state: &mut ArrayState,
    Moved { direction, bytes, first, last }: Moved,
    device: &Device,
    stream: &Stream,
    stale_since: StaleOrigin,
) {
    let padding = if direction == Direction::ToDevice { state.take_padding(bytes) } else { 0 };
    let traffic = Traffic::of(direction, bytes);
    state.count_traffic(request.storage.memory_order(), &traffic);
    device.count(&traffic);
    let is_peer_copy = stream.device_ref() != device;
    if is_peer_copy {
        stream.device_ref().count(&traffic);
    }
    audit::record_copy(bytes, || CopyRecord {
        direction,
        bytes,
        padding,
        array_id: request.storage.number(),
        array: request.storage.name(),
        element: request.storage.element_path(),
        shape: SmallVec::from_slice(&request.storage.shape()),
        device: stream.device_ref().name_shared(),
        source: is_peer_copy.then(|| device.name_shared()),
        stream: stream.number(),
        span: QueueSpan { queue: stream.id().0, first: first.0, last: last.0 },
        cause: request.cause,
        site: request.site,
        staleness: match stale_since {
            StaleOrigin::Never => Staleness::NeverThere,
            StaleOrigin::Unreported => Staleness::Unreported,
            StaleOrigin::Call { site, .. } => Staleness::Since(site),
        },
    });
}

/// Records for captures what happened to an array's memory on a device.
pub(super) fn record_memory(storage: &Storage, device: &Device, kind: MemoryEvent, site: CallSite) {
    audit::record_memory(|| MemoryRecord {
        kind,
        bytes: storage.memory_order().len_bytes(),
        array_id: storage.number(),
        array: storage.name(),
        device: device.name_shared(),
        site,
    });
}
