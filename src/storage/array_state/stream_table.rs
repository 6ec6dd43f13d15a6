//! The table of the streams that use an array.

use smallvec::SmallVec;

use crate::device::{Held, Stream};

/// A stream, or nothing in its place.
pub(super) type Entry = Option<Held<Stream>>;

/// The streams that use an array. The index of a stream is that of its key.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    first: Entry,
    /// The others, if there was more than one.
    more: Option<Box<SmallVec<[Entry; 3]>>>,
}

impl StreamTable {
    #[inline]
    pub(super) fn first(&self) -> Option<&Stream> {
        self.first.as_deref()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Stream> {
        match index.checked_sub(1) {
            None => self.first(),
            Some(index) => self.more.as_ref()?.get(index)?.as_deref(),
        }
    }

    /// The index of a stream that is not the first.
    #[inline]
    pub(super) fn find_later(&self, stream: &Stream) -> Option<usize> {
        let is_this = |known: &Entry| known.as_deref().is_some_and(|known| known == stream);
        self.more.as_ref()?.iter().position(is_this).map(|index| index + 1)
    }

    pub(super) fn len(&self) -> usize {
        1 + self.more.as_ref().map_or(0, |more| more.len())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.first).chain(self.more.iter().flat_map(|more| more.iter()))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        std::iter::once(&mut self.first).chain(more)
    }

    pub(super) fn first_free(&self) -> Option<usize> {
        self.iter().position(Option::is_none)
    }

    pub(super) fn grow(&mut self, len: usize) {
        self.more.get_or_insert_default().resize_with(len - 1, || None);
    }
}
