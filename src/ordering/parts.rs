//! Pending uses by region.
//!
//! The last writers are a [`RegionMap`]: every element has one. The reads are a [`BoxList`]: reads
//! of overlapping regions need no order between them, and cutting them at each other's borders
//! would cost more than the rest of a launch. Writes are counted. A read stores how many writes
//! came before it, and the map stores the number of each element's last write. So a read is pending
//! for an element if it came after the element's last write, and a later write looks only at the
//! reads that overlap it.
//!
//! A write therefore removes no read. Reads that later writes of all their elements are ordered
//! after, and complete uses, are removed when the number of uses has doubled.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::mark::{Mark, StreamKey, UseEnd};
use super::pending::{PendingUses, Reader};
use crate::access::Access;
use crate::backend::Position;
use crate::coherence::{BoxList, Region, RegionMap};

/// The smallest number of uses that are searched for complete ones.
const PRUNED_MIN: usize = 32;

/// The number of overlapping reads among which an earlier read of the same region is looked for.
/// One that is not found is kept until it is complete.
const REPEATED_READ_CANDIDATES_MAX: usize = 32;

/// Uses by region. See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct PartUses {
    /// The uses of every element, while [`is_uniform`](Self::is_uniform). The fields below have no
    /// uses then.
    all: PendingUses,
    is_uniform: bool,
    writers: RegionMap<Writer, false>,
    /// The number of writes so far.
    writes: u64,
    readers: BoxList<PartReader>,
    /// The streams of the reads.
    reader_streams: ReaderStreams,
    /// At this number of boxes, complete uses are removed.
    prune_at: usize,
}

/// The last write of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Writer {
    /// [`Mark::NONE`] if it is complete.
    mark: Mark,
    /// Its number among the writes.
    number: u64,
}

/// A read of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PartReader {
    reader: Reader,
    /// The number of writes before it.
    writes_before: u64,
}

/// The streams of several reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReaderStreams {
    None,
    One(StreamKey),
    Several,
}

impl ReaderStreams {
    fn with(self, stream: StreamKey) -> Self {
        match self {
            Self::None => Self::One(stream),
            Self::One(only) if only == stream => self,
            _ => Self::Several,
        }
    }

    /// Whether there is no read on another stream.
    fn are_only(self, stream: StreamKey) -> bool {
        self == Self::None || self == Self::One(stream)
    }
}

impl PartUses {
    /// Uses by region of elements that have all had these uses.
    pub(super) fn new(shape: &[u64], all: PendingUses) -> Self {
        let writer = Writer { mark: Mark::NONE, number: 0 };
        Self {
            all,
            is_uniform: true,
            writers: RegionMap::without_merging(shape, writer),
            writes: 0,
            readers: BoxList::new(shape.len()),
            reader_streams: ReaderStreams::None,
            prune_at: PRUNED_MIN,
        }
    }

    #[inline]
    pub(super) fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    #[inline]
    pub(super) fn uniform(&self) -> Option<&PendingUses> {
        self.is_uniform.then_some(&self.all)
    }

    #[inline]
    pub(super) fn uniform_mut(&mut self) -> Option<&mut PendingUses> {
        self.is_uniform.then_some(&mut self.all)
    }

    /// Converts the uses of every element to uses of the region that is the whole array.
    pub(super) fn separate(&mut self) {
        if !self.is_uniform {
            return;
        }
        self.is_uniform = false;
        let whole = Region::whole(self.writers.shape());
        let mark = self.all.writer().unwrap_or(Mark::NONE);
        self.set_writer(&whole, mark);
        let all = std::mem::take(&mut self.all);
        for reader in all.readers() {
            self.add_reader(&whole, *reader);
        }
    }

    /// Gives every element these uses. Keeps the memory of a few boxes.
    fn unite(&mut self, all: PendingUses) {
        let whole = Region::whole(self.writers.shape());
        self.writers.update(&whole, |_| Writer { mark: Mark::NONE, number: 0 });
        self.readers.clear();
        (self.all, self.is_uniform) = (all, true);
        (self.writes, self.reader_streams) = (0, ReaderStreams::None);
        self.prune_at = PRUNED_MIN;
    }

    /// Adds a use of `region`, which runs after all uses with which it conflicts.
    pub(super) fn record(&mut self, region: &Region, access: Access, mark: Mark) {
        if !access.writes() {
            self.add_reader(region, Reader { stream: mark.stream, end: mark.end });
        } else if self.writers.is_whole(region) {
            self.unite(PendingUses::written(mark));
        } else {
            self.writes += 1;
            self.set_writer(region, mark);
        }
    }

    fn set_writer(&mut self, region: &Region, mark: Mark) {
        let number = self.writes;
        self.writers.update(region, |_| Writer { mark, number });
    }

    fn add_reader(&mut self, region: &Region, reader: Reader) {
        if region.is_empty() {
            return;
        }
        let writes_before = self.writes;
        // The stream runs the new read after an earlier one. But an open read may end later than
        // both, for the elements that were not overwritten in between.
        let repeats = |earlier: &PartReader| {
            earlier.reader.stream == reader.stream
                && (earlier.reader.end != UseEnd::OPEN || reader.end == UseEnd::OPEN)
        };
        match self.readers.find_equal(region, REPEATED_READ_CANDIDATES_MAX, repeats) {
            Some((slot, earlier)) => {
                let reader = Reader { end: reader.end.max(earlier.reader.end), ..reader };
                self.readers.set_value(slot, PartReader { reader, writes_before });
            }
            None => {
                self.readers.insert(region, PartReader { reader, writes_before });
                self.reader_streams = self.reader_streams.with(reader.stream);
            }
        }
    }

