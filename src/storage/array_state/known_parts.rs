//! The parts of an array that launches use again and again: which elements the view of a launch
//! has, and which boxes their uses have. A launch on such a part makes no selection and looks for
//! no box.
//!
//! This is no second state: the uses, the contents and the memory are looked at by each launch. A
//! box that was removed or replaced since is noticed (`ordering::Known`), and looked for again. So
//! nothing needs to be forgotten when other accesses change the array.

use super::known_conflicts::LastUses;
use super::part_table::{PartId, PartUse};
use super::{ArrayState, DeviceCopy};
use crate::device::Stream;
use resident_backend::remembered_parts::{self, Remember};
use resident_backend::{Address, Dependencies, Position};
use resident_core::Access;
use resident_core::coherence::{Coherence, Location, Region};
use resident_core::layout::MemoryOrder;
use resident_core::ordering::{Mark, StreamKey, UseEnd};

/// So many parts are remembered, however few boxes the uses have.
const PARTS_MIN: usize = 16;

/// At most so many parts are remembered for each box of the uses, so that memory is proportional to
/// the number of boxes.
const PARTS_PER_BOX: usize = 4;

/// What a part that is known needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownAcquire {
    pub(crate) id: PartId,
    pub(crate) address: Address,
    pub(crate) location: Location,
    pub(crate) key: StreamKey,
}

/// The end of a launch on a part, and the number of the use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartUseEnd<'s> {
    pub(crate) stream: &'s Stream,
    pub(crate) position: Position,
    pub(crate) number: u64,
}

impl ArrayState {
    /// Whether a launch that is about to record its use of a part remembers it: whether the part
    /// was used before.
    pub(crate) fn may_remember(&self, location: Location, region: &Region) -> bool {
        match remembered_parts::setting() {
            Remember::Again => self.device_copy(location).uses.find(region).is_some(),
            Remember::AtOnce => true,
            Remember::Never => false,
        }
    }

    /// Remembers a part that a launch has used, unless it is known.
    pub(crate) fn remember_part(
        &mut self,
        location: Location,
        part: &PartUse<'_>,
        region: &Region,
        len_bytes: u64,
    ) {
        let uses = &self.device_copy(location).uses;
        let Some(boxes) = uses.find(region) else { return };
        let parts_max = PARTS_MIN.max(PARTS_PER_BOX * uses.box_count());
        let known = self.cold().known_parts.get_or_insert_default();
        if known.find(part).is_none() {
            known.insert(part, *region, len_bytes, boxes, parts_max);
        }
    }

    /// Looks at a part for a launch on `stream`, if it is known, and if its elements are on the
    /// stream's device, in memory that is allocated as a whole.
    #[inline]
    pub(crate) fn find_known(&self, part: &PartUse<'_>, stream: &Stream) -> Option<KnownAcquire> {
        let (location, key) = (self.find_location(stream.device_ref())?, self.find_key(stream)?);
        let known = self.cold.as_deref()?.known_parts.as_deref()?;
        let id = known.find(part)?;
        let region = &known.get(id)?.region;
        let is_off = remembered_parts::setting() == Remember::Never;
        if is_off || self.device_copies.iter().any(DeviceCopy::has_pages) {
            return None;
        }
        let address = self.device_copies.get(location.index().checked_sub(1)?)?.address()?;
        if part.access != Access::Overwrite && !self.coherence.is_valid(location, region) {
            return None;
        }
        Some(KnownAcquire { id, address, location, key })
    }

