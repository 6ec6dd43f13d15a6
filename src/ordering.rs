#![forbid(unsafe_code)]
//! The order of accesses: the pending writers and readers of one copy of an array, region by
//! region, for which later accesses must wait.
//!
//! The rule is the usual one for a buffer that several CUDA streams use: a read runs after earlier
//! writes of the same bytes, and a write runs after earlier writes and reads of the same bytes.
//! Like validity, uses are stored in a [`RegionMap`], so uses of disjoint regions never wait for
//! each other. This module uses small keys instead of streams; callers convert marks to waits.
//!
//! A [`Mark`] is one use. It ends at a position of its stream, or is *open*: a guard exists, and
//! until the guard drops, other code may queue *foreign work* on the stream. When the guard drops,
//! the mark gets a position.
//!
//! A mark contains two separate facts: when the use is complete (`end`), and which operation's
//! failure damages the bytes (`written_by`). They differ for guards: the use of a guard ends at a
//! position of foreign work, whose failure this library cannot see, but an operation of this
//! library that was queued earlier may still fail and damage the bytes.
//!
//! All readers are kept until they are known to be complete, or until a write is ordered after
//! them. Keeping only the last reader, as cudarc does, would let a write overtake a reader on
//! another stream.

use smallvec::SmallVec;

use crate::access::Access;
use crate::backend::Position;
use crate::coherence::{Region, RegionMap};

/// The number by which an array identifies a stream that uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamKey(pub(crate) u32);

impl StreamKey {
    /// No stream.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// When a use is complete: when its stream reaches a position, or, for an open use, at some time
/// after its guard drops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct UseEnd(u64);

impl UseEnd {
    /// The use of a guard that still exists. To wait for it, an event must be recorded at the time
    /// of the wait. Later than every position.
    pub(crate) const OPEN: Self = Self(u64::MAX);

    /// The end of queued work: complete when the stream reaches `position`.
    pub(crate) const fn at(position: Position) -> Self {
        Self(position.0)
    }

    /// The position, unless the use is open.
    pub(crate) fn position(self) -> Option<Position> {
        (self != Self::OPEN).then_some(Position(self.0))
    }
}

/// One use of some bytes on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) stream: StreamKey,
    pub(crate) end: UseEnd,
    /// The operation of the stream whose failure damages the bytes; `START` for none.
    written_by: Position,
}

impl Mark {
    const NONE: Self = Self::lossless(StreamKey::NONE, UseEnd::at(Position::START));

    /// A queued operation that writes contents: if it fails, they are damaged.
    pub(crate) const fn write(stream: StreamKey, position: Position) -> Self {
        Self { stream, end: UseEnd::at(position), written_by: position }
    }

    /// A use that loses no contents if it fails: a read, or an allocation.
    pub(crate) const fn lossless(stream: StreamKey, end: UseEnd) -> Self {
        Self { stream, end, written_by: Position::START }
    }

    /// A use by foreign work, which code outside this library queues. If this library's operation
    /// at `written_by` fails, the bytes are damaged.
    pub(crate) fn foreign(stream: StreamKey, end: UseEnd, written_by: Position) -> Self {
        Self { stream, end: end.max(UseEnd::at(written_by)), written_by }
    }

    /// The operation of the mark's stream that damages the bytes if it fails.
    pub(crate) fn written_by(&self) -> Option<Position> {
        (self.written_by != Position::START).then_some(self.written_by)
    }
}

/// The uses of one element for which a later access may have to wait: the last writer, if it is
/// pending, and the readers since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PendingUses {
    /// [`Mark::NONE`] for none.
    writer: Mark,
    readers: SmallVec<[Reader; 1]>,
}

/// The mark of a read, whose failure loses nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reader {
    stream: StreamKey,
    end: UseEnd,
}

impl Reader {
    fn mark(self) -> Mark {
        Mark::lossless(self.stream, self.end)
    }
}

impl Default for PendingUses {
    fn default() -> Self {
        Self::written(Mark::NONE)
    }
}

impl PendingUses {
    fn written(mark: Mark) -> Self {
        Self { writer: mark, readers: SmallVec::new() }
    }

