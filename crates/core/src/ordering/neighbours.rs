//! Which boxes of one kind of use overlap the region of a box of the other kind. This is remembered
//! from one use of a region to the next, for as long as no box is added, cut or removed.

use smallvec::SmallVec;

/// Longer lists are not remembered, so that memory is proportional to the number of boxes.
const SLOTS_MAX: usize = 64;

/// The memory of this many lists is kept when all boxes are removed.
const LISTS_KEPT: usize = 16;

/// For each slot of a box: the slots of the boxes of the other kind that overlap it.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    lists: Vec<Neighbourhood>,
}

/// The boxes that overlap one box.
#[derive(Clone, Debug)]
pub(super) struct Neighbourhood {
    /// The number of changes of boxes when the list was made.
    changes: u64,
    slots: SmallVec<[u32; 9]>,
    /// Whether elements of the box are in none of these boxes.
    pub(super) has_gap: bool,
    /// Whether there are too many boxes to list.
    is_long: bool,
}

impl Neighbourhood {
    const UNKNOWN: Self =
        Self { changes: u64::MAX, slots: SmallVec::new_const(), has_gap: false, is_long: false };

    /// The slots of the boxes.
    #[inline]
    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Adds a box.
    pub(super) fn add(&mut self, slot: u32) {
        self.is_long |= self.slots.len() == SLOTS_MAX;
        if !self.is_long {
            self.slots.push(slot);
        }
    }
}

impl Neighbours {
    /// The boxes that overlap the box in `slot`, if they are known and few.
    #[inline]
    pub(super) fn known(&self, slot: u32, changes: u64) -> Option<&Neighbourhood> {
        let list = self.lists.get(slot as usize)?;
        (list.changes == changes && !list.is_long).then_some(list)
    }

    /// Takes the list of the box in `slot` for the caller to fill, unless it is known. The caller
    /// gives it back.
    #[inline]
    pub(super) fn take_unknown(&mut self, slot: u32, changes: u64) -> Option<Neighbourhood> {
        let index = slot as usize;
        if index >= self.lists.len() {
            self.lists.resize(index + 1, Neighbourhood::UNKNOWN);
        }
        let list = &mut self.lists[index];
        if list.changes == changes {
            return None;
        }
        let mut list = std::mem::replace(list, Neighbourhood::UNKNOWN);
        list.slots.clear();
        Some(Neighbourhood { changes, has_gap: false, is_long: false, ..list })
    }

    /// Gives a list back.
    pub(super) fn give_back(&mut self, slot: u32, list: Neighbourhood) {
        if let Some(known) = self.lists.get_mut(slot as usize) {
            *known = list;
        }
    }

    /// Forgets all lists. Keeps the memory of a few.
    pub(super) fn clear(&mut self) {
        if self.lists.len() > LISTS_KEPT {
            self.lists = Vec::new();
        }
        for list in &mut self.lists {
            list.changes = u64::MAX;
        }
    }
}

/// What is known of a region before its uses are visited. Callers that use a region again may keep
/// it: a box that has been removed or replaced meanwhile is noticed, and looked for again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// The writers' box that is equal to the region.
    pub(super) writer: Option<u32>,
    /// A readers' box that is equal to the region.
    pub(super) reader: Option<u32>,
}

/// The numbers of the last writes of the elements of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The lowest.
    pub(super) first: u64,
    /// The highest.
    pub(super) last: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { first: u64::MAX, last: 0 }
    }
}

impl Numbers {
    #[inline]
    pub(super) fn add(&mut self, number: u64) {
        self.first = self.first.min(number);
        self.last = self.last.max(number);
    }
}
