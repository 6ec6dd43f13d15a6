//! The order of an array's elements in memory.

use smallvec::SmallVec;

use super::Strided;
use crate::coherence::{AXES_MAX, Region};

/// The index space of an array's memory: the axes of the array sorted by stride, slowest first,
/// with reversed axes inverted and axes of length 1 left out.
///
/// Every copy of an array has this order without gaps, so that a region means the same bytes in
/// every copy. If there are more than six axes, the slowest are combined into one axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MemoryOrder {
    extents: SmallVec<[u64; 3]>,
    /// The product of the extents.
    len: u64,
    element_bytes: u32,
}

impl MemoryOrder {
    /// The memory order of an array with this shape and these strides, and the offset in elements
    /// of its first element from the start of memory. `None` if its memory has gaps or overlaps.
    pub(crate) fn of(
        shape: &[usize],
        strides: &[isize],
        element_bytes: u32,
    ) -> Option<(Self, usize)> {
        let view = Strided { shape, strides, offset: 0 };
        // Most arrays are row-major, and then nothing has to be sorted.
        if shape.len() <= AXES_MAX && view.is_c_contiguous() {
            let (mut extents, mut len) = (SmallVec::new(), 1);
            for extent in shape.iter().map(|len| *len as u64).filter(|len| *len != 1) {
                extents.push(extent);
                len *= extent;
            }
            if len > 0 {
                return Some((Self { extents, len, element_bytes }, 0));
            }
        }
        if view.len() == 0 {
            return Some((Self::flattened(SmallVec::from_slice(&[0]), element_bytes), 0));
        }
        let axes = view.axes_by_stride();
        view.is_contiguous_along(&axes).then(|| {
            let extents = axes.iter().map(|axis| shape[*axis] as u64).collect();
            (Self::flattened(extents, element_bytes), view.below_first() as usize)
        })
    }

    fn flattened(mut extents: SmallVec<[u64; 3]>, element_bytes: u32) -> Self {
        while extents.len() > AXES_MAX {
            let slowest = extents.remove(0);
            extents[0] *= slowest;
        }
        let len = extents.iter().product();
        Self { extents, len, element_bytes }
    }

    #[inline]
    pub(crate) fn extents(&self) -> &[u64] {
        &self.extents
    }

    pub(crate) fn element_bytes(&self) -> usize {
        self.element_bytes as usize
    }

    /// The number of elements.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len * u64::from(self.element_bytes)
    }

    /// Whether the array has no bytes. Such arrays never reach a device.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.element_bytes == 0 || self.len == 0
    }

    pub(crate) fn whole(&self) -> Region {
        Region::whole(&self.extents)
    }

    /// The number of bytes in a region.
    pub(crate) fn region_bytes(&self, region: &Region) -> u64 {
        region.len() * u64::from(self.element_bytes)
    }

    /// The index of the element at an offset in elements.
    pub(super) fn index_of(&self, mut offset: u64) -> SmallVec<[u64; AXES_MAX]> {
        let mut index: SmallVec<[u64; AXES_MAX]> = SmallVec::new();
        for extent in self.extents.iter().rev() {
            index.push(offset % extent);
            offset /= extent;
        }
        index.reverse();
        index
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryOrder;

    #[test]
    fn any_axis_order_and_direction_is_accepted_without_gaps() {
        let (memory_order, offset) =
            MemoryOrder::of(&[2, 3, 4], &[1, -8, 2], 4).expect("contiguous");
        assert_eq!(memory_order.extents(), [3, 4, 2]);
        assert_eq!(offset, 16);
        assert!(MemoryOrder::of(&[2, 3], &[4, 1], 4).is_none(), "gaps");
        assert!(MemoryOrder::of(&[2, 3], &[0, 1], 4).is_none(), "overlaps");
    }

    #[test]
    fn axes_of_length_1_have_any_stride() {
        let (memory_order, offset) =
            MemoryOrder::of(&[1, 5, 1], &[77, 1, -3], 1).expect("contiguous");
        assert_eq!((memory_order.extents(), offset), (&[5][..], 0));
    }
}
