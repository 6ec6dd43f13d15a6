//! The table of the parts of an array that launches use again and again: by their views, and
//! whether they are written.

use hashbrown::HashTable;

use resident_backend::Position;
use resident_core::Access;
use resident_core::coherence::Region;
use resident_core::layout::Strided;
use resident_core::ordering::Known;

/// Views with more axes are not remembered.
const AXES_MAX: usize = 4;

/// The parts of one array. See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct KnownParts {
    indices: HashTable<u32>,
    parts: Vec<KnownPart>,
    /// How often all parts were forgotten.
    generation: u32,
    /// The parts with marks that are not in the uses yet, and the bytes of the launches' parts.
    marked: Vec<u32>,
    marked_bytes: u64,
}

/// A part that launches used, all of them only reading it, or all writing it.
#[derive(Debug)]
pub(super) struct KnownPart {
    view: ViewKey,
    pub(super) region: Region,
    pub(super) len_bytes: u64,
    /// The boxes of its uses, on the device that used it last.
    pub(super) boxes: Known,
    /// The last use that is not in the uses yet; `START` if there is none.
    mark: Position,
}

/// A view of the array, and whether it is written.
#[derive(Debug)]
struct ViewKey {
    offset: usize,
    element_bytes: u32,
    axes: u8,
    is_written: bool,
    shape: [usize; AXES_MAX],
    strides: [isize; AXES_MAX],
}

/// What a launch does with a view of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartUse<'a> {
    pub(crate) view: Strided<'a>,
    pub(crate) element_bytes: u32,
    pub(crate) access: Access,
}

/// A part that is known, until all are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartId {
    index: u32,
    generation: u32,
}

impl ViewKey {
    fn of(part: &PartUse<'_>) -> Option<Self> {
        let PartUse { view, element_bytes, access } = *part;
        let axes = view.shape.len();
        let (mut shape, mut strides) = ([0; AXES_MAX], [0; AXES_MAX]);
        shape.get_mut(..axes)?.copy_from_slice(view.shape);
        strides.get_mut(..axes)?.copy_from_slice(view.strides);
        let (offset, axes, is_written) = (view.offset, axes as u8, access.writes());
        Some(Self { offset, element_bytes, axes, is_written, shape, strides })
    }

    #[inline]
    fn is_of(&self, part: &PartUse<'_>) -> bool {
        let PartUse { view, element_bytes, access } = *part;
        self.offset == view.offset
            && self.element_bytes == element_bytes
            && self.is_written == access.writes()
            && usize::from(self.axes) == view.shape.len()
            && self.shape.iter().zip(view.shape).all(|(own, other)| own == other)
            && self.strides.iter().zip(view.strides).all(|(own, other)| own == other)
    }
}

/// Offsets differ between almost all parts of an array.
#[inline]
fn hash(offset: usize) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (offset as u64).wrapping_mul(MIX);
    mixed ^ mixed >> 32
}

impl KnownParts {
    #[inline]
    pub(super) fn find(&self, part: &PartUse<'_>) -> Option<PartId> {
        let is_this = |index: &u32| self.parts[*index as usize].view.is_of(part);
        let hash = hash(part.view.offset);
        let index = *self.indices.find(hash, is_this)?;
        Some(PartId { index, generation: self.generation })
    }