    /// Visits the uses for which an `access` of `region` must wait. See
    /// [`Uses::visit_conflicts`](super::Uses::visit_conflicts).
    pub(super) fn visit_conflicts(
        &self,
        region: Option<&Region>,
        access: Access,
        is_wanted: impl Fn(Mark) -> bool,
        mut visit: impl FnMut(Mark),
    ) {
        let whole = Region::whole(self.writers.shape());
        let region = region.unwrap_or(&whole);
        let _ = self.writers.any_value(region, |writer| {
            if !writer.mark.is_none() {
                visit(writer.mark);
            }
            false
        });
        if access.writes() {
            let _ = self.readers.overlapping(region, |_, common, part| {
                let mark = part.reader.mark();
                if is_wanted(mark) && self.is_pending(common, part) {
                    visit(mark);
                }
                ControlFlow::Continue(())
            });
        }
    }

    /// Whether a read is pending for any of these elements, which it reads: whether it came after
    /// the last write of one of them.
    fn is_pending(&self, elements: &Region, part: &PartReader) -> bool {
        self.writers.any_value(elements, |writer| writer.number <= part.writes_before)
    }

    pub(super) fn conflicts_only_with(
        &self,
        region: Option<&Region>,
        access: Access,
        stream: StreamKey,
        mut visit_writer: impl FnMut(Mark),
    ) -> bool {
        let access = match self.reader_streams.are_only(stream) {
            true => Access::Read,
            false => access,
        };
        let mut only = true;
        let whole = Region::whole(self.writers.shape());
        let region = region.unwrap_or(&whole);
        let _ = self.writers.any_value(region, |writer| {
            if !writer.mark.is_none() {
                only &= writer.mark.stream == stream;
                visit_writer(writer.mark);
            }
            false
        });
        only && !(access.writes() && self.is_read_by_others(region, stream))
    }

    /// Whether a read on another stream is pending for any element of `region`.
    fn is_read_by_others(&self, region: &Region, stream: StreamKey) -> bool {
        let found = self.readers.overlapping(region, |_, common, part| {
            match part.reader.stream != stream && self.is_pending(common, part) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        found.is_break()
    }

    pub(super) fn visit_written_regions(&self, mut visit: impl FnMut(&Region, Mark)) {
        self.writers.visit_all(|part, writer| {
            if !writer.mark.is_none() {
                visit(part, writer.mark);
            }
        });
    }

    pub(super) fn change_writers(&mut self, region: &Region, change: impl Fn(&mut Mark)) {
        self.writers.update(region, |writer| {
            let mut changed = *writer;
            change(&mut changed.mark);
            changed
        });
    }

    pub(super) fn close_reads(&mut self, stream: StreamKey, position: Position) {
        let is_open =
            |part: &PartReader| part.reader.stream == stream && part.reader.end == UseEnd::OPEN;
        let open = self.readers.iter().filter(|(_, _, part)| is_open(part));
        let open: SmallVec<[(u32, PartReader); 4]> =
            open.map(|(slot, _, part)| (slot, *part)).collect();
        for (slot, mut part) in open {
            part.reader.close(stream, position);
            self.readers.set_value(slot, part);
        }
    }

    /// Removes the uses of `region` that are complete, and reads that later writes of all their
    /// elements are ordered after.
    pub(super) fn retire(&mut self, region: &Region, is_done: &impl Fn(Mark) -> bool) {
        self.retire_readers(region, is_done);
        // Reads that are left compare their number with the number of each element's last write.
        let has_readers = !self.readers.is_empty();
        self.writers.update(region, |writer| match writer.mark.is_none() || is_done(writer.mark) {
            true => {
                Writer { mark: Mark::NONE, number: if has_readers { writer.number } else { 0 } }
            }
            false => *writer,
        });
        if self.writers.is_whole(region) {
            let streams = self.readers.iter().map(|(_, _, part)| part.reader.stream);
            self.reader_streams = streams.fold(ReaderStreams::None, ReaderStreams::with);
            self.prune_at = PRUNED_MIN.max(2 * self.box_count());
        }
        if let (true, Some(writer)) = (self.readers.is_empty(), self.writers.uniform()) {
            self.unite(PendingUses::written(writer.mark));
        }
    }

    fn retire_readers(&mut self, region: &Region, is_done: &impl Fn(Mark) -> bool) {
        let mut retired: SmallVec<[u32; 16]> = SmallVec::new();
        let _ = self.readers.overlapping(region, |slot, _, part| {
            if is_done(part.reader.mark()) || !self.is_pending(&self.readers.region(slot), part) {
                retired.push(slot);
            }
            ControlFlow::Continue(())
        });
        if !retired.is_empty() {
            self.readers.remove_all(&retired);
        }
    }

    #[inline]
    pub(super) fn is_overgrown(&self) -> bool {
        self.box_count() >= self.prune_at
    }

    pub(super) fn box_count(&self) -> usize {
        self.readers.len() + self.writers.value_count()
    }
}
