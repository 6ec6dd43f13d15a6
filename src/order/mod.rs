#![forbid(unsafe_code)]
//! Who must wait for whom: the writers and readers of one copy of an array, region by region.
//!
//! The rule is CUDA's own for one buffer: a read comes after the writes of the same bytes, a write
//! after their writes and reads. It is kept with the same algebra as validity, so uses of disjoint
//! parts never meet. This module knows no stream, only keys; whoever asks turns marks into waits.
//!
//! A mark says where in its stream a use is: at a position, or *open*, for an access handed out as
//! a guard, behind which foreign work may be queued until the guard drops. A closed guard is a
//! position again. When a use is over and whether it went well are two questions: a guard ends at a
//! position of somebody else's work, whose failure is not its own, and its bytes may be spoilt by
//! work that was queued before it. All readers are kept until they are known to be done or a write
//! comes after them: keeping only the last is cudarc's hole (a).

use smallvec::SmallVec;

use crate::access::Access;
use crate::backend::Position;
use crate::coherence::{Region, RegionMap};

/// A stream, as the array that keeps it numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamKey(pub(crate) u32);

impl StreamKey {
    /// No stream: the key of a mark that marks nothing.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Where in its stream a use is: a position, or open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct At(u64);

impl At {
    /// Handed out: only an event recorded at the moment of the wait covers it. Later than every
    /// position.
    pub(crate) const OPEN: Self = Self(u64::MAX);

    /// Queued: complete when the stream has got there.
    pub(crate) const fn position(position: Position) -> Self {
        Self(position.0)
    }

    /// The position, unless it is open.
    pub(crate) fn queued(self) -> Option<Position> {
        (self != Self::OPEN).then_some(Position(self.0))
    }
}

/// One use of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) stream: StreamKey,
    /// When it is over.
    pub(crate) at: At,
    /// The work of the stream whose failure spoils the bytes; the start for none.
    work: Position,
}

impl Mark {
    const NONE: Self = Self { stream: StreamKey::NONE, at: At(0), work: Position::START };

    /// Queued work that writes: if it fails, the bytes are spoilt.
    pub(crate) fn written(stream: StreamKey, position: Position) -> Self {
        Self { stream, at: At::position(position), work: position }
    }

    /// A use that spoils nothing, whatever becomes of the work at that position: a read, memory
    /// that was taken.
    pub(crate) fn harmless(stream: StreamKey, at: At) -> Self {
        Self { stream, at, work: Position::START }
    }

    /// Foreign work on bytes that are spoilt if the stream's own work at `work` fails.
    pub(crate) fn foreign(stream: StreamKey, at: At, work: Position) -> Self {
        Self { stream, at: at.max(At::position(work)), work }
    }

    /// The work of its stream whose failure spoils the bytes.
    pub(crate) fn work(&self) -> Option<Position> {
        (self.work != Position::START).then_some(self.work)
    }
}

/// The uses of one element that others may have to wait for: at most one writer, and the readers
/// since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Use {
    /// [`Mark::NONE`] for none.
    writer: Mark,
    readers: SmallVec<[Reader; 1]>,
}

/// A mark that reads: it spoils nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reader {
    stream: StreamKey,
    at: At,
}

impl Reader {
    fn mark(self) -> Mark {
        Mark::harmless(self.stream, self.at)
    }
}

impl Default for Use {
    fn default() -> Self {
        Self { writer: Mark::NONE, readers: SmallVec::new() }
    }
}

impl Use {
    fn written(mark: Mark) -> Self {
        Self { writer: mark, readers: SmallVec::new() }
    }

    #[inline]
    pub(crate) fn writer(&self) -> Option<Mark> {
        (self.writer.stream != StreamKey::NONE).then_some(self.writer)
    }

