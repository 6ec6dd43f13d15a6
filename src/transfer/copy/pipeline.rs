//! Large copies through staging memory are made in chunks. So the staging memory is bounded, and
//! the host packs one chunk while the device copies another. The backend limits the size of a chunk
//! (`Backend::chunk_bytes_max`). Reports count one copy per call, however many chunks it took.

use smallvec::SmallVec;

use super::plan::chunks_per_batch;
use super::report::{Moved, count};
use crate::audit;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::StaleOrigin;
use crate::transfer::access::request::{Queued, Request};
use resident_backend::failure::{self, Inquiry};
use resident_backend::{Position, scope};

/// The work that one call has queued so far.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    /// All chunks, in order.
    queued: Queued,
    /// The number of chunks that the call has waited for.
    waited: usize,
    /// The largest number of chunks in flight; 0 until one is queued.
    in_flight_max: usize,
    copied: SmallVec<[CopyTotal; 1]>,
    /// When the call began to queue copies, for captures and subscribers; 0 if there are none.
    begun_ns: u64,
    /// Keeps the records of failures of the queued work.
    inquiry: Option<Inquiry>,
}

/// The copies from one location to another, for the reports.
#[derive(Debug)]
struct CopyTotal {
    moved: Moved,
    /// The device of the copies; for copies between two devices, the source.
    device: Device,
    stream: Stream,
    stale_since: StaleOrigin,
}

impl Pipeline {
    /// Keeps the records of failures of work that is queued from now on. Called before each chunk.
    pub(in crate::transfer) fn inquiry(&mut self) {
        if self.inquiry.is_none() {
            self.inquiry = Some(Inquiry::begin());
            self.begun_ns = audit::listened_ns();
        }
    }

    /// Adds a queued copy to the location of the call. `stale_since` is the origin of their
    /// staleness at the destination.
    pub(super) fn add_copy(
        &mut self,
        moved: Moved,
        device: &Device,
        stream: &Stream,
        stale_since: StaleOrigin,
    ) {
        let queued_ns = audit::listened_ns();
        let is_same = |known: &&mut CopyTotal| {
            known.moved.direction == moved.direction && known.device == *device
        };
        match self.copied.iter_mut().find(is_same) {
            Some(known) => {
                known.moved.bytes += moved.bytes;
                if known.stream == *stream {
                    known.moved.last = moved.last;
                }
                known.stale_since = known.stale_since.or_later(stale_since);
            }
            None => self.copied.push(CopyTotal {
                moved: Moved { queued_ns, begun_ns: self.begun_ns, ..moved },
                device: device.clone(),
                stream: stream.clone(),
                stale_since,
            }),
        }
    }

    /// Adds queued work that a later chunk may have to wait for.
    pub(in crate::transfer) fn push(&mut self, stream: Stream, position: Position) {
        self.in_flight_max = stream.device_ref().properties().chunks_in_flight_max;
        self.queued.push((stream, position));
    }

    /// Whether the next chunks have to wait. Never true inside a kernel body, where no call may
    /// wait.
    pub(in crate::transfer) fn is_full(&self) -> bool {
        let in_flight = self.queued.len() - self.waited;
        in_flight + chunks_per_batch(self.in_flight_max) > self.in_flight_max.max(1)
            && !scope::is_in_body()
    }

    /// Records an event after the last chunk, so that a later chunk can wait for these only.
    pub(super) fn expect_more(&self) {
        self.queued.last().iter().for_each(|(stream, _)| stream.ensure_event_at_tail());
    }

    /// Waits for the oldest chunk in flight. The caller holds no lock and no claim.
    pub(in crate::transfer) fn wait(&mut self, request: &Request<'_>) -> Result<()> {
        let Some((stream, position)) = self.queued.get(self.waited) else { return Ok(()) };
        self.waited += 1;
        let waited = stream.wait_until(*position, request.site);
        waited.map_err(|error| request.call_error(stream.device_ref(), "waiting for", &error))
    }

    /// Whether a queued chunk has failed already.
    pub(in crate::transfer) fn has_failed(&self) -> bool {
        self.queued.iter().any(|(stream, position)| failure::at(stream.id(), *position).is_some())
    }

    /// Adds the copies to the totals and reports them.
    pub(in crate::transfer) fn close(self, request: &Request<'_>) -> QueuedCopies {
        if !self.copied.is_empty() {
            let mut state = request.storage.lock();
            for CopyTotal { moved, device, stream, stale_since } in &self.copied {
                count(request, &mut state, *moved, device, stream, *stale_since);
            }
        }
        QueuedCopies { queued: self.queued, _inquiry: self.inquiry }
    }
}

/// The copies that one call has queued.
#[derive(Debug, Default)]
pub(in crate::transfer) struct QueuedCopies {
    pub(in crate::transfer) queued: Queued,
    /// Keeps the records of failures of the queued work.
    _inquiry: Option<Inquiry>,
}