    /// The uses with which an `access` conflicts of a part that [`find_known`](Self::find_known)
    /// has just returned. Adds to `depends` the work that wrote the elements to read and may fail
    /// although the launch does not.
    #[inline]
    pub(crate) fn conflicts_of_known(
        &mut self,
        known: &KnownAcquire,
        access: Access,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> LastUses {
        let mut uses = LastUses::of(access, known.key);
        let Self { device_copies, streams, cold, .. } = self;
        let parts = cold.as_deref().and_then(|cold| cold.known_parts.as_deref());
        let Some(part) = parts.and_then(|parts| parts.get(known.id)) else { return uses };
        let Some(copy) = device_copies.get_mut(known.location.index().wrapping_sub(1)) else {
            return uses;
        };
        copy.uses.visit_known_conflicts(&part.region, part.boxes, access, known.key, |mark| {
            uses.add(streams, stream, mark, depends);
        });
        uses
    }

    /// Records a use of a part that [`find_known`](Self::find_known) returned, if only the uses
    /// change. Returns the bytes of the part. Otherwise changes nothing and returns `None`.
    #[inline]
    pub(crate) fn record_known(
        &mut self,
        memory_order: &MemoryOrder,
        id: PartId,
        access: Access,
        end: PartUseEnd<'_>,
    ) -> Option<u64> {
        let PartUseEnd { stream, position, number } = end;
        let (location, key) = (self.find_location(stream.device_ref())?, self.find_key(stream)?);
        let Self { coherence, device_copies, cold, .. } = self;
        let part = cold.as_deref_mut()?.known_parts.as_deref_mut()?.get_mut(id)?;
        let copy = device_copies.get_mut(location.index().checked_sub(1)?)?;
        if copy.has_pages() || access.writes() && !is_only_at(coherence, location, &part.region) {
            return None;
        }
        let mark = mark_of(key, access, position);
        let extents = memory_order.extents();
        copy.uses.record_known(extents, &part.region, &mut part.boxes, access, mark);
        copy.last_use = number;
        let (len_bytes, is_overgrown) = (part.len_bytes, copy.uses.is_overgrown());
        if is_overgrown {
            self.retire_uses(location);
        }
        Some(len_bytes)
    }
}

/// What launches of one stream on parts do while its summary says that nothing else uses the array
/// (`storage/sole_use.rs`): they leave their marks in the table of parts.
impl ArrayState {
    /// Whether [`summarise`](crate::storage::StateGuard::summarise_parts) may let launches on parts
    /// leave their marks in the table: whether all uses of the copy at `location`, which is
    /// allocated as a whole, are on one stream.
    #[inline]
    pub(in crate::storage) fn is_used_by_one(
        &mut self,
        location: Location,
        key: StreamKey,
    ) -> bool {
        self.device_copy_mut(location).uses.are_only_on(key)
            && !self.device_copies.iter().any(DeviceCopy::has_pages)
    }

    /// A part that launches used again.
    #[inline]
    pub(in crate::storage) fn find_part(&self, part: &PartUse<'_>) -> Option<PartId> {
        let known = self.cold.as_deref()?.known_parts.as_deref()?;
        if remembered_parts::setting() == Remember::Never { None } else { known.find(part) }
    }

    /// Leaves the mark of a use of a part, until [`settle_parts`](Self::settle_parts). Returns the
    /// bytes of the part, or `None` if it has been forgotten.
    #[inline]
    pub(in crate::storage) fn leave_mark(&mut self, id: PartId, position: Position) -> Option<u64> {
        self.cold.as_deref_mut()?.known_parts.as_deref_mut()?.leave_mark(id, position)
    }

    /// Moves the marks that launches have left to the uses at `location`, and returns the bytes of
    /// these launches' parts.
    ///
    /// Of several uses of a part only the last left a mark. This changes nothing: it replaces the
    /// earlier ones, since all are of the same elements and on one stream.
    pub(in crate::storage) fn settle_parts(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        key: StreamKey,
    ) -> u64 {
        let Self { device_copies, cold, .. } = self;
        let known = cold.as_deref_mut().and_then(|cold| cold.known_parts.as_deref_mut());
        let Some(known) = known else { return 0 };
        let Some(copy) = device_copies.get_mut(location.index().wrapping_sub(1)) else { return 0 };
        let extents = memory_order.extents();
        let bytes = known.take_marks(|part, access, position| {
            let mark = mark_of(key, access, position);
            copy.uses.record_known(extents, &part.region, &mut part.boxes, access, mark);
        });
        if copy.uses.is_overgrown() {
            self.retire_uses(location);
        }
        bytes
    }
}

impl DeviceCopy {
    /// Whether the copy has memory by pages.
    #[inline]
    fn has_pages(&self) -> bool {
        self.reserved.is_some()
    }
}

fn mark_of(key: StreamKey, access: Access, position: Position) -> Mark {
    if access.writes() {
        Mark::write(key, position)
    } else {
        Mark::lossless(key, UseEnd::at(position))
    }
}

/// Whether `location` is the only source of all elements of the region.
#[inline]
fn is_only_at(coherence: &Coherence, location: Location, region: &Region) -> bool {
    match coherence.uniform() {
        Some(content) => content.is_only_at(location),
        None => coherence.is_only_at(location, region),
    }
}
