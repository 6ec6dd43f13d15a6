//! The arrays that a launch passes: where their elements are, and which element an address is.

use std::ops::Range;

use resident_backend::{Footprint, ParameterLayout};
use resident_core::Access;

/// One array of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ArrayOfLaunch {
    /// Its position among the parameters of the compiled kernel.
    pub(super) parameter: usize,
    pub(super) access: Access,
    pub(super) element_bytes: usize,
    /// The address of the element with index 0, 0, ...
    origin: usize,
    pub(super) shape: Vec<u64>,
    /// In elements.
    strides: Vec<i64>,
    footprint: Footprint,
    /// The address of the footprint's offset 0.
    start: usize,
}

impl ArrayOfLaunch {
    /// The arrays of a launch, from its words and pointers.
    pub(super) fn all(
        parameters: &[ParameterLayout],
        words: &[u64],
        pointers: &[*mut u8],
    ) -> Vec<Self> {
        let (mut arrays, mut rest) = (Vec::with_capacity(pointers.len()), words);
        for (index, parameter) in parameters.iter().enumerate() {
            let first = rest.first().copied().unwrap_or_default();
            let (own, behind) = rest.split_at(parameter.words(first).min(rest.len()));
            rest = behind;
            if let Some(access) = parameter.access()
                && let Some(pointer) = pointers.get(arrays.len())
            {
                let element_bytes = parameter.element().len_bytes;
                let origin = pointer.addr();
                let (shape, strides) = axes(parameter, own);
                arrays.push(Self::new(index, access, element_bytes, origin, shape, strides));
            }
        }
        arrays
    }

    pub(super) fn new(
        parameter: usize,
        access: Access,
        element_bytes: usize,
        origin: usize,
        shape: Vec<u64>,
        strides: Vec<i64>,
    ) -> Self {
        let element = element_bytes as u64;
        let words: Vec<u64> = strides.iter().map(|stride: &i64| *stride as u64).collect();
        // The footprint starts below the origin if strides are negative.
        let below = shape.iter().zip(&strides).fold(0_u64, |below, (count, stride)| {
            below + stride.min(&0).unsigned_abs() * count.saturating_sub(1)
        });
        let footprint = Footprint::of_view(below * element, element, &shape, &words);
        let start = origin.wrapping_sub((below * element) as usize);
        Self { parameter, access, element_bytes, origin, shape, strides, footprint, start }
    }

    /// The addresses from the lowest to the highest byte.
    pub(super) fn range(&self) -> Range<usize> {
        let end_bytes = self.footprint.end_bytes().unwrap_or_default() as usize;
        let offset_bytes = (self.footprint.offset_bytes as usize).min(end_bytes);
        self.start + offset_bytes..self.start + end_bytes
    }

    /// Whether the element with index 0, 0, ... is at this address.
    pub(super) fn starts_at(&self, address: usize) -> bool {
        self.origin == address
    }

    /// The bytes of its elements.
    pub(super) fn len_bytes(&self) -> usize {
        self.footprint.len_bytes() as usize
    }

    /// Whether all bytes of the range are those of elements.
    pub(super) fn has_no_gap(&self) -> bool {
        self.len_bytes() == self.range().len()
    }

    /// Calls `visit` with the address and the length of each contiguous part.
    pub(super) fn for_each_run(&self, visit: &mut impl FnMut(usize, usize)) {
        self.footprint.for_each_run(&mut |offset, len_bytes| {
            visit(self.start + offset as usize, len_bytes as usize);
        });
    }

    /// The first byte of a range that is one of an element which lies within `within`.
    pub(super) fn first_of_element(
        &self,
        range: &Range<usize>,
        within: &Range<usize>,
    ) -> Option<usize> {
        let bytes = self.element_bytes.max(1);
        let phase = self.origin % bytes;
        let below = |address: usize| address - (address + bytes - phase) % bytes;
        let first = below(within.start + bytes - 1).max(below(range.start));
        (first < range.end && first + bytes <= within.end).then_some(first.max(range.start))
    }

    /// The index of the element at an address. A flat array has indices beyond its ends too.
    pub(super) fn index_of(&self, address: usize) -> Option<Vec<i64>> {
        let bytes = (address as i64).wrapping_sub(self.origin as i64);
        let offset = bytes.div_euclid(self.element_bytes as i64);
        if let ([_], [1]) = (&*self.shape, &*self.strides) {
            return Some(vec![offset]);
        }
        let mut axes: Vec<usize> = (0..self.shape.len()).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(self.strides[*axis].unsigned_abs()));
        let mut index = vec![0; axes.len()];
        self.is_at(offset, &axes, &mut index).then_some(index)
    }

    /// Finds an index with this offset, in elements, along the remaining axes.
    fn is_at(&self, offset: i64, axes: &[usize], index: &mut [i64]) -> bool {
        let Some((&axis, rest)) = axes.split_first() else { return offset == 0 };
        let count = self.shape[axis] as i64;
        let stride = self.strides[axis];
        // Along the remaining axes the offset changes by less than a stride, in most views.
        let middle = if stride == 0 { 0 } else { offset / stride };
        [middle, middle - 1, middle + 1].into_iter().any(|place| {
            index[axis] = place;
            (0..count).contains(&place) && self.is_at(offset - place * stride, rest, index)
        })
    }
}

/// The shape of an array and its strides in elements, from its words.
fn axes(parameter: &ParameterLayout, words: &[u64]) -> (Vec<u64>, Vec<i64>) {
    if let ParameterLayout::Flat { .. } = parameter {
        return (vec![words[0]], vec![1]);
    }
    let (shape, strides) = words[1..].split_at((words.len() - 1) / 2);
    (shape.to_vec(), strides.iter().map(|stride| *stride as i64).collect())
}

#[cfg(test)]
mod tests {
    use super::ArrayOfLaunch;
    use resident_core::Access;

    #[test]
    fn every_element_of_a_strided_view_is_found_at_its_address() {
        for (shape, strides) in
            [([3, 4], [4, 1]), ([3, 4], [1, 3]), ([3, 4], [-20, 2]), ([5, 2], [3, -30])]
        {
            let extents = shape.map(i64::unsigned_abs).to_vec();
            let array = ArrayOfLaunch::new(0, Access::Read, 8, 0x10000, extents, strides.to_vec());
            for row in 0..shape[0] {
                for column in 0..shape[1] {
                    let offset: i64 = row * strides[0] + column * strides[1];
                    let address = (0x10000 + 8 * offset) as usize;
                    assert!(array.range().contains(&address));
                    assert_eq!(array.index_of(address), Some(vec![row, column]));
                    assert_eq!(array.index_of(address + 7), Some(vec![row, column]));
                }
            }
        }
    }

    #[test]
    fn the_runs_of_a_view_are_its_elements() {
        let array = ArrayOfLaunch::new(1, Access::Overwrite, 4, 0x100, vec![3], vec![-2]);
        assert_eq!(array.range(), 0xf0..0x104);
        assert!(!array.has_no_gap());
        let mut runs = Vec::new();
        array.for_each_run(&mut |address, len_bytes| runs.push((address, len_bytes)));
        assert_eq!(runs, [(0xf0, 4), (0xf8, 4), (0x100, 4)]);
        assert_eq!(array.index_of(0xf4), None, "a gap");
        let flat = ArrayOfLaunch::new(0, Access::Read, 4, 0x100, vec![3], vec![1]);
        assert_eq!(flat.index_of(0x10c), Some(vec![3]), "behind the end");
        assert_eq!(flat.index_of(0xfc), Some(vec![-1]));
    }
}