    #[inline]
    pub(crate) fn writer(&self) -> Option<Mark> {
        (self.writer.stream != StreamKey::NONE).then_some(self.writer)
    }

    /// Whether all uses for which `access` must wait are on `stream`, which runs work in order.
    #[inline]
    pub(crate) fn conflicts_only_with(&self, access: Access, stream: StreamKey) -> bool {
        let writer = self.writer.stream;
        (writer == stream || writer == StreamKey::NONE)
            && (!access.writes() || self.readers.iter().all(|reader| reader.stream == stream))
    }

    /// Adds a use, which runs after all uses with which it conflicts.
    #[inline]
    pub(crate) fn record(&mut self, access: Access, mark: Mark) {
        match access.writes() {
            true => {
                self.writer = mark;
                self.readers.clear();
            }
            false => match self.readers.iter_mut().find(|reader| reader.stream == mark.stream) {
                Some(reader) => reader.end = reader.end.max(mark.end),
                None => self.readers.push(Reader { stream: mark.stream, end: mark.end }),
            },
        }
    }

    fn is_empty(&self) -> bool {
        self.writer.stream == StreamKey::NONE && self.readers.is_empty()
    }

    #[inline]
    fn visit_conflicts(&self, access: Access, mut visit: impl FnMut(Mark)) {
        self.writer().into_iter().for_each(&mut visit);
        if access.writes() {
            self.readers.iter().map(|reader| reader.mark()).for_each(visit);
        }
    }

    fn retire(&mut self, is_done: &impl Fn(Mark) -> bool) {
        if self.writer().is_some_and(is_done) {
            self.writer = Mark::NONE;
        }
        self.readers.retain(|reader| !is_done(reader.mark()));
    }
}

/// The pending uses of one copy of an array, by region.
///
/// Methods that may need the shape of the array take it as a parameter. The region `None` means the
/// whole array.
#[derive(Clone, Debug)]
pub(crate) enum Uses {
    /// Every element has the same uses: the usual case, which needs no region.
    Uniform(PendingUses),
    /// Uses by region. The map is kept even if it becomes uniform again: it keeps the memory of its
    /// boxes, so that repeated uses of a part allocate nothing.
    Mapped(Box<RegionMap<PendingUses>>),
}

impl Default for Uses {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Uses {
    /// No pending uses.
    pub(crate) const EMPTY: Self =
        Self::Uniform(PendingUses { writer: Mark::NONE, readers: SmallVec::new_const() });

    /// The uses of every element, if all elements have the same uses.
    #[inline]
    pub(crate) fn uniform(&self) -> Option<&PendingUses> {
        match self {
            Self::Uniform(uses) => Some(uses),
            Self::Mapped(map) => map.uniform(),
        }
    }

    /// Like [`uniform`](Self::uniform), but mutable.
    #[inline]
    pub(crate) fn uniform_mut(&mut self) -> Option<&mut PendingUses> {
        match self {
            Self::Uniform(uses) => Some(uses),
            Self::Mapped(map) => map.uniform_mut(),
        }
    }

    /// Visits the uses for which an `access` of `region` must wait, some of them more than once.
    #[inline]
    pub(crate) fn visit_conflicts(
        &self,
        region: Option<&Region>,
        access: Access,
        mut visit: impl FnMut(Mark),
    ) {
        match self {
            Self::Uniform(uses) => uses.visit_conflicts(access, visit),
            Self::Mapped(map) => {
                visit_values(map, region, |uses| uses.visit_conflicts(access, &mut visit));
            }
        }
    }

    /// As [`PendingUses::conflicts_only_with`], for all of `region`. Also visits the writers of
    /// `region`.
    #[inline]
    pub(crate) fn conflicts_only_with(
        &self,
        region: Option<&Region>,
        access: Access,
        stream: StreamKey,
        mut visit_writer: impl FnMut(Mark),
    ) -> bool {
        let mut only = true;
        let mut look = |uses: &PendingUses| {
            only = only && uses.conflicts_only_with(access, stream);
            uses.writer().into_iter().for_each(&mut visit_writer);
        };
        match self {
            Self::Uniform(uses) => look(uses),
            Self::Mapped(map) => visit_values(map, region, look),
        }
        only
    }

