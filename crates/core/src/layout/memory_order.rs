//! The order of an array's elements in memory.

use std::ops::Range;

use smallvec::SmallVec;

use super::Strided;
use crate::coherence::{AXES_MAX, Region, Span};

/// The index space of an array's memory: the axes of the array sorted by stride, slowest first,
/// with reversed axes inverted and axes of length 1 left out.
///
/// Every copy of an array has this order without gaps, so that a region means the same bytes in
/// every copy. If there are more than six axes, the slowest are combined into one axis.
///
/// The unit of the index space is an element, or a byte: see [`divided`](Self::divided).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryOrder {
    extents: SmallVec<[u64; 3]>,
    len_bytes: u64,
    unit_bytes: u32,
    element_bytes: u32,
}

impl MemoryOrder {
    /// The memory order of an array with this shape and these strides, and the offset in elements
    /// of its first element from the start of memory. `None` if its memory has gaps or overlaps.
    pub fn of(shape: &[usize], strides: &[isize], element_bytes: u32) -> Option<(Self, usize)> {
        let view = Strided { shape, strides, offset: 0 };
        // Most arrays are row-major, and then nothing has to be sorted.
        if shape.len() <= AXES_MAX && view.is_c_contiguous() {
            let (mut extents, mut len) = (SmallVec::new(), 1);
            for extent in shape.iter().map(|len| *len as u64).filter(|len| *len != 1) {
                extents.push(extent);
                len *= extent;
            }
            if len > 0 {
                return Some((Self::of_units(extents, len, element_bytes), 0));
            }
        }
        if view.is_empty() {
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
        let len = extents.iter().fold(1, |len: u64, extent| len.saturating_mul(*extent));
        Self::of_units(extents, len, element_bytes)
    }

    #[inline]
    fn of_units(extents: SmallVec<[u64; 3]>, len: u64, unit_bytes: u32) -> Self {
        // Callers check later that the array is not too large.
        let len_bytes = len.saturating_mul(u64::from(unit_bytes));
        Self { extents, len_bytes, unit_bytes, element_bytes: unit_bytes }
    }

    /// The memory order of an array of records, in bytes: it has another fastest axis, the bytes of
    /// an element, so that a region can be a field of each record.
    pub fn divided(self) -> Self {
        let Self { mut extents, element_bytes, .. } = self;
        if element_bytes <= 1 {
            return Self { extents, ..self };
        }
        extents.push(u64::from(element_bytes));
        Self { element_bytes, ..Self::flattened(extents, 1) }
    }

    /// Whether the last axis is the bytes of an element.
    #[inline]
    pub fn is_divided(&self) -> bool {
        self.unit_bytes != self.element_bytes
    }

    #[inline]
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// The extents without the axis of an element's bytes.
    #[inline]
    pub fn element_extents(&self) -> &[u64] {
        &self.extents[..self.extents.len() - usize::from(self.is_divided())]
    }

    /// The bytes of an element, as indices of the last axis.
    #[inline]
    pub fn byte_axis(&self) -> Span {
        Span::full(u64::from(self.element_bytes))
    }

    /// The size of an index of the index space.
    #[inline]
    pub fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }

    /// The number of indices of the index space.
    #[inline]
    pub fn len(&self) -> u64 {
        self.extents.iter().product()
    }

    /// The number of elements.
    #[inline]
    pub fn elements(&self) -> u64 {
        self.element_extents().iter().product()
    }

    #[inline]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Whether the array has no bytes. Such arrays never reach a device.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    #[inline]
    pub fn whole(&self) -> Region {
        Region::whole(&self.extents)
    }

    /// The number of bytes in a region.
    #[inline]
    pub fn region_bytes(&self, region: &Region) -> u64 {
        region.len() * u64::from(self.unit_bytes)
    }

    /// The bytes of an element that are in a region, which are one range.
    #[inline]
    pub fn element_range(&self, region: &Region) -> Range<usize> {
        if !self.is_divided() {
            return 0..self.element_bytes as usize;
        }
        let span = region.span(region.axes() - 1);
        span.start() as usize..span.end() as usize
    }

    /// The parts of a region in each of which the bytes of an element are one range.
    pub fn unbroken(&self, region: &Region) -> SmallVec<[Region; 1]> {
        let axis = region.axes().saturating_sub(1);
        let span = region.span(axis);
        if !self.is_divided() || span.step() == 1 {
            return SmallVec::from_buf([*region]);
        }
        let bytes = (0..span.len()).map(|index| span.start() + index * span.step());
        bytes.map(|byte| region.with_span(axis, Span::single(byte))).collect()
    }

    /// The index of the unit at an offset in units.
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
    use super::{MemoryOrder, Span};

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

    #[test]
    fn records_have_an_axis_of_bytes() {
        let (memory_order, _) = MemoryOrder::of(&[2, 1, 3], &[3, 3, 1], 12).expect("contiguous");
        let whole = memory_order.clone();
        let divided = memory_order.divided();
        assert_eq!((divided.extents(), divided.element_extents()), (&[2, 3, 12][..], &[2, 3][..]));
        assert_eq!((divided.len_bytes(), divided.elements()), (whole.len_bytes(), 6));
        assert_eq!(divided.region_bytes(&divided.whole()), 72);
        let all = divided.footprint(&divided.whole());
        assert_eq!((all.run_bytes, all.axes.len()), (72, 0));
        let field = divided.whole().with_span(2, Span::new(4, 8, 1));
        assert_eq!((divided.element_range(&field), divided.region_bytes(&field)), (4..8, 24));
        let (bytes, _) = MemoryOrder::of(&[5], &[1], 1).expect("contiguous");
        assert!(!bytes.clone().divided().is_divided(), "a byte has no parts");
        let (many, _) = MemoryOrder::of(&[2; 6], &[32, 16, 8, 4, 2, 1], 4).expect("contiguous");
        assert_eq!(many.divided().extents(), [4, 2, 2, 2, 2, 4]);
    }

    #[test]
    fn fields_that_are_not_neighbours_are_parts_of_their_own() {
        let (memory_order, _) = MemoryOrder::of(&[7], &[1], 6).expect("contiguous");
        let bytes = Span::new(1, 6, 2);
        let region = memory_order.whole();
        assert_eq!(memory_order.unbroken(&region).as_slice(), [region], "numbers have no parts");
        let divided = memory_order.divided();
        let region = divided.whole().with_span(1, bytes);
        let ranges: Vec<_> =
            divided.unbroken(&region).iter().map(|part| divided.element_range(part)).collect();
        assert_eq!(ranges, [1..2, 3..4, 5..6]);
    }
}