    /// Whether an access has nothing of other streams than `stream` before it.
    #[inline]
    pub(crate) fn is_alone(&self, access: Access, stream: StreamKey) -> bool {
        let writer = self.writer.stream;
        (writer == stream || writer == StreamKey::NONE)
            && (!access.writes() || self.readers.iter().all(|reader| reader.stream == stream))
    }

    /// Enters a use.
    #[inline]
    pub(crate) fn after(&mut self, access: Access, mark: Mark) {
        match access.writes() {
            true => {
                self.writer = mark;
                self.readers.clear();
            }
            false => match self.readers.iter_mut().find(|reader| reader.stream == mark.stream) {
                Some(reader) => reader.at = reader.at.max(mark.at),
                None => self.readers.push(Reader { stream: mark.stream, at: mark.at }),
            },
        }
    }

    fn is_idle(&self) -> bool {
        self.writer.stream == StreamKey::NONE && self.readers.is_empty()
    }

    #[inline]
    fn for_each_before(&self, access: Access, mut visit: impl FnMut(Mark)) {
        self.writer().into_iter().for_each(&mut visit);
        if access.writes() {
            self.readers.iter().map(|reader| reader.mark()).for_each(visit);
        }
    }

    fn settle(&mut self, is_done: &impl Fn(Mark) -> bool) {
        if self.writer().is_some_and(is_done) {
            self.writer = Mark::NONE;
        }
        self.readers.retain(|reader| !is_done(reader.mark()));
    }
}

/// The uses of one copy of an array.
#[derive(Clone, Debug)]
pub(crate) enum Uses {
    /// All of it alike: the common case, without a box.
    Uniform(Use),
    /// By region. Once a map always a map: one that became uniform again keeps its boxes' memory,
    /// so that flips of a part allocate nothing.
    Mapped(Box<RegionMap<Use>>),
}

impl Default for Uses {
    fn default() -> Self {
        Self::Uniform(Use::default())
    }
}

impl Uses {
    /// Nothing to wait for, for whoever has no uses of its own to show.
    pub(crate) const IDLE: Self =
        Self::Uniform(Use { writer: Mark::NONE, readers: SmallVec::new_const() });

