//! The pending uses of elements that were all used alike.

use smallvec::SmallVec;

use super::mark::{Mark, StreamKey, UseEnd};
use crate::Access;
use crate::Position;

/// The uses of one element for which a later access may have to wait: the last writer, if it is
/// pending, and the readers since.
///
/// Every array has one of these for each of its copies, so it is small: the marks of the writer and
/// of the first reader are stored without padding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniformUses {
    /// [`StreamKey::NONE`] for no writer.
    writer_stream: StreamKey,
    /// [`StreamKey::NONE`] for no reader.
    reader_stream: StreamKey,
    writer_end: UseEnd,
    written_by: Position,
    reader_end: UseEnd,
    /// The readers on other streams than the first reader's. Kept when all are removed.
    more_readers: Option<Box<SmallVec<[Reader; 3]>>>,
}

/// The mark of a read, whose failure loses nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reader {
    pub(super) stream: StreamKey,
    pub(super) end: UseEnd,
}

impl Reader {
    #[inline]
    pub(super) fn mark(self) -> Mark {
        Mark::lossless(self.stream, self.end)
    }

    /// Closes the read of a guard that has dropped.
    #[inline]
    pub(super) fn close(&mut self, stream: StreamKey, position: Position) {
        if self.stream == stream && self.end == UseEnd::OPEN {
            self.end = UseEnd::at(position);
        }
    }
}

impl Default for UniformUses {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl UniformUses {
    pub(super) const EMPTY: Self = Self {
        writer_stream: StreamKey::NONE,
        reader_stream: StreamKey::NONE,
        writer_end: UseEnd::at(Position::START),
        written_by: Position::START,
        reader_end: UseEnd::at(Position::START),
        more_readers: None,
    };

    #[inline]
    pub(super) fn written(mark: Mark) -> Self {
        let Mark { stream, end, written_by } = mark;
        Self { writer_stream: stream, writer_end: end, written_by, ..Self::EMPTY }
    }

    #[inline]
    pub fn writer(&self) -> Option<Mark> {
        let Self { writer_stream: stream, writer_end: end, written_by, .. } = *self;
        (stream != StreamKey::NONE).then_some(Mark { stream, end, written_by })
    }

    #[inline]
    fn set_writer(&mut self, mark: Mark) {
        (self.writer_stream, self.writer_end, self.written_by) =
            (mark.stream, mark.end, mark.written_by);
    }

    #[inline]
    pub(super) fn readers(&self) -> impl Iterator<Item = Reader> {
        let first = Reader { stream: self.reader_stream, end: self.reader_end };
        let first = (first.stream != StreamKey::NONE).then_some(first);
        first.into_iter().chain(self.more_readers().iter().copied())
    }

    #[inline]
    fn more_readers(&self) -> &[Reader] {
        self.more_readers.as_deref().map_or(&[], SmallVec::as_slice)
    }

    #[inline]
    fn forget_readers(&mut self) {
        self.reader_stream = StreamKey::NONE;
        if let Some(more) = &mut self.more_readers {
            more.clear();
        }
    }

    /// Whether all uses for which `access` must wait are on `stream`, which runs work in order.
    #[inline]
    pub fn conflicts_only_with(&self, access: Access, stream: StreamKey) -> bool {
        let is_own = |other: StreamKey| other == stream || other == StreamKey::NONE;
        is_own(self.writer_stream)
            && (!access.writes()
                || is_own(self.reader_stream)
                    && self.more_readers().iter().all(|reader| reader.stream == stream))
    }

    /// Adds a use, which runs after all uses with which it conflicts.
    #[inline]
    pub fn record(&mut self, access: Access, mark: Mark) {
        if access.writes() {
            self.set_writer(mark);
            self.forget_readers();
        } else if self.reader_stream == mark.stream {
            self.reader_end = self.reader_end.max(mark.end);
        } else {
            self.record_read(Reader { stream: mark.stream, end: mark.end });
        }
    }

    #[inline(never)]
    fn record_read(&mut self, read: Reader) {
        if self.reader_stream == StreamKey::NONE {
            (self.reader_stream, self.reader_end) = (read.stream, read.end);
            return;
        }
        let more = self.more_readers.get_or_insert_default();
        match more.iter_mut().find(|reader| reader.stream == read.stream) {
            Some(reader) => reader.end = reader.end.max(read.end),
            None => more.push(read),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.writer_stream == StreamKey::NONE && self.reader_stream == StreamKey::NONE
    }

    #[inline]
    pub(super) fn visit_conflicts(&self, access: Access, mut visit: impl FnMut(Mark)) {
        self.writer().into_iter().for_each(&mut visit);
        if access.writes() {
            self.readers().map(Reader::mark).for_each(visit);
        }
    }

    pub(super) fn change_writer(&mut self, change: impl Fn(&mut Mark)) {
        if let Some(mut writer) = self.writer() {
            change(&mut writer);
            self.set_writer(writer);
        }
    }

    pub(super) fn close_reads(&mut self, stream: StreamKey, position: Position) {
        self.change_readers(|reader| {
            reader.close(stream, position);
            true
        });
    }

    pub(super) fn retire(&mut self, is_done: &impl Fn(Mark) -> bool) {
        if self.writer().is_some_and(is_done) {
            self.writer_stream = StreamKey::NONE;
        }
        self.change_readers(|reader| !is_done(reader.mark()));
    }

    /// Changes the readers, and keeps those for which `change` returns true.
    fn change_readers(&mut self, mut change: impl FnMut(&mut Reader) -> bool) {
        if self.reader_stream == StreamKey::NONE {
            return;
        }
        if let Some(more) = &mut self.more_readers {
            more.retain(&mut change);
        }
        let mut first = Reader { stream: self.reader_stream, end: self.reader_end };
        let kept = if change(&mut first) {
            Some(first)
        } else {
            self.more_readers.as_mut().and_then(|more| more.pop())
        };
        let kept = kept.unwrap_or(Reader { stream: StreamKey::NONE, end: first.end });
        (self.reader_stream, self.reader_end) = (kept.stream, kept.end);
    }
}