    #[inline]
    pub(super) fn get(&self, id: PartId) -> Option<&KnownPart> {
        self.parts.get(id.index as usize).filter(|_| id.generation == self.generation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: PartId) -> Option<&mut KnownPart> {
        if id.generation != self.generation {
            return None;
        }
        self.parts.get_mut(id.index as usize)
    }

    /// Leaves the mark of a use of a part, which is the last one. Returns the bytes of the part.
    #[inline]
    pub(super) fn leave_mark(&mut self, id: PartId, position: Position) -> Option<u64> {
        if id.generation != self.generation {
            return None;
        }
        let part = self.parts.get_mut(id.index as usize)?;
        if part.mark == Position::START {
            self.marked.push(id.index);
        }
        part.mark = part.mark.max(position);
        self.marked_bytes += part.len_bytes;
        Some(part.len_bytes)
    }

    /// Calls `record` with each part that has a mark, in the order of the marks, and forgets these.
    /// Returns the bytes of all uses since the last call.
    pub(super) fn take_marks(
        &mut self,
        mut record: impl FnMut(&mut KnownPart, Access, Position),
    ) -> u64 {
        let Self { marked, parts, .. } = self;
        marked.sort_unstable_by_key(|index| parts[*index as usize].mark);
        for index in marked.drain(..) {
            let part = &mut parts[index as usize];
            let access = if part.view.is_written { Access::Overwrite } else { Access::Read };
            let position = std::mem::replace(&mut part.mark, Position::START);
            record(part, access, position);
        }
        std::mem::take(&mut self.marked_bytes)
    }

    /// Adds a part that is not known, unless its view has too many axes. Forgets all others before,
    /// if there are as many as `parts_max`.
    pub(super) fn insert(
        &mut self,
        part: &PartUse<'_>,
        region: Region,
        len_bytes: u64,
        boxes: Known,
        parts_max: usize,
    ) {
        let Some(view) = ViewKey::of(part) else { return };
        if self.parts.len() >= parts_max {
            self.forget_all();
        }
        if self.parts.is_empty() {
            self.parts.reserve_exact(1);
        }
        let Self { indices, parts, .. } = self;
        let (index, own_hash) = (parts.len() as u32, hash(view.offset));
        parts.push(KnownPart { view, region, len_bytes, boxes, mark: Position::START });
        indices.insert_unique(own_hash, index, |index| hash(parts[*index as usize].view.offset));
    }

    fn forget_all(&mut self) {
        let generation = self.generation.wrapping_add(1);
        *self = Self { generation, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Known, KnownParts, PartUse, Position, Region, Strided};
    use resident_core::coherence::Span;

    const SHAPE: [usize; 1] = [2];
    const STRIDES: [isize; 1] = [1];

    fn part(offset: usize, access: Access) -> PartUse<'static> {
        let view = Strided { shape: &SHAPE, strides: &STRIDES, offset };
        PartUse { view, element_bytes: 4, access }
    }

    fn add(parts: &mut KnownParts, part: &PartUse<'_>) {
        let region = Region::new(&[Span::new(part.view.offset as u64, 9, 1)]);
        parts.insert(part, region, 8, Known::default(), 3);
    }

    #[test]
    fn a_part_is_found_by_its_view_and_whether_it_is_written() {
        let mut parts = KnownParts::default();
        let known = part(5, Access::Read);
        add(&mut parts, &known);
        assert!(parts.find(&known).is_some());
        let element = PartUse { element_bytes: 8, ..known };
        let longer = Strided { shape: &[3], ..known.view };
        let apart = Strided { strides: &[2], ..known.view };
        let axes = Strided { shape: &[2, 0], strides: &[1, 0], offset: 5 };
        let views = [longer, apart, axes].map(|view| PartUse { view, ..known });
        let others = [part(5, Access::Overwrite), part(4, Access::Read), element];
        assert!(others.iter().chain(&views).all(|other| parts.find(other).is_none()));
    }

    #[test]
    fn parts_that_are_too_many_are_forgotten_and_their_numbers_lead_nowhere() {
        let mut parts = KnownParts::default();
        (0..3).for_each(|offset| add(&mut parts, &part(offset, Access::Read)));
        let first = parts.find(&part(0, Access::Read)).expect("it is known");
        assert!(parts.get(first).is_some());
        add(&mut parts, &part(3, Access::Read));
        assert!(parts.find(&part(0, Access::Read)).is_none() && parts.parts.len() == 1);
        assert!(parts.get(first).is_none() && parts.get_mut(first).is_none());
    }

    #[test]
    fn the_last_mark_of_each_part_is_taken_once_in_the_order_of_the_marks() {
        let mut parts = KnownParts::default();
        let uses = [part(0, Access::Read), part(1, Access::Overwrite)];
        uses.iter().for_each(|part| add(&mut parts, part));
        let ids = uses.map(|part| parts.find(&part).expect("it is known"));
        for (id, position) in [(ids[0], 1), (ids[1], 2), (ids[0], 3)] {
            assert_eq!(parts.leave_mark(id, Position(position)), Some(8));
        }
        let mut taken = Vec::new();
        let mut take = |parts: &mut KnownParts| {
            parts.take_marks(|_, access, position| taken.push((access, position.0)))
        };
        assert_eq!((take(&mut parts), take(&mut parts)), (24, 0));
        assert_eq!(taken, [(Access::Overwrite, 2), (Access::Read, 3)]);
        parts.forget_all();
        assert_eq!(parts.leave_mark(ids[0], Position(4)), None);
    }
}
