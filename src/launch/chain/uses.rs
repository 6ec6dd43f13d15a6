//! What the steps of a chain do with its arrays. An array of which steps use parts is cut into
//! pieces, with each of which they do the same: so order, copies and marks are exact by element.

use smallvec::SmallVec;

use super::super::arguments::bound::BoundArray;
use super::part::{Part, PlacedView};
use resident_core::Access;
use resident_core::layout::{Strided, ViewBox};

/// What a replay does with an array, or with a piece of one.
#[derive(Debug)]
pub(super) struct ArrayUse {
    pub(super) parameter: usize,
    pub(super) access: Access,
    /// The last step that writes it; if none does, the last that reads it.
    pub(super) last: usize,
    /// `None` for the whole array.
    pub(super) piece: Option<PlacedView>,
}

impl ArrayUse {
    /// The elements that are used, of the array that a replay gets.
    #[inline]
    pub(super) fn of<'a>(&'a self, array: &BoundArray<'a>) -> BoundArray<'a> {
        let piece = self.piece.as_ref().map_or(*array, |piece| piece.of(array));
        BoundArray { access: self.access, ..piece }
    }

    /// The offset of the array that a replay gets, of which these elements are used.
    #[inline]
    pub(super) fn offset_of_whole(&self, used: &BoundArray<'_>) -> usize {
        let offset = used.view.offset;
        self.piece.as_ref().map_or(offset, |piece| piece.offset_of_whole(offset))
    }
}

/// The pieces of the arrays that the steps so far have used, by parameter.
pub(super) struct Flow(Vec<Pieces>);

/// Disjoint pieces of one array.
#[derive(Clone, Default)]
struct Pieces(Vec<Piece>);

#[derive(Clone)]
struct Piece {
    elements: ViewBox,
    /// What the steps do with it together.
    access: Access,
    last: usize,
    /// The last step that wrote it, and those that have read it since.
    writer: Option<u32>,
    readers: SmallVec<[u32; 4]>,
}

impl Flow {
    pub(super) fn of_parameters(count: usize) -> Self {
        Self(vec![Pieces::default(); count])
    }

    /// Adds a use by the next step. Adds to `after` the earlier steps that it must follow: the last
    /// that wrote an element that it uses, and those that have read one since that it writes.
    /// Different parameters have no bytes in common of which one writes some, since borrows exclude
    /// that. Returns whether earlier steps have written all elements.
    pub(super) fn add(
        &mut self,
        step: usize,
        part: &Part,
        access: Access,
        after: &mut SmallVec<[u32; 4]>,
    ) -> bool {
        if part.is_empty_slice() {
            // It is no piece: acquiring it would find no address.
            return true;
        }
        let mut is_written = true;
        self.0[part.parameter].visit(&part.elements, access, |piece| {
            is_written &= piece.writer.is_some();
            piece.follow(access, step, after);
        });
        is_written
    }

    /// What the steps do with the arrays of these views, which are `None` for scalars. In the order
    /// of the last steps, so that later uses of one array have later positions.
    pub(super) fn uses(self, views: &[Option<Strided<'_>>]) -> Vec<ArrayUse> {
        let mut uses = Vec::new();
        for (parameter, pieces) in self.0.into_iter().enumerate() {
            let Some(view) = &views[parameter] else { continue };
            let whole = view.whole_box();
            uses.extend(pieces.0.into_iter().map(|Piece { elements, access, last, .. }| {
                let is_part = elements != whole;
                let piece = is_part.then(|| PlacedView::new(view.part(&elements), view));
                ArrayUse { parameter, access, last, piece }
            }));
        }
        uses.sort_by_key(|known| known.last);
        uses
    }
}

impl Pieces {
    /// Visits the pieces that together are `part`: cuts known ones that have other elements too,
    /// and makes new ones for the rest.
    fn visit(&mut self, part: &ViewBox, access: Access, mut visit: impl FnMut(&mut Piece)) {
        // Also an empty array is one piece, which is in the audit.
        if let Some(piece) = self.0.iter_mut().find(|piece| piece.elements == *part) {
            return visit(piece);
        }
        let mut rest = vec![part.clone()];
        for index in 0..self.0.len() {
            let Some(common) = self.0[index].elements.intersection(part) else { continue };
            self.cut(index, &common);
            visit(&mut self.0[index]);
            let mut outside = Vec::new();
            for piece in rest {
                match piece.intersection(&common) {
                    Some(inside) => piece.without(&inside, |piece| outside.push(piece)),
                    None => outside.push(piece),
                }
            }
            rest = outside;
        }
        for elements in rest {
            let (writer, readers) = (None, SmallVec::new());
            let mut piece = Piece { elements, access, last: 0, writer, readers };
            visit(&mut piece);
            self.0.push(piece);
        }
    }

