//! Counting and reporting copies.

use super::request::Request;
use crate::audit::{self, CopyRecord, Direction, Staleness};
use crate::coherence::{Location, Region};
use crate::device::{Device, Stream};
use crate::storage::{ArrayState, StaleOrigin, notify_watchers};
use crate::sync;
use crate::traffic::Traffic;

/// Does the work that must be done with no lock held: passes reports to captures and subscribers,
/// drops streams that have no other handle, and tells watchers of changes.
pub(super) fn run_deferred() {
    audit::report_copies();
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

/// Adds a queued copy to the totals, and records it for captures and subscribers, to which
/// [`run_deferred`] passes it. `device` is the device of the copy; for a copy between two devices
/// it is the source, and the stream's device the destination.
pub(super) fn count(
    request: &Request<'_>,
    state: &mut ArrayState,
    (direction, bytes): (Direction, u64),
    device: &Device,
    stream: &Stream,
    stale_since: StaleOrigin,
) {
    let padding = if direction == Direction::ToDevice { state.take_padding(bytes) } else { 0 };
    let traffic = Traffic::of(direction, bytes);
    *state.traffic_mut() += traffic;
    device.count(&traffic);
    let is_peer_copy = stream.device_ref() != device;
    if is_peer_copy {
        stream.device_ref().count(&traffic);
    }
    audit::record_copy(bytes, || CopyRecord {
        direction,
        bytes,
        padding,
        array: request.storage.name(),
        device: stream.device_ref().name_shared(),
        source: is_peer_copy.then(|| device.name_shared()),
        stream: stream.number(),
        cause: request.cause,
        site: request.site,
        staleness: match stale_since {
            StaleOrigin::Never => Staleness::NeverThere,
            StaleOrigin::Unreported => Staleness::Unreported,
            StaleOrigin::Call { site, .. } => Staleness::Since(site),
        },
    });
}
