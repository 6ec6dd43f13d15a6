//! Large copies between the host and a device go piece by piece: staging memory is bounded then,
//! and the host packs one piece while the device moves another. What one call moves is counted
//! once, however many pieces it took.

use smallvec::SmallVec;

use super::{Queued, Request};
use crate::audit::Direction;
use crate::backend::{Position, failure, scope};
use crate::coherence::{PlannedCopy, Source};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::layout::MemoryOrder;
use crate::ordering::UseEnd;
use crate::storage::StaleOrigin;

/// Pieces on their way at once: one that is moved, one that is packed, and some for the unevenness
/// of both.
const PIECES_MAX: usize = 4;

/// Downloads of fewer bytes take page-locked memory as they go: the little that they need is there,
/// or soon locked.
pub(super) const ANNOUNCED_BYTES_MIN: u64 = 64 << 10;

/// Announces downloads to ordinary memory, all at once and of so many bytes each, so that no pages
/// have to be locked under the array's lock.
pub(super) fn announce(device: &Device, lens_bytes: impl Iterator<Item = u64>) {
    let lens_bytes: SmallVec<[u64; 4]> =
        lens_bytes.filter(|len_bytes| *len_bytes >= ANNOUNCED_BYTES_MIN).collect();
    device.backend().prepare_downloads(&lens_bytes);
}

/// As much of a plan as goes at once.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) pieces: SmallVec<[PlannedCopy; 4]>,
    /// Nothing is left behind it.
    pub(super) is_last: bool,
}

/// What one call has queued so far.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    /// Everything queued, in order.
    queued: Queued,
    /// How much of it was waited for.
    waited: usize,
    moved: SmallVec<[Moved; 1]>,
}

#[derive(Debug)]
struct Moved {
    direction: Direction,
    device: Device,
    stream: Stream,
    bytes: u64,
    since: StaleOrigin,
}

impl Pipeline {
    /// Enters a copy to the location that the call is about, `since` when what it brings was stale
    /// there.
    pub(super) fn add(
        &mut self,
        direction: Direction,
        device: &Device,
        stream: &Stream,
        bytes: u64,
        since: StaleOrigin,
    ) {
        match self
            .moved
            .iter_mut()
            .find(|moved| moved.direction == direction && moved.device == *device)
        {
            Some(moved) => {
                moved.bytes += bytes;
                moved.since = moved.since.or_later(since);
            }
            None => self.moved.push(Moved {
                direction,
                device: device.clone(),
                stream: stream.clone(),
                bytes,
                since,
            }),
        }
    }

    /// Enters queued work that a later piece may have to wait for.
    pub(super) fn push(&mut self, stream: Stream, position: Position) {
        self.queued.push((stream, position));
    }

    /// So much is on its way that the next piece has to wait.
    pub(super) fn is_full(&self) -> bool {
        // A body waits for nothing: what it brings goes at once.
        self.queued.len() - self.waited >= PIECES_MAX && !scope::is_in_body()
    }

    /// More is to come: an event behind this piece lets a later one wait for it alone.
    pub(super) fn expect_more(&self) {
        self.queued.last().iter().for_each(|(stream, _)| stream.record_in_time());
    }

    /// Waits for the oldest piece on its way. No lock is held, and no claim.
    pub(super) fn wait(&mut self, request: &Request<'_>) -> Result<()> {
        let Some((stream, position)) = self.queued.get(self.waited) else { return Ok(()) };
        self.waited += 1;
        let waited = stream.core().wait_until_done(UseEnd::at(*position));
        waited.map_err(|refusal| request.refused(stream.device_ref(), "waiting for", &refusal))
    }

    /// Some of it failed already.
    pub(super) fn has_failed(&self) -> bool {
        self.queued.iter().any(|(stream, position)| failure::at(stream.id(), *position).is_some())
    }

    /// Bytes moved so far.
    pub(super) fn bytes(&self) -> u64 {
        self.moved.iter().map(|moved| moved.bytes).sum()
    }

    /// Counts what was moved, and gives back what was queued.
    pub(super) fn close(self, request: &Request<'_>) -> Queued {
        if !self.moved.is_empty() {
            let mut state = request.storage.lock();
            for moved in &self.moved {
                request.count(
                    &mut state,
                    moved.direction,
                    moved.bytes,
                    &moved.device,
                    &moved.stream,
                    moved.since,
                );
            }
        }
        self.queued
    }
}

/// The first of `pieces`, as far as `bytes_max` goes; what is left is planned anew. Constants and
/// copies between devices pass as they are.
pub(super) fn first_share(
    memory_order: &MemoryOrder,
    pieces: &[PlannedCopy],
    bytes_max: u64,
    is_bounded: impl Fn(Source) -> bool,
) -> Chunk {
    let mut first: SmallVec<[PlannedCopy; 4]> = SmallVec::new();
    let mut room = bytes_max;
    for piece in pieces {
        if !is_bounded(piece.source) {
            first.push(*piece);
            continue;
        }
        let bytes = memory_order.region_bytes(&piece.region);
        if bytes <= room {
            first.push(*piece);
            room -= bytes;
        } else if room == bytes_max {
            first
                .push(PlannedCopy { region: memory_order.head(piece.region, bytes_max), ..*piece });
            room = 0;
        } else {
            room = 0;
        }
        if room == 0 && bytes > 0 {
            break;
        }
    }
    let elements =
        |pieces: &[PlannedCopy]| pieces.iter().map(|piece| piece.region.len()).sum::<u64>();
    Chunk { is_last: elements(&first) == elements(pieces), pieces: first }
}

#[cfg(test)]
mod tests {
    use super::first_share;
    use crate::coherence::{Location, PlannedCopy, Region, Source, Span};
    use crate::layout::MemoryOrder;

    fn memory_order() -> MemoryOrder {
        MemoryOrder::of(&[10, 20, 30], &[600, 30, 1], 4).expect("contiguous").0
    }

    fn piece(region: Region) -> PlannedCopy {
        PlannedCopy { source: Source::Location(Location::HOST), region }
    }

    #[test]
    fn pieces_are_taken_until_there_is_no_room() {
        let row = |row| piece(memory_order().whole().with_span(0, Span::single(row)));
        let rows = [row(0), row(1), row(2)];
        let taken = |bytes_max| first_share(&memory_order(), &rows, bytes_max, |_| true).pieces;
        assert_eq!(taken(u64::MAX).len(), 3);
        assert_eq!(taken(5000).as_slice(), &rows[..2]);
        assert_eq!(taken(2400).as_slice(), &rows[..1]);
        assert_eq!(taken(1200)[0].region.len(), 300);
        let unbounded = first_share(&memory_order(), &rows, 1, |_| false);
        assert!(unbounded.pieces.len() == 3 && unbounded.is_last);
        assert!(!first_share(&memory_order(), &rows, 1200, |_| true).is_last);
    }
}