    /// Reduces a piece to `kept`. The rest of it becomes other pieces.
    fn cut(&mut self, index: usize, kept: &ViewBox) {
        let piece = self.0[index].clone();
        piece.elements.without(kept, |elements| self.0.push(Piece { elements, ..piece.clone() }));
        self.0[index].elements = kept.clone();
    }
}

impl Piece {
    fn follow(&mut self, access: Access, step: usize, after: &mut SmallVec<[u32; 4]>) {
        if access.writes() || !self.access.writes() {
            self.last = step;
        }
        // What is overwritten first needs no contents.
        if access.writes() && self.access == Access::Read {
            self.access = Access::ReadWrite;
        }
        if !access.writes() {
            after.extend(self.writer);
            self.readers.push(step as u32);
            return;
        }
        if self.readers.is_empty() {
            after.extend(self.writer);
        }
        after.extend(self.readers.drain(..));
        self.writer = Some(step as u32);
    }
}

#[cfg(test)]
mod tests {
    use ndarray::s;
    use smallvec::SmallVec;

    use super::super::part::PartOf;
    use super::{ArrayUse, Flow};
    use resident_core::Access::{self, Overwrite, Read, ReadWrite};
    use resident_core::layout::Strided;

    /// A row of ten elements.
    const VIEW: Strided<'static> = Strided { shape: &[10], strides: &[1], offset: 0 };

    fn all(parameter: usize) -> PartOf {
        PartOf::whole(parameter)
    }

    fn range(parameter: usize, range: std::ops::Range<isize>) -> PartOf {
        PartOf { parameter, slice: s![range].as_ref().iter().copied().collect() }
    }

    /// What the steps do with each piece, and which steps each follows.
    fn flow(steps: &[&[(PartOf, Access)]]) -> (Vec<ArrayUse>, Vec<Vec<u32>>) {
        let mut flow = Flow::of_parameters(4);
        let order = steps.iter().enumerate().map(|(step, uses)| {
            let mut after = SmallVec::new();
            for (part, access) in *uses {
                flow.add(step, &part.within(Some(&VIEW)).unwrap(), *access, &mut after);
            }
            after.sort_unstable();
            after.dedup();
            after.to_vec()
        });
        let order = order.collect();
        (flow.uses(&[Some(VIEW); 4]), order)
    }

    #[test]
    fn uses_of_all_steps() {
        let (mut uses, _) = flow(&[
            &[(all(0), Read), (all(2), Overwrite)],
            &[(all(2), Read), (all(1), ReadWrite)],
            &[(all(1), Read), (all(0), Read)],
            &[(all(3), Read)],
            &[(all(3), Overwrite)],
            &[(all(3), Read)],
        ]);
        assert!(uses.is_sorted_by_key(|known| known.last));
        uses.sort_by_key(|known| known.parameter);
        let found: Vec<_> =
            uses.iter().map(|known| (known.parameter, known.access, known.last)).collect();
        assert_eq!(found, [(0, Read, 2), (1, ReadWrite, 1), (2, Overwrite, 0), (3, ReadWrite, 4)]);
        assert!(uses.iter().all(|known| known.piece.is_none()));
    }

    #[test]
    fn steps_follow_those_with_which_they_conflict() {
        let (_, order) = flow(&[
            &[(all(0), Overwrite)],
            &[(all(0), Read), (all(1), Overwrite)],
            &[(all(0), Read), (all(2), Overwrite)],
            &[(all(0), ReadWrite)],
            &[(all(0), Overwrite), (all(1), Read)],
            &[(all(3), Read)],
        ]);
        let expected: [&[u32]; 6] = [&[], &[0], &[0], &[1, 2], &[1, 3], &[]];
        assert_eq!(order, expected);
    }

    #[test]
    fn pieces_have_the_uses_of_the_parts_that_cover_them() {
        let (mut uses, order) = flow(&[
            &[(range(0, 0..4), Overwrite)],
            &[(range(0, 6..8), Overwrite)],
            &[(range(0, 2..7), Read)],
            &[(range(0, 7..9), Overwrite)],
            &[(range(0, 8..9), Read), (range(0, 0..2), ReadWrite)],
        ]);
        let expected: [&[u32]; 5] = [&[], &[], &[0, 1], &[1], &[0, 3]];
        assert_eq!(order, expected);
        let start = |known: &ArrayUse| known.piece.as_ref().unwrap().range();
        uses.sort_by_key(|known| start(known).start);
        let found: Vec<_> =
            uses.iter().map(|known| (start(known), known.access, known.last)).collect();
        let expected = [
            (0..2, Overwrite, 4),
            (2..4, Overwrite, 0),
            (4..6, Read, 2),
            (6..7, Overwrite, 1),
            (7..8, Overwrite, 3),
            (8..9, Overwrite, 3),
        ];
        assert_eq!(found, expected);
    }
}
