//! The table of the streams that use an array.

use smallvec::SmallVec;

use crate::device::Stream;

/// The streams that use an array. The index of a stream is that of its key.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    first: Option<Stream>,
    /// The others, if there was more than one.
    more: Option<Box<SmallVec<[Option<Stream>; 3]>>>,
}

impl StreamTable {
    #[inline]
    pub(super) fn first(&self) -> Option<&Stream> {
        self.first.as_ref()
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Stream> {
        match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(index) => self.more.as_ref()?.get(index)?.as_ref(),
        }
    }

    pub(super) fn len(&self) -> usize {
        1 + self.more.as_ref().map_or(0, |more| more.len())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Option<Stream>> {
        std::iter::once(&self.first).chain(self.more.iter().flat_map(|more| more.iter()))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Option<Stream>> {
        let more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        std::iter::once(&mut self.first).chain(more)
    }

    pub(super) fn first_free(&self) -> Option<usize> {
        self.iter().position(Option::is_none)
    }

    pub(super) fn grow(&mut self, len: usize) {
        self.more.get_or_insert_default().resize(len - 1, None);
    }
}
