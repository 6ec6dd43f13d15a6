//! The parts of an array that launches use again and again: which elements the view of a launch
//! has, and which boxes their uses have. A launch on such a part makes no selection and looks for
//! no box.
//!
//! This is no second state: the uses, the contents and the memory are looked at by each launch. A
//! box that was removed or replaced since is noticed (`ordering::Known`), and looked for again. So
//! nothing needs to be forgotten when other accesses change the array.

use super::part_table::{KnownPart, PartId, PartUse};
use super::streams::is_retired;
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
    /// Whether only the stream itself has conflicting uses.
    pub(crate) is_ready: bool,
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
    /// stream's device, in memory that is allocated as a whole. Adds to `depends` the work on the
    /// stream itself that wrote the elements to read and may still fail.
    #[inline]
    pub(crate) fn find_known(
        &mut self,
        part: &PartUse<'_>,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> Option<KnownAcquire> {
        let (location, key) = (self.find_location(stream.device_ref())?, self.find_key(stream)?);
        let Self { coherence, device_copies, streams, cold, .. } = self;
        let known = cold.as_deref()?.known_parts.as_deref()?;
        let (id, access) = (known.find(part)?, part.access);
        let KnownPart { region, boxes, .. } = known.get(id)?;
        let is_off = remembered_parts::setting() == Remember::Never;
        if is_off || device_copies.iter().any(DeviceCopy::has_pages) {
            return None;
        }
        let copy = device_copies.get_mut(location.index().checked_sub(1)?)?;
        let address = copy.address()?;
        if access != Access::Overwrite && !coherence.is_valid(location, region) {
            return None;
        }
        let is_ready = copy.uses.known_conflicts_only_with(region, *boxes, access, key, |writer| {
            if access != Access::Overwrite && writer.stream == key {
                add_own_writer(depends, stream, writer, |writer| is_retired(streams, writer));
            }
        });
        Some(KnownAcquire { id, address, location, key, is_ready })
    }

    /// Visits the uses for which an `access` of a part that [`find_known`](Self::find_known) has
    /// just returned must wait, as [`Uses::visit_conflicts`] does.
    pub(crate) fn visit_conflicts_of_known(
        &self,
        known: &KnownAcquire,
        access: Access,
        visit: impl FnMut(Mark),
    ) {
        let parts = self.cold.as_deref().and_then(|cold| cold.known_parts.as_deref());
        let part = parts.and_then(|parts| parts.get(known.id));
        let Some(KnownPart { region, boxes, .. }) = part else { return };
        let is_other = |mark: Mark| mark.stream != known.key;
        self.uses(known.location).visit_known_conflicts(region, *boxes, access, is_other, visit);
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
