//! Finds boxes by their exact spans: programs use the same parts again and again.

use hashbrown::HashTable;

use crate::coherence::region::hash;
use crate::coherence::span::Span;

/// The slots of boxes, by a hash of their spans.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactIndex {
    slots: HashTable<u32>,
}

impl ExactIndex {
    /// Adds a slot. `spans` returns the spans of any slot in the index.
    pub(super) fn insert<'a>(&mut self, slot: u32, spans: impl Fn(u32) -> &'a [Span]) {
        let hash = |slot: &u32| hash(spans(*slot));
        self.slots.insert_unique(hash(&slot), slot, hash);
    }

    /// Removes a slot with these spans.
    pub(super) fn remove(&mut self, slot: u32, spans: &[Span]) {
        if let Ok(entry) = self.slots.find_entry(hash(spans), |known| *known == slot) {
            entry.remove();
        }
    }

    /// A slot with the hash of these spans that satisfies `is_wanted`, which compares the spans.
    #[inline]
    pub(super) fn find(
        &self,
        spans: &[Span],
        mut is_wanted: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        self.slots.find(hash(spans), |slot| is_wanted(*slot)).copied()
    }

    /// The heap bytes that the index takes.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * (size_of::<u32>() + 1) * 8 / 7
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}
