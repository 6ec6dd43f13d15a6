#![forbid(unsafe_code)]
//! Who must wait for whom: the writers and readers of one copy of an array, region by region.
//!
//! The rule is CUDA's own for one buffer: a read comes after the writes of the same bytes, a write after their writes and reads. It is kept with the
//! same algebra as validity, so uses of disjoint parts never meet. This module knows no stream, only keys; whoever asks turns marks into waits.
//!
//! A mark says where in its stream a use is: at a position, or *open*, for an access handed out as a guard, behind which foreign work may be queued
//! until the guard drops. A closed guard is a position again. All readers are kept until they are known to be done or a write comes after them:
//! keeping only the last is cudarc's hole (a).

use smallvec::SmallVec;

use crate::backend::Position;
use crate::coherence::{Region, RegionMap};

/// A stream, as the array that keeps it numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamKey(pub(crate) u32);

/// Where in its stream a use is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// Queued: complete when the stream has got there.
    Position(Position),
    /// Handed out: only an event recorded at the moment of the wait covers it.
    Open,
}

impl At {
    /// The one that covers both.
    fn later(self, other: Self) -> Self {
        match (self, other) {
            (Self::Position(one), Self::Position(another)) => Self::Position(one.max(another)),
            _ => Self::Open,
        }
    }
}

/// One use of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) stream: StreamKey,
    pub(crate) at: At,
}

/// How bytes are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Touch {
    Read,
    Write,
}

/// The uses of one element that others may have to wait for: at most one writer, and the readers since.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Use {
    pub(crate) writer: Option<Mark>,
    pub(crate) readers: SmallVec<[Mark; 1]>,
}

impl Use {
    fn after(&mut self, touch: Touch, mark: Mark) {
        match touch {
            Touch::Write => {
                self.writer = Some(mark);
                self.readers.clear();
            }
            Touch::Read => match self.readers.iter_mut().find(|reader| reader.stream == mark.stream) {
                Some(reader) => reader.at = reader.at.later(mark.at),
                None => self.readers.push(mark),
            },
        }
    }

    fn is_idle(&self) -> bool {
        self.writer.is_none() && self.readers.is_empty()
    }

    fn for_each_before(&self, touch: Touch, mut visit: impl FnMut(Mark)) {
        self.writer.into_iter().for_each(&mut visit);
        if touch == Touch::Write {
            self.readers.iter().copied().for_each(visit);
        }
    }

    fn settle(&mut self, is_done: &impl Fn(Mark) -> bool) {
        if self.writer.is_some_and(is_done) {
            self.writer = None;
        }
        self.readers.retain(|reader| !is_done(*reader));
    }
}

/// The uses of one copy of an array.
#[derive(Clone, Debug)]
pub(crate) enum Uses {
    /// All of it alike: the common case, without a box.
    Uniform(Use),
    /// By region.
    Mapped(Box<RegionMap<Use>>),
}

impl Default for Uses {
    fn default() -> Self {
        Self::Uniform(Use::default())
    }
}

impl Uses {
    /// Visits what a `touch` of `region` must come after; marks may come more than once.
    pub(crate) fn before(&self, region: &Region, touch: Touch, mut visit: impl FnMut(Mark)) {
        match self {
            Self::Uniform(usage) => usage.for_each_before(touch, visit),
            Self::Mapped(map) => map.visit(region, |_, usage| usage.for_each_before(touch, &mut visit)),
        }
    }

    /// Visits the writers of `region`, and where.
    pub(crate) fn writers(&self, region: &Region, mut visit: impl FnMut(&Region, Mark)) {
        match self {
            Self::Uniform(usage) => usage.writer.into_iter().for_each(|mark| visit(region, mark)),
            Self::Mapped(map) => map.visit(region, |part, usage| usage.writer.into_iter().for_each(|mark| visit(part, mark))),
        }
    }

    /// Enters a use of `region`, which lies in a space of `shape`.
    pub(crate) fn mark(&mut self, shape: &[u64], region: &Region, touch: Touch, mark: Mark) {
        self.update(shape, region, |usage| usage.after(touch, mark));
    }

    /// The guard of an open write was dropped: nothing foreign comes behind `position` any more.
    pub(crate) fn close(&mut self, shape: &[u64], region: &Region, stream: StreamKey, position: Position) {
        let open = Mark { stream, at: At::Open };
        self.update(shape, region, |usage| {
            if usage.writer == Some(open) {
                usage.writer = Some(Mark { stream, at: At::Position(position) });
            }
        });
    }

    /// Forgets the writer of `region`: its failure has been seen to.
    pub(crate) fn forget_writer(&mut self, shape: &[u64], region: &Region) {
        self.update(shape, region, |usage| usage.writer = None);
    }

    /// Forgets uses of `region` that are known to be over.
    pub(crate) fn settle(&mut self, shape: &[u64], region: &Region, is_done: impl Fn(Mark) -> bool) {
        self.update(shape, region, |usage| usage.settle(&is_done));
    }

    /// Nothing to wait for anywhere.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Uniform(usage) if usage.is_idle())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Uniform(_) => 0,
            Self::Mapped(map) => size_of::<RegionMap<Use>>() + map.heap_bytes(),
        }
    }

    fn update(&mut self, shape: &[u64], region: &Region, change: impl Fn(&mut Use)) {
        match self {
            Self::Uniform(usage) if region.len() == shape.iter().product::<u64>() => change(usage),
            Self::Uniform(usage) => {
                let mut map = RegionMap::new(shape, std::mem::take(usage));
                map.update_values(region, |usage| changed(usage, &change));
                self.adopt(map);
            }
            Self::Mapped(map) => {
                map.update_values(region, |usage| changed(usage, &change));
                if let Some(usage) = map.uniform() {
                    *self = Self::Uniform(usage.clone());
                }
            }
        }
    }

    fn adopt(&mut self, map: RegionMap<Use>) {
        *self = match map.uniform() {
            Some(usage) => Self::Uniform(usage.clone()),
            None => Self::Mapped(Box::new(map)),
        };
    }
}

fn changed(usage: &Use, change: &impl Fn(&mut Use)) -> Use {
    let mut next = usage.clone();
    change(&mut next);
    next
}
