//! Pending uses by region.
//!
//! The last writers are a [`RegionMap`]: every element has one. The reads are a [`BoxList`]: reads
//! of overlapping regions need no order between them, and cutting them at each other's borders
//! would cost more than the rest of a launch. Writes are counted. A read stores how many writes
//! came before it, and the map stores the number of each element's last write. So a read is pending
//! for an element if it came after the element's last write, and a later write looks only at the
//! reads that overlap it.
//!
//! Programs use the same regions again and again. So the boxes that overlap the region of a use are
//! remembered (`neighbours`) until a box is added, cut or removed.
//!
//! A write therefore removes no read. Reads that later writes of all their elements are ordered
//! after, and complete uses, are removed when the number of uses has doubled.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::mark::{Mark, StreamKey, UseEnd};
use super::neighbours::{Known, Neighbours, Numbers};
use super::uniform::{Reader, UniformUses};
use crate::Access;
use crate::Position;
use crate::coherence::{BoxList, Region, RegionMap};

/// The smallest number of uses that are searched for complete ones.
const PRUNED_MIN: usize = 32;

/// After so many writes, the streams of the uses are looked for again.
const RECOUNTED_MIN: u64 = 4;

/// Uses by region. See the module's documentation.
#[derive(Clone, Debug)]
pub struct PartUses {
    /// The uses of every element, while [`is_uniform`](Self::is_uniform). The fields below have no
    /// uses then.
    all: UniformUses,
    is_uniform: bool,
    writers: RegionMap<Writer, false>,
    /// The number of writes so far.
    writes: u64,
    readers: BoxList<PartReader>,
    /// The streams of the reads, and of the writes; of some that are gone, too.
    reader_streams: StreamSet,
    writer_streams: StreamSet,
    /// At this number of writes, the streams are looked for again.
    recount_at: u64,
    /// For each slot of `readers` that was asked for: the writers' boxes that overlap its region.
    writers_near: Neighbours,
    /// For each slot of `writers` that was asked for: the readers' boxes that overlap its region.
    readers_near: Neighbours,
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

/// The streams of several uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamSet {
    None,
    One(StreamKey),
    Several,
}

impl StreamSet {
    #[inline]
    fn with(self, stream: StreamKey) -> Self {
        match self {
            _ if stream == StreamKey::NONE => self,
            Self::None => Self::One(stream),
            Self::One(only) if only == stream => self,
            _ => Self::Several,
        }
    }

    /// Whether there is no use on another stream.
    fn are_only(self, stream: StreamKey) -> bool {
        self == Self::None || self == Self::One(stream)
    }
}

impl PartUses {
    /// Uses by region of elements that have all had these uses.
    pub(super) fn new(shape: &[u64], all: UniformUses) -> Self {
        let writer = Writer { mark: Mark::NONE, number: 0 };
        Self {
            all,
            is_uniform: true,
            writers: RegionMap::without_merging(shape, writer),
            writes: 0,
            readers: BoxList::new(shape.len()),
            reader_streams: StreamSet::None,
            writer_streams: StreamSet::None,
            recount_at: RECOUNTED_MIN,
            writers_near: Neighbours::default(),
            readers_near: Neighbours::default(),
            prune_at: PRUNED_MIN,
        }
    }

    #[inline]
    pub(super) fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    #[inline]
    pub(super) fn uniform(&self) -> Option<&UniformUses> {
        self.is_uniform.then_some(&self.all)
    }

