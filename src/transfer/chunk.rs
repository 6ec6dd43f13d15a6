//! Large copies through staging memory are queued in chunks. So the staging memory is bounded, and
//! the host packs one chunk while the device copies another. The backend limits the size of a chunk
//! (`Backend::chunk_bytes_max`). Reports count one copy per call, however many chunks it took.

use smallvec::SmallVec;

use super::report::{Moved, count};
use super::request::{Queued, Regions, Request};
use super::route::{Route, RoutedCopies, RoutedPlan};
use crate::audit;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::StaleOrigin;
use resident_backend::failure::{self, Inquiry};
use resident_backend::{Position, scope};
use resident_core::layout::MemoryOrder;

/// The copies of a plan that are queued at once: several chunks, which the host packs together.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) copies: RoutedPlan,
    /// Whether these are the last copies of the plan.
    pub(super) is_last: bool,
}

/// The number of chunks that are packed together while as many are on their way.
fn batch(chunks_in_flight_max: usize) -> usize {
    (chunks_in_flight_max / 2).max(1)
}

impl Chunk {
    /// The first copies of a plan. Only the bytes that are copied through staging memory count
    /// against the size of a chunk.
    pub(super) fn first_of(memory_order: &MemoryOrder, plan: RoutedPlan) -> Self {
        let limits = plan.iter().filter_map(|copies| match copies.route {
            Route::Staged { chunk_bytes_max, chunks_in_flight_max } => {
                Some(chunk_bytes_max.saturating_mul(batch(chunks_in_flight_max) as u64))
            }
            _ => None,
        });
        let Some(bytes_max) = limits.min() else { return Self { copies: plan, is_last: true } };
        let (mut first, mut room_bytes, mut is_last) = (RoutedPlan::new(), bytes_max, true);
        for RoutedCopies { source, route, regions } in plan {
            let regions = match route {
                Route::Staged { .. } => {
                    let head = head(memory_order, &regions, bytes_max, &mut room_bytes);
                    is_last &= head == regions;
                    head
                }
                _ => regions,
            };
            if !regions.is_empty() {
                first.push(RoutedCopies { source, route, regions });
            }
        }
        Self { copies: first, is_last }
    }
}

/// Takes the first regions, as many bytes as the chunk has room for, but at least one element if
/// the chunk is empty.
fn head(
    memory_order: &MemoryOrder,
    regions: &Regions,
    bytes_max: u64,
    room_bytes: &mut u64,
) -> Regions {
    let mut head = Regions::new();
    for region in regions {
        let len_bytes = memory_order.region_bytes(region);
        if len_bytes > *room_bytes {
            if *room_bytes == bytes_max {
                head.push(memory_order.head(*region, bytes_max));
            }
            *room_bytes = 0;
            break;
        }
        head.push(*region);
        *room_bytes -= len_bytes;
    }
    head
}

/// The work that one call has queued so far.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    /// All chunks, in order.
    queued: Queued,
    /// The number of chunks that the call has waited for.
    waited: usize,
    /// The largest number of chunks in flight; 0 until one is queued.
    in_flight_max: usize,
    copied: SmallVec<[Copied; 1]>,
    /// When the call began to queue copies, for captures and subscribers; 0 if there are none.
    begun_ns: u64,
    /// Keeps the records of failures of the queued work.
    inquiry: Option<Inquiry>,
}

/// The copies from one location to another, for the reports.
#[derive(Debug)]
struct Copied {
    moved: Moved,
    /// The device of the copies; for copies between two devices, the source.
    device: Device,
    stream: Stream,
    stale_since: StaleOrigin,
}

impl Pipeline {
    /// Keeps the records of failures of work that is queued from now on. Called before each chunk.
    pub(super) fn inquiry(&mut self) {
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
        let is_same = |known: &&mut Copied| {
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
            None => self.copied.push(Copied {
                moved: Moved { queued_ns, begun_ns: self.begun_ns, ..moved },
                device: device.clone(),
                stream: stream.clone(),
                stale_since,
            }),
        }
    }

