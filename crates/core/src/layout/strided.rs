//! A view of an array's memory by shape, strides and offset, and the arithmetic of strides.

use smallvec::SmallVec;

/// A view: shape, strides and the offset of the element with index 0, 0, ..., in elements.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    pub shape: &'a [usize],
    pub strides: &'a [isize],
    pub offset: usize,
}

/// A view with its own shape and strides.
#[derive(Clone, Debug)]
pub struct OwnView {
    pub(super) shape: SmallVec<[usize; 4]>,
    pub(super) strides: SmallVec<[isize; 4]>,
    pub(super) offset: usize,
}

impl OwnView {
    #[inline]
    pub fn strided(&self) -> Strided<'_> {
        Strided { shape: &self.shape, strides: &self.strides, offset: self.offset }
    }
}

impl Strided<'_> {
    pub fn to_own(self) -> OwnView {
        OwnView {
            shape: SmallVec::from_slice(self.shape),
            strides: SmallVec::from_slice(self.strides),
            offset: self.offset,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    #[inline]
    pub fn len(&self) -> u64 {
        self.shape.iter().map(|len| *len as u64).product()
    }

    /// The number of elements in memory: along a repeated axis, whose stride is 0, there is one.
    #[inline]
    pub fn distinct_len(&self) -> u64 {
        let distinct = |(len, stride)| if is_repeated(len, stride) { 1 } else { len as u64 };
        self.axes().map(distinct).product()
    }

    /// The offset of the element with the lowest address; the view's offset if the view is empty.
    #[inline]
    pub fn lowest(&self) -> u64 {
        self.offset as u64 - self.below_first()
    }

    /// The number of elements from the lowest address to the element with index 0, 0, ...
    #[inline]
    pub fn below_first(&self) -> u64 {
        below_first(self.axes().map(|(len, stride)| (len as u64, stride as i64)))
    }

    /// The same memory as a view of bytes, whose last axis is the bytes of an element.
    pub fn in_bytes(&self, element_bytes: u32) -> OwnView {
        let len_bytes = element_bytes as usize;
        let shape = self.shape.iter().copied().chain([len_bytes]).collect();
        // The stride of a single index has no meaning, and the product may overflow.
        let axes = self.axes().map(|(len, stride)| if len > 1 { stride } else { 0 });
        let strides = axes.map(|stride| stride * len_bytes as isize).chain([1]).collect();
        OwnView { shape, strides, offset: self.offset * len_bytes }
    }

    /// One of `count` equal parts of each element, in parts.
    pub fn part_of_each(&self, count: usize, index: usize) -> OwnView {
        let OwnView { mut shape, mut strides, offset } = self.in_bytes(count as u32);
        shape.pop();
        strides.pop();
        OwnView { shape, strides, offset: offset + index }
    }

    /// Whether the indices of an axis descend in memory. False in an empty view.
    #[inline]
    pub fn is_reversed(&self, axis: usize) -> bool {
        self.strides[axis] < 0 && self.shape[axis] > 1 && !self.shape.contains(&0)
    }

    /// The offset of the element at `index`.
    pub fn offset_at(&self, index: impl Iterator<Item = usize>) -> usize {
        let along = self.strides.iter().zip(index).map(|(stride, index)| stride * index as isize);
        (self.offset as isize + along.sum::<isize>()) as usize
    }

    /// Whether the elements lie row by row without gaps. Axes of length 1 are ignored.
    #[inline]
    pub fn is_c_contiguous(&self) -> bool {
        if let ([len], [stride]) = (self.shape, self.strides) {
            return *stride == 1 || *len <= 1;
        }
        are_contiguous(self.axes().rev())
    }

    /// Whether the elements lie column by column without gaps. Axes of length 1 are ignored.
    #[inline]
    pub fn is_f_contiguous(&self) -> bool {
        are_contiguous(self.axes())
    }

    /// Whether the elements lie without gaps, in any order of the axes and in any direction.
    pub fn is_contiguous(&self) -> bool {
        self.is_contiguous_along(&self.axes_by_stride())
    }

    /// Like [`is_contiguous`](Self::is_contiguous), for axes that
    /// [`axes_by_stride`](Self::axes_by_stride) returned.
    pub(super) fn is_contiguous_along(&self, axes: &[usize]) -> bool {
        let ascending = |axis: &usize| (self.shape[*axis], self.strides[*axis].saturating_abs());
        are_contiguous(axes.iter().rev().map(ascending))
    }

    /// The axes whose length is not 1, slowest first.
    pub fn axes_by_stride(&self) -> SmallVec<[usize; 6]> {
        let mut axes: SmallVec<[usize; 6]> =
            (0..self.shape.len()).filter(|axis| self.shape[*axis] != 1).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse(self.strides[*axis].unsigned_abs()));
        axes
    }

    #[inline]
    fn axes(&self) -> impl DoubleEndedIterator<Item = (usize, isize)> {
        self.shape.iter().copied().zip(self.strides.iter().copied())
    }
}