    #[inline]
    pub(super) fn uniform_mut(&mut self) -> Option<&mut UniformUses> {
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
            self.add_reader(&whole, reader);
        }
    }

    pub(super) fn whole(&self) -> Region {
        Region::whole(self.writers.shape())
    }

    /// Gives every element these uses. Keeps the memory of a few boxes.
    fn unite(&mut self, all: UniformUses) {
        let whole = Region::whole(self.writers.shape());
        self.writers.update(&whole, |_| Writer { mark: Mark::NONE, number: 0 });
        self.readers.clear();
        (self.all, self.is_uniform) = (all, true);
        self.writes = 0;
        (self.reader_streams, self.writer_streams) = (StreamSet::None, StreamSet::None);
        self.recount_at = RECOUNTED_MIN;
        self.writers_near.clear();
        self.readers_near.clear();
        self.prune_at = PRUNED_MIN;
    }

    /// Adds a use of `region`, which runs after all uses with which it conflicts.
    pub(super) fn record(&mut self, region: &Region, access: Access, mark: Mark) {
        if !access.writes() {
            self.add_reader(region, Reader { stream: mark.stream, end: mark.end });
        } else if region.is_whole(self.writers.shape()) {
            self.unite(UniformUses::written(mark));
        } else {
            self.writes += 1;
            self.set_writer(region, mark);
        }
    }

    fn set_writer(&mut self, region: &Region, mark: Mark) {
        let number = self.writes;
        self.writer_streams = self.writer_streams.with(mark.stream);
        self.writers.update(region, |_| Writer { mark, number });
    }

    /// As [`record`](Self::record), of a region whose boxes may be known. Sets `known` to the box
    /// of the use, if there is one.
    pub(super) fn record_known(
        &mut self,
        region: &Region,
        known: &mut Known,
        access: Access,
        mark: Mark,
    ) {
        if !access.writes() {
            let reader = Reader { stream: mark.stream, end: mark.end };
            known.reader = self.add_known_reader(region, known.reader, reader);
            return;
        }
        match known.writer.filter(|slot| self.writers.is_at(*slot, region)) {
            Some(slot) => {
                self.writes += 1;
                let number = self.writes;
                self.writer_streams = self.writer_streams.with(mark.stream);
                self.writers.update_box(slot, |_| Writer { mark, number });
            }
            None => {
                self.record(region, access, mark);
                known.writer = self.writers.find_equal(region);
            }
        }
    }

    fn add_reader(&mut self, region: &Region, reader: Reader) {
        self.add_known_reader(region, None, reader);
    }

    /// Adds a read, whose box may be known, and returns the slot of its box.
    #[inline]
    fn add_known_reader(
        &mut self,
        region: &Region,
        known: Option<u32>,
        reader: Reader,
    ) -> Option<u32> {
        if region.is_empty() {
            return None;
        }
        let writes_before = self.writes;
        // The stream runs the new read after an earlier one. But an open read may end later than
        // both, for the elements that were not overwritten in between.
        let repeats = |earlier: &PartReader| {
            earlier.reader.stream == reader.stream
                && (earlier.reader.end != UseEnd::OPEN || reader.end == UseEnd::OPEN)
        };
        let is_repeated = |slot: &u32| {
            self.readers.is_at(*slot, region) && self.readers.value(*slot).is_some_and(repeats)
        };
        let known = known.filter(is_repeated);
        let repeated = known.or_else(|| self.readers.find_equal(region, repeats));
        match repeated.and_then(|slot| Some((slot, self.readers.value(slot)?.reader.end))) {
            Some((slot, end)) => {
                let reader = Reader { end: reader.end.max(end), ..reader };
                self.readers.set_value(slot, PartReader { reader, writes_before });
                Some(slot)
            }
            None => {
                self.reader_streams = self.reader_streams.with(reader.stream);
                Some(self.readers.insert(region, PartReader { reader, writes_before }))
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
        visit: impl FnMut(Mark),
    ) {
        let whole = Region::whole(self.writers.shape());
        let region = region.unwrap_or(&whole);
        let known = self.find_known(region, Known::default());
        self.visit_conflicts_at(region, known, access, is_wanted, visit);
    }

    /// As [`visit_conflicts`](Self::visit_conflicts), of a region whose boxes may be known, without
    /// reads on `stream`. Remembers which boxes overlap a region that was used before.
    #[inline]
    pub(super) fn visit_known_conflicts(
        &mut self,
        region: &Region,
        known: Known,
        access: Access,
        stream: StreamKey,
        mut visit: impl FnMut(Mark),
    ) {
        let known = self.find_known(region, known);
        self.remember_writers(region, known);
        if !access.writes() || self.reader_streams.are_only(stream) {
            self.visit_writers(region, known, |writer| {
                if !writer.mark.is_none() {
                    visit(writer.mark);
                }
            });
            return;
        }
        self.remember_readers(region, known);
        self.visit_conflicts_at(region, known, access, |mark| mark.stream != stream, visit);
    }

    #[inline]
    fn visit_conflicts_at(
        &self,
        region: &Region,
        known: Known,
        access: Access,
        is_wanted: impl Fn(Mark) -> bool,
        mut visit: impl FnMut(Mark),
    ) {
        let mut numbers = Numbers::default();
        self.visit_writers(region, known, |writer| {
            numbers.add(writer.number);
            if !writer.mark.is_none() {
                visit(writer.mark);
            }
        });
        if access.writes() {
            let _ = self.any_reader(region, known, |slot, part| {
                let mark = part.reader.mark();
                if is_wanted(mark) && self.is_pending_in(region, numbers, slot, part) {
                    visit(mark);
                }
                false
            });
        }
    }

    /// Whether all uses are on `stream`, as far as is known without a search.
    #[inline]
    pub(super) fn are_only_on(&mut self, stream: StreamKey) -> bool {
        if self.writes >= self.recount_at {
            self.recount_streams(stream);
        }
        self.writer_streams.are_only(stream) && self.reader_streams.are_only(stream)
    }

    /// Looks for the streams of the uses that are left. Each time after as many writes as there are
    /// boxes, so that a write costs little more. Removes reads that later writes are ordered after
    /// only if all writes are on `stream`: else they would be added again.
    #[cold]
    fn recount_streams(&mut self, stream: StreamKey) {
        self.recount_at = self.writes + RECOUNTED_MIN.max(self.box_count() as u64);
        self.set_writer_streams();
        if self.writer_streams.are_only(stream) && !self.reader_streams.are_only(stream) {
            self.retire_readers(&self.whole(), &|_| false);
            self.set_reader_streams();
        }
    }

    fn set_writer_streams(&mut self) {
        let mut streams = StreamSet::None;
        self.writers.visit_all(|_, writer| streams = streams.with(writer.mark.stream));
        self.writer_streams = streams;
    }

    fn set_reader_streams(&mut self) {
        let streams = self.readers.iter().map(|(_, _, part)| part.reader.stream);
        self.reader_streams = streams.fold(StreamSet::None, StreamSet::with);
    }

    /// The number of changes of boxes so far.
    #[inline]
    fn changes(&self) -> u64 {
        self.writers.changes() + self.readers.changes()
    }

    /// See [`Uses::find`](super::Uses::find).
    #[inline]
    pub(super) fn find(&self, region: &Region) -> Option<Known> {
        let known = self.find_equal(region);
        (known != Known::default()).then_some(known)
    }

    /// The boxes that are equal to `region`, some of which may be known.
    #[inline]
    fn find_known(&self, region: &Region, known: Known) -> Known {
        let writer = known.writer.filter(|slot| self.writers.is_at(*slot, region));
        let reader = known.reader.filter(|slot| self.readers.is_at(*slot, region));
        match (writer, reader) {
            (None, None) => self.find_equal(region),
            // The box of a write has the only writer of its elements.
            (Some(_), _) => Known { writer, reader: None },
            (None, Some(_)) => Known { writer, reader },
        }
    }

    /// The boxes that are equal to `region`.
    #[inline]
    fn find_equal(&self, region: &Region) -> Known {
        let writer = self.writers.find_equal(region);
        let reader = match writer {
            Some(_) => None,
            None => self.readers.find_equal(region, |_| true),
        };
        Known { writer, reader }
    }

    /// Finds the writers' boxes that overlap a region that was read before, unless they are known.
    #[inline]
    fn remember_writers(&mut self, region: &Region, known: Known) {
        let changes = self.changes();
        if let Some(slot) = known.reader
            && let Some(mut near) = self.writers_near.take_unknown(slot, changes)
        {
            near.has_gap = self.writers.visit_boxes(region, |slot, _| near.add(slot));
            self.writers_near.give_back(slot, near);
        }
    }

    /// Finds the readers' boxes that overlap a region that was written before, unless they are
    /// known.
    #[inline]
    fn remember_readers(&mut self, region: &Region, known: Known) {
        let changes = self.changes();
        if let Some(slot) = known.writer
            && let Some(mut near) = self.readers_near.take_unknown(slot, changes)
        {
            let _ = self.readers.overlapping(region, |slot, _, _| {
                near.add(slot);
                ControlFlow::Continue(())
            });
            self.readers_near.give_back(slot, near);
        }
    }

    /// Calls `visit` with the last writers of the elements of `region`.
    #[inline]
    fn visit_writers(&self, region: &Region, known: Known, mut visit: impl FnMut(&Writer)) {
        if let Some(writer) = known.writer.and_then(|slot| self.writers.box_value(slot)) {
            return visit(writer);
        }
        let near = known.reader.and_then(|slot| self.writers_near.known(slot, self.changes()));
        if let Some(near) = near {
            let writers = near.slots().iter().filter_map(|slot| self.writers.box_value(*slot));
            writers.for_each(&mut visit);
            if near.has_gap {
                visit(self.writers.background());
            }
            return;
        }
        let _ = self.writers.any_value(region, |writer| {
            visit(writer);
            false
        });
    }

    /// Whether `f` is true for any of the reads that overlap `region`.
    #[inline]
    fn any_reader(
        &self,
        region: &Region,
        known: Known,
        mut f: impl FnMut(u32, &PartReader) -> bool,
    ) -> bool {
        let near = known.writer.and_then(|slot| self.readers_near.known(slot, self.changes()));
        if let Some(near) = near {
            let reader = |slot: &u32| Some((*slot, self.readers.value(*slot)?));
            return near.slots().iter().filter_map(reader).any(|(slot, part)| f(slot, part));
        }
        let found = self.readers.overlapping(region, |slot, _, part| {
            if f(slot, part) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.is_break()
    }

    /// Whether a read is pending for any of these elements, which it reads: whether it came after
    /// the last write of one of them.
    fn is_pending(&self, elements: &Region, part: &PartReader) -> bool {
        self.writers.any_value(elements, |writer| writer.number <= part.writes_before)
    }

    /// Whether the read in `slot` is pending for any of the elements that it has in common with
    /// `region`, whose last writes have these numbers.
    #[inline]
    fn is_pending_in(
        &self,
        region: &Region,
        numbers: Numbers,
        slot: u32,
        part: &PartReader,
    ) -> bool {
        if numbers.last <= part.writes_before {
            return true;
        }
        numbers.first <= part.writes_before && {
            let common = self.readers.region(slot).intersection(region);
            common.is_some_and(|common| self.is_pending(&common, part))
        }
    }

    /// As [`UniformUses::conflicts_only_with`], for all of `region`. Remembers which boxes overlap
    /// a region that was used before.
    pub(super) fn conflicts_only_with(
        &mut self,
        region: Option<&Region>,
        access: Access,
        stream: StreamKey,
        mut visit_writer: impl FnMut(Mark),
    ) -> bool {
        let whole = Region::whole(self.writers.shape());
        let region = region.unwrap_or(&whole);
        let known = self.find_known(region, Known::default());
        let has_other_readers = access.writes() && !self.reader_streams.are_only(stream);
        self.remember_writers(region, known);
        if has_other_readers {
            self.remember_readers(region, known);
        }
        let (mut only, mut numbers) = (true, Numbers::default());
        self.visit_writers(region, known, |writer| {
            numbers.add(writer.number);
            if !writer.mark.is_none() {
                only &= writer.mark.stream == stream;
                visit_writer(writer.mark);
            }
        });
        let is_pending = |slot, part: &PartReader| {
            part.reader.stream != stream && self.is_pending_in(region, numbers, slot, part)
        };
        only && !(has_other_readers && self.any_reader(region, known, is_pending))
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
        self.writers.update(region, |writer| {
            let is_pending = !writer.mark.is_none() && !is_done(writer.mark);
            let mark = if is_pending { writer.mark } else { Mark::NONE };
            let number = if is_pending || has_readers { writer.number } else { 0 };
            Writer { mark, number }
        });
        if region.is_whole(self.writers.shape()) {
            self.set_writer_streams();
            self.set_reader_streams();
            self.prune_at = PRUNED_MIN.max(2 * self.box_count());
        }
        if self.readers.is_empty()
            && let Some(writer) = self.writers.uniform()
        {
            self.unite(UniformUses::written(writer.mark));
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