    /// Adds queued work that a later chunk may have to wait for.
    pub(super) fn push(&mut self, stream: Stream, position: Position) {
        self.in_flight_max = stream.device_ref().backend().chunks_in_flight_max();
        self.queued.push((stream, position));
    }

    /// Whether the next chunks have to wait. Never true inside a kernel body, where no call may
    /// wait.
    pub(super) fn is_full(&self) -> bool {
        let in_flight = self.queued.len() - self.waited;
        in_flight + batch(self.in_flight_max) > self.in_flight_max.max(1) && !scope::is_in_body()
    }

    /// Records an event after the last chunk, so that a later chunk can wait for these only.
    pub(super) fn expect_more(&self) {
        self.queued.last().iter().for_each(|(stream, _)| stream.ensure_event_at_tail());
    }

    /// Waits for the oldest chunk in flight. The caller holds no lock and no claim.
    pub(super) fn wait(&mut self, request: &Request<'_>) -> Result<()> {
        let Some((stream, position)) = self.queued.get(self.waited) else { return Ok(()) };
        self.waited += 1;
        let waited = stream.wait_until(*position, request.site);
        waited.map_err(|refusal| request.refused(stream.device_ref(), "waiting for", &refusal))
    }

    /// Whether a queued chunk has failed already.
    pub(super) fn has_failed(&self) -> bool {
        self.queued.iter().any(|(stream, position)| failure::at(stream.id(), *position).is_some())
    }

    /// The number of bytes copied so far.
    pub(super) fn copied_bytes(&self) -> u64 {
        self.copied.iter().map(|copied| copied.moved.bytes).sum()
    }

    /// Adds the copies to the totals and reports them. Returns the queued work, and what keeps the
    /// records of its failures.
    pub(super) fn close(self, request: &Request<'_>) -> (Queued, Option<Inquiry>) {
        if !self.copied.is_empty() {
            let mut state = request.storage.lock();
            for Copied { moved, device, stream, stale_since } in &self.copied {
                count(request, &mut state, *moved, device, stream, *stale_since);
            }
        }
        (self.queued, self.inquiry)
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{Chunk, MemoryOrder, Regions, Route, RoutedCopies};
    use resident_core::coherence::{ConstantId, Location, Region, Source, Span};

    fn memory_order() -> MemoryOrder {
        MemoryOrder::of(&[10, 20, 30], &[600, 30, 1], 4).expect("contiguous").0
    }

    fn rows() -> Regions {
        (0..3).map(|row| memory_order().whole().with_span(0, Span::single(row))).collect()
    }

    fn first_of(route: Route) -> (Vec<Region>, bool) {
        let source = match route {
            Route::Fill(value) => Source::Constant(value),
            _ => Source::Location(Location::HOST),
        };
        let copies = RoutedCopies { source, route, regions: rows() };
        let chunk = Chunk::first_of(&memory_order(), SmallVec::from_iter([copies]));
        (chunk.copies[0].regions.to_vec(), chunk.is_last)
    }

    #[test]
    fn a_chunk_takes_regions_until_it_is_full() {
        let staged =
            |chunk_bytes_max| first_of(Route::Staged { chunk_bytes_max, chunks_in_flight_max: 2 });
        assert_eq!(staged(u64::MAX), (rows().to_vec(), true));
        assert_eq!(staged(5000), (rows()[..2].to_vec(), false));
        assert_eq!(staged(2400), (rows()[..1].to_vec(), false));
        assert_eq!(staged(1200).0[0].len(), 300);
        assert!(!staged(1200).1);
        let several = Route::Staged { chunk_bytes_max: 2400, chunks_in_flight_max: 5 };
        assert_eq!(first_of(several), (rows()[..2].to_vec(), false));
    }

    #[test]
    fn copies_without_staging_memory_are_never_split() {
        assert_eq!(first_of(Route::Pinned), (rows().to_vec(), true));
        assert_eq!(first_of(Route::Fill(ConstantId(0))), (rows().to_vec(), true));
    }
}