    /// The use of all of it, if all is used alike.
    #[inline]
    pub(crate) fn uniform(&self) -> Option<&Use> {
        match self {
            Self::Uniform(usage) => Some(usage),
            Self::Mapped(map) => map.uniform(),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn uniform_mut(&mut self) -> Option<&mut Use> {
        match self {
            Self::Uniform(usage) => Some(usage),
            Self::Mapped(map) => map.uniform_mut(),
        }
    }

    /// Visits what an `access` of `region` must come after (`None`: of all); marks may come more
    /// than once.
    #[inline]
    pub(crate) fn before(
        &self,
        region: Option<&Region>,
        access: Access,
        mut visit: impl FnMut(Mark),
    ) {
        match self {
            Self::Uniform(usage) => usage.for_each_before(access, visit),
            Self::Mapped(map) => {
                visit_values(map, region, |usage| usage.for_each_before(access, &mut visit))
            }
        }
    }

    /// As [`Use::is_alone`], for all of `region` (`None`: of all); visits the writers there
    /// meanwhile.
    #[inline]
    pub(crate) fn is_alone(
        &self,
        region: Option<&Region>,
        access: Access,
        stream: StreamKey,
        mut visit: impl FnMut(Mark),
    ) -> bool {
        let mut is_alone = true;
        let mut look = |usage: &Use| {
            is_alone = is_alone && usage.is_alone(access, stream);
            usage.writer().into_iter().for_each(&mut visit);
        };
        match self {
            Self::Uniform(usage) => look(usage),
            Self::Mapped(map) => visit_values(map, region, look),
        }
        is_alone
    }

    /// Visits the writers of `region` (`None`: of all).
    #[inline]
    pub(crate) fn writers(&self, region: Option<&Region>, visit: impl FnMut(Mark)) {
        self.before(region, Access::Read, visit);
    }

    /// Visits all writers, and where they wrote.
    pub(crate) fn all_writers(&self, shape: &[u64], mut visit: impl FnMut(&Region, Mark)) {
        match self {
            Self::Uniform(usage) => {
                usage.writer().into_iter().for_each(|mark| visit(&Region::whole(shape), mark))
            }
            Self::Mapped(map) => map.visit_all(|part, usage| {
                usage.writer().into_iter().for_each(|mark| visit(part, mark))
            }),
        }
    }

    /// Enters a use of `region` (`None`: of all), which lies in a space of `shape`.
    #[inline]
    pub(crate) fn mark(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        access: Access,
        mark: Mark,
    ) {
        match (access.writes(), &mut *self) {
            // What a write leaves does not depend on what was before.
            (true, Self::Mapped(map)) => {
                on_part(shape, region, |region| map.update(region, |_| Use::written(mark)));
            }
            _ => self.update(shape, region, |usage| usage.after(access, mark)),
        }
    }

    /// The guard of an open write was dropped: nothing foreign comes behind `position` any more.
    #[inline]
    pub(crate) fn close(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        stream: StreamKey,
        position: Position,
    ) {
        self.update(shape, region, |usage| {
            if usage.writer.stream == stream && usage.writer.at == At::OPEN {
                usage.writer.at = At::position(position);
            }
        });
    }

    /// The failure of the writer of `region` has been seen to. When the use is over is another
    /// question: it stays until then.
    pub(crate) fn forget_writer(&mut self, shape: &[u64], region: &Region) {
        self.update(shape, Some(region), |usage| usage.writer.work = Position::START);
    }

    /// Forgets uses of `region` (`None`: of all) that are known to be over.
    pub(crate) fn settle(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        is_done: impl Fn(Mark) -> bool,
    ) {
        if !self.is_idle() {
            self.update(shape, region, |usage| usage.settle(&is_done));
        }
    }

    /// Nothing to wait for anywhere.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.uniform().is_some_and(Use::is_idle)
    }

    /// Some use was handed out, and is not known to have come to its end.
    pub(crate) fn has_open(&self) -> bool {
        let mut has_open = false;
        self.before(None, Access::Overwrite, |mark| has_open |= mark.at == At::OPEN);
        has_open
    }

    #[inline]
    fn update(&mut self, shape: &[u64], region: Option<&Region>, change: impl Fn(&mut Use)) {
        match (self.uniform_mut(), region) {
            (Some(usage), None) => change(usage),
            (_, Some(region)) => self.update_part(shape, region, change),
            (None, None) => self.update_part(shape, &Region::whole(shape), change),
        }
    }

    fn update_part(&mut self, shape: &[u64], region: &Region, change: impl Fn(&mut Use)) {
        if let Self::Uniform(usage) = self {
            if region.len() == shape.iter().product::<u64>() {
                return change(usage);
            }
            *self = Self::Mapped(Box::new(RegionMap::new(shape, std::mem::take(usage))));
        }
        if let Self::Mapped(map) = self {
            map.update(region, |usage| changed(usage, &change));
        }
    }
}

fn changed(usage: &Use, change: &impl Fn(&mut Use)) -> Use {
    let mut next = usage.clone();
    change(&mut next);
    next
}

/// Visits the uses in a region, the whole space if none is given; which elements they are of is
/// not found out.
fn visit_values(map: &RegionMap<Use>, region: Option<&Region>, mut visit: impl FnMut(&Use)) {
    let mut look = |usage: &Use| {
        visit(usage);
        false
    };
    let _ = match region {
        Some(region) => map.any_value(region, &mut look),
        None => map.any_value(&Region::whole(map.shape()), &mut look),
    };
}

/// Calls with a region, the whole space if none is given: a box of it is made only then.
fn on_part(shape: &[u64], region: Option<&Region>, change: impl FnOnce(&Region)) {
    match region {
        Some(region) => change(region),
        None => change(&Region::whole(shape)),
    }
}