/// Whether one element stands for a whole axis, as in a broadcast view.
#[inline]
pub fn is_repeated(len: usize, stride: isize) -> bool {
    stride == 0 && len > 1
}

/// The distance from the lowest element of a view to its first element, saturating, given (length,
/// stride) of each axis. It is positive if an axis is reversed.
#[inline]
pub(super) fn below_first(axes: impl Iterator<Item = (u64, i64)>) -> u64 {
    let mut below = 0_u64;
    for (len, stride) in axes {
        if len == 0 {
            return 0;
        }
        if stride < 0 {
            below = below.saturating_add((len - 1).saturating_mul(stride.unsigned_abs()));
        }
    }
    below
}

/// Whether axes with these (length, stride), fastest first, leave no gap: each stride must be the
/// product of the preceding lengths. A view without elements has no gap.
#[inline]
fn are_contiguous(axes: impl Iterator<Item = (usize, isize)>) -> bool {
    let (mut expected, mut has_gap) = (1, false);
    for (len, stride) in axes {
        if len == 0 {
            return true;
        }
        if len != 1 {
            has_gap |= stride != expected;
            expected *= len as isize;
        }
    }
    !has_gap
}

/// The strides of packed memory with these counts along its axes, slowest first, where the stride
/// of the fastest axis is `run`.
pub(super) fn packed_strides(
    counts: impl DoubleEndedIterator<Item = u64>,
    run: u64,
) -> SmallVec<[u64; 4]> {
    let mut strides = SmallVec::new();
    let mut stride = run;
    for count in counts.rev() {
        strides.push(stride);
        stride *= count;
    }
    strides.reverse();
    strides
}

#[cfg(test)]
mod tests {
    use super::{Strided, packed_strides};

    fn view<'a>(shape: &'a [usize], strides: &'a [isize], offset: usize) -> Strided<'a> {
        Strided { shape, strides, offset }
    }

    #[test]
    fn the_lowest_element_lies_below_the_first_along_reversed_axes() {
        assert_eq!(view(&[2, 3], &[3, 1], 4).lowest(), 4);
        assert_eq!(view(&[2, 3], &[-3, 1], 3).lowest(), 0);
        assert_eq!(view(&[2, 3], &[-3, -1], 5).lowest(), 0);
        assert_eq!(view(&[1, 3], &[-3, 1], 2).lowest(), 2, "one row has no other end");
        assert_eq!(view(&[2, 0], &[-3, 1], 2).lowest(), 2, "no elements");
    }

    #[test]
    fn contiguity_ignores_axes_of_length_1_and_empty_views() {
        assert!(view(&[2, 1, 3], &[3, 77, 1], 0).is_c_contiguous());
        assert!(view(&[2, 1, 3], &[1, -7, 2], 0).is_f_contiguous());
        assert!(view(&[2, 0], &[50, 50], 0).is_c_contiguous());
        assert!(!view(&[2, 3], &[4, 1], 0).is_contiguous());
        assert!(!view(&[2, 3], &[3, -1], 2).is_c_contiguous());
        assert!(view(&[2, 3], &[-1, 2], 1).is_contiguous(), "reversed, and columns first");
    }

    #[test]
    fn packed_strides_are_products_of_the_faster_counts() {
        assert_eq!(packed_strides([2, 3, 4].into_iter(), 8).as_slice(), [96, 32, 8]);
    }
}
