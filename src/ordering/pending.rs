//! The pending uses of elements that were all used alike.

use smallvec::SmallVec;

use super::mark::{Mark, StreamKey, UseEnd};
use crate::access::Access;
use crate::backend::Position;

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
pub(super) struct Reader {
    pub(super) stream: StreamKey,
    pub(super) end: UseEnd,
}

impl Reader {
    pub(super) fn mark(self) -> Mark {
        Mark::lossless(self.stream, self.end)
    }

    /// Closes the read of a guard that has dropped.
    pub(super) fn close(&mut self, stream: StreamKey, position: Position) {
        if self.stream == stream && self.end == UseEnd::OPEN {
            self.end = UseEnd::at(position);
        }
    }
}

impl Default for PendingUses {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PendingUses {
    pub(super) const EMPTY: Self = Self { writer: Mark::NONE, readers: SmallVec::new_const() };

    pub(super) fn written(mark: Mark) -> Self {
        Self { writer: mark, ..Self::EMPTY }
    }

    #[inline]
    pub(crate) fn writer(&self) -> Option<Mark> {
        (!self.writer.is_none()).then_some(self.writer)
    }

    pub(super) fn readers(&self) -> &[Reader] {
        &self.readers
    }

    /// Whether all uses for which `access` must wait are on `stream`, which runs work in order.
    #[inline]
    pub(crate) fn conflicts_only_with(&self, access: Access, stream: StreamKey) -> bool {
        let writer = self.writer.stream;
        (writer == stream || writer == StreamKey::NONE)
            && (!access.writes() || self.is_read_only_by(stream))
    }

    #[inline]
    fn is_read_only_by(&self, stream: StreamKey) -> bool {
        match self.readers.as_slice() {
            [] => true,
            [only] => only.stream == stream,
            readers => readers.iter().all(|reader| reader.stream == stream),
        }
    }

    /// Adds a use, which runs after all uses with which it conflicts.
    #[inline]
    pub(crate) fn record(&mut self, access: Access, mark: Mark) {
        match access.writes() {
            true => {
                self.writer = mark;
                self.readers.clear();
            }
            false => match self.readers.as_mut_slice() {
                [only] if only.stream == mark.stream => only.end = only.end.max(mark.end),
                _ => self.record_read(mark),
            },
        }
    }

    #[inline(never)]
    fn record_read(&mut self, mark: Mark) {
        match self.readers.iter_mut().find(|reader| reader.stream == mark.stream) {
            Some(reader) => reader.end = reader.end.max(mark.end),
            None => self.readers.push(Reader { stream: mark.stream, end: mark.end }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writer.is_none() && self.readers.is_empty()
    }

    #[inline]
    pub(super) fn visit_conflicts(&self, access: Access, mut visit: impl FnMut(Mark)) {
        self.writer().into_iter().for_each(&mut visit);
        if access.writes() {
            self.readers.iter().map(|reader| reader.mark()).for_each(visit);
        }
    }

    pub(super) fn change_writer(&mut self, change: impl Fn(&mut Mark)) {
        change(&mut self.writer);
    }

    pub(super) fn close_reads(&mut self, stream: StreamKey, position: Position) {
        self.readers.iter_mut().for_each(|reader| reader.close(stream, position));
    }

    pub(super) fn retire(&mut self, is_done: &impl Fn(Mark) -> bool) {
        if self.writer().is_some_and(is_done) {
            self.writer = Mark::NONE;
        }
        self.readers.retain(|reader| !is_done(reader.mark()));
    }
}