    /// Visits the writers of `region`.
    #[inline]
    pub(crate) fn visit_writers(&self, region: Option<&Region>, visit: impl FnMut(Mark)) {
        self.visit_conflicts(region, Access::Read, visit);
    }

    /// Visits all writers, with the regions that they wrote.
    pub(crate) fn visit_written_regions(
        &self,
        shape: &[u64],
        mut visit: impl FnMut(&Region, Mark),
    ) {
        match self {
            Self::Uniform(uses) => {
                uses.writer().into_iter().for_each(|mark| visit(&Region::whole(shape), mark));
            }
            Self::Mapped(map) => map.visit_all(|part, uses| {
                uses.writer().into_iter().for_each(|mark| visit(part, mark));
            }),
        }
    }

    /// Adds a use of `region`.
    #[inline]
    pub(crate) fn record(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        access: Access,
        mark: Mark,
    ) {
        match (access.writes(), &mut *self) {
            // After a write, the earlier uses no longer matter.
            (true, Self::Mapped(map)) => {
                let replace = |region: &Region| map.update(region, |_| PendingUses::written(mark));
                with_region(shape, region, replace);
            }
            _ => self.update(shape, region, |uses| uses.record(access, mark)),
        }
    }

    /// Closes an open write: its guard was dropped, and the foreign work (queued by other code)
    /// ends before `position`.
    #[inline]
    pub(crate) fn close(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        stream: StreamKey,
        position: Position,
    ) {
        self.update(shape, region, |uses| {
            if uses.writer.stream == stream && uses.writer.end == UseEnd::OPEN {
                uses.writer.end = UseEnd::at(position);
            }
        });
    }

    /// Forgets which operation wrote `region`, since the failure of that operation has been
    /// handled. The use stays pending until it is complete.
    pub(crate) fn forget_write_failure(&mut self, shape: &[u64], region: &Region) {
        self.update(shape, Some(region), |uses| uses.writer.written_by = Position::START);
    }

    /// Removes the uses of `region` that are complete.
    pub(crate) fn retire(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        is_done: impl Fn(Mark) -> bool,
    ) {
        if !self.is_empty() {
            self.update(shape, region, |uses| uses.retire(&is_done));
        }
    }

    /// Whether no use is pending.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.uniform().is_some_and(PendingUses::is_empty)
    }

    /// Whether any use is open.
    pub(crate) fn has_open(&self) -> bool {
        let mut has_open = false;
        self.visit_conflicts(None, Access::Overwrite, |mark| has_open |= mark.end == UseEnd::OPEN);
        has_open
    }

    #[inline]
    fn update(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        change: impl Fn(&mut PendingUses),
    ) {
        match (self.uniform_mut(), region) {
            (Some(uses), None) => change(uses),
            (_, Some(region)) => self.update_region(shape, region, change),
            (None, None) => self.update_region(shape, &Region::whole(shape), change),
        }
    }

    fn update_region(&mut self, shape: &[u64], region: &Region, change: impl Fn(&mut PendingUses)) {
        if let Self::Uniform(uses) = self {
            if region.len() == shape.iter().product::<u64>() {
                return change(uses);
            }
            *self = Self::Mapped(Box::new(RegionMap::new(shape, std::mem::take(uses))));
        }
        if let Self::Mapped(map) = self {
            map.update(region, |uses| changed(uses, &change));
        }
    }
}

fn changed(uses: &PendingUses, change: &impl Fn(&mut PendingUses)) -> PendingUses {
    let mut next = uses.clone();
    change(&mut next);
    next
}

/// Visits the values in a region, without their extents.
fn visit_values(
    map: &RegionMap<PendingUses>,
    region: Option<&Region>,
    mut visit: impl FnMut(&PendingUses),
) {
    with_region(map.shape(), region, |region| {
        let _ = map.any_value(region, |uses| {
            visit(uses);
            false
        });
    });
}

/// Calls `f` with the region, or with the whole array. The region of the whole array is made only
/// if it is needed.
fn with_region(shape: &[u64], region: Option<&Region>, f: impl FnOnce(&Region)) {
    match region {
        Some(region) => f(region),
        None => f(&Region::whole(shape)),
    }
}
