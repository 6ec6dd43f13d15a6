//! The uses of a part for which a launch waits, and the work that it names because that may fail
//! although the launch does not. Each use is looked at once.

use smallvec::SmallVec;

use super::stream_table::StreamTable;
use super::streams::is_retired;
use crate::device::Stream;
use resident_backend::{Dependencies, Position, StreamId};
use resident_core::Access;
use resident_core::ordering::{Mark, StreamKey};

/// The last use on each stream with which an access of a launch conflicts.
#[derive(Debug)]
pub(crate) struct LastUses {
    access: Access,
    /// The key of the launch's stream.
    own: StreamKey,
    list: SmallVec<[LastUse; 4]>,
}

#[derive(Clone, Copy, Debug)]
struct LastUse {
    mark: Mark,
    /// The launch need not name work at later positions: if that fails, the launch fails too.
    fallible_upto: Position,
}

impl LastUses {
    #[inline]
    pub(super) fn of(access: Access, own: StreamKey) -> Self {
        Self { access, own, list: SmallVec::new() }
    }

    /// Adds a use. `stream` is the launch's.
    #[inline]
    pub(super) fn add(
        &mut self,
        streams: &StreamTable,
        stream: &Stream,
        mark: Mark,
        depends: &mut Dependencies,
    ) {
        let known = self.list.iter_mut().find(|known| known.mark.stream == mark.stream);
        let fallible_upto = match known {
            Some(known) => {
                if known.mark.end < mark.end {
                    known.mark = mark;
                }
                known.fallible_upto
            }
            None => self.add_stream(streams, stream, mark),
        };
        if let Some(work) = mark.written_by().filter(|work| *work <= fallible_upto) {
            self.add_dependency(streams, stream, mark, work, depends);
        }
    }

    fn add_stream(&mut self, streams: &StreamTable, stream: &Stream, mark: Mark) -> Position {
        let fallible_upto = match streams.get(mark.stream.index()) {
            // Nothing is read.
            _ if self.access == Access::Overwrite => Position::START,
            Some(user) => stream.survives_work_upto(user),
            None => Position::START,
        };
        self.list.push(LastUse { mark, fallible_upto });
        fallible_upto
    }

    #[inline(never)]
    fn add_dependency(
        &self,
        streams: &StreamTable,
        stream: &Stream,
        mark: Mark,
        work: Position,
        depends: &mut Dependencies,
    ) {
        let is_retired = |mark| is_retired(streams, mark);
        if mark.stream == self.own {
            return add_own_writer(depends, stream, mark, is_retired);
        }
        let Some(user) = streams.get(mark.stream.index()) else { return };
        let dependency: (StreamId, Position) = (user.id(), work);
        if !depends.contains(&dependency) && !is_retired(mark) {
            depends.push(dependency);
        }
    }

    /// Whether any use is on another stream, even a completed one.
    #[inline]
    pub(crate) fn follow_other(&self) -> bool {
        self.list.iter().any(|known| known.mark.stream != self.own)
    }

    /// The uses on other streams.
    pub(crate) fn of_others(&self) -> SmallVec<[Mark; 4]> {
        let marks = self.list.iter().map(|known| known.mark);
        marks.filter(|mark| mark.stream != self.own).collect()
    }
}

/// Adds a writer on `stream` itself. A writer of several boxes is visited several times in a row.
/// Others that are added twice do no harm while there is room. It checks whether the writer has
/// completed only if the list would otherwise need the heap: the check reads memory that the
/// executing thread writes, and so costs more than an unnecessary entry.
#[inline]
pub(crate) fn add_own_writer(
    depends: &mut Dependencies,
    stream: &Stream,
    writer: Mark,
    is_retired: impl Fn(Mark) -> bool,
) {
    let Some(work) = writer.written_by() else { return };
    let dependency = (stream.id(), work);
    if depends.last() == Some(&dependency) {
        return;
    }
    let has_room = depends.len() < depends.inline_size();
    if has_room || !depends.contains(&dependency) && !is_retired(writer) {
        depends.push(dependency);
    }
}
