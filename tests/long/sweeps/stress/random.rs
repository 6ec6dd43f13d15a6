//! Random numbers, regions and tables.

use resident::ndarray::{Array2, Axis, Ix2, Slice, SliceInfo, SliceInfoElem, s};

/// A region of a table: a range with a step, also a negative one, of each axis.
pub(super) type Region = SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>;

/// A generator of numbers.
pub(super) struct Random(support::random::Random);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(support::random::Random::new(seed))
    }

    /// A number from 0 to `limit - 1`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    /// The value of an element.
    pub(super) fn value(&mut self) -> u32 {
        self.below(1000) as u32
    }

    pub(super) fn happens_once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// The region of at least one element of a table.
    pub(super) fn region(&mut self, shape: &[usize]) -> Region {
        let (rows, columns) = (self.range(shape[0]), self.range(shape[1]));
        s![rows, columns]
    }

    fn range(&mut self, len: usize) -> Slice {
        if self.happens_once_in(3) {
            return Slice::from(..);
        }
        let start = self.below(len);
        let end = start + 1 + self.below(len - start);
        Slice::from(start..end).step_by(*self.one_of(&[1, 1, 2, 3, -1, -2]))
    }

    /// A table without gaps, by rows or by columns, of which an axis may be reversed.
    pub(super) fn table(&mut self) -> Array2<u32> {
        let (shape, first) = ((1 + self.below(19), 1 + self.below(19)), self.value());
        let table =
            Array2::from_shape_fn(shape, |(row, column)| first + (row * 100 + column) as u32);
        let mut table = if self.happens_once_in(2) { table.reversed_axes() } else { table };
        if self.happens_once_in(3) {
            table.invert_axis(Axis(self.below(2)));
        }
        table
    }
}
