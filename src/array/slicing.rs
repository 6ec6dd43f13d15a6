//! Layouts of slices, by ndarray's rules for `s![..]`.

use ndarray::{Axis, Dimension, Slice, SliceArg, SliceInfoElem};

use super::layout::{AxisLayout, Layout};
use super::rearrange::OutOfRange;
use resident_core::coherence::Span;
use resident_core::layout::ViewBox;

impl<D: Dimension> Layout<D> {
    /// A slice of this view, or why ndarray would panic.
    #[inline]
    pub(crate) fn slice<I: SliceArg<D>>(&self, info: &I) -> Result<Layout<I::OutDim>, OutOfRange> {
        let (sliced, ndim) = (info.in_ndim(), self.shape().len());
        if sliced != ndim {
            return Err(format!("a slice of {sliced} axes of its {ndim} axes"));
        }
        let mut part = Layout::of_zeros(info.out_ndim());
        let (mut offset, mut from, mut to) = (self.offset() as isize, 0, 0);
        for element in info.as_ref() {
            if let SliceInfoElem::NewAxis = element {
                part.set_axis(to, AxisLayout::SINGLE);
                to += 1;
                continue;
            }
            let (axis, first) = self.sliced(from, element)?;
            offset += first;
            from += 1;
            if !element.is_index() {
                part.set_axis(to, axis);
                to += 1;
            }
        }
        Ok(part.with_offset_unless_empty(offset as usize))
    }

    /// The box of the elements of a slice, which [`slice`](Self::slice) has accepted.
    pub(crate) fn box_of_slice(&self, info: &[SliceInfoElem]) -> ViewBox {
        let elements = info.iter().filter(|element| !element.is_new_axis());
        let axes = self.shape().iter().zip(self.strides()).zip(elements);
        ViewBox::new(axes.map(|((len, stride), element)| {
            IndexRange::of(element, *len)
                .map_or(Span::EMPTY, |range| range.span_in_memory(*len, *stride))
        }))
    }

    /// A slice of one axis.
    pub(super) fn slice_axis(&self, axis: Axis, indices: Slice) -> Result<Self, OutOfRange> {
        let axis = self.checked_axis(axis)?;
        let (sliced, first) = self.sliced(axis, &indices.into())?;
        let mut part = self.clone();
        part.set_axis(axis, sliced);
        Ok(part.with_offset_unless_empty((self.offset() as isize + first) as usize))
    }

    /// The indices of an axis that a slice selects, and the distance in elements to the first.
    #[inline]
    fn sliced(
        &self,
        axis: usize,
        element: &SliceInfoElem,
    ) -> Result<(AxisLayout, isize), OutOfRange> {
        let AxisLayout { len, stride } = self.axis(axis);
        let Some(range) = IndexRange::of(element, len) else {
            return Err(format!("slice {element} of axis {axis}, whose length is {len}"));
        };
        // The stride of a single index has no meaning, and the product may overflow.
        let step = if range.len > 1 { range.step } else { 1 };
        let sliced = AxisLayout { len: range.len, stride: stride * step };
        Ok((sliced, stride * range.first as isize))
    }
}

/// The indices of one axis that a slice selects.
struct IndexRange {
    first: usize,
    len: usize,
    step: isize,
}

impl IndexRange {
    /// ndarray's rule in `do_slice`, which is private: negative indices count from the end, and a
    /// negative step starts at the last index before the end. `None` where ndarray panics.
    #[inline]
    fn of(element: &SliceInfoElem, len: usize) -> Option<Self> {
        match *element {
            SliceInfoElem::Slice { start, end, step } => {
                let start = position(start, len)?;
                let end = end.map_or(Some(len), |end| position(end, len))?.max(start);
                let first = if step < 0 { end.saturating_sub(1) } else { start };
                let len = match step.unsigned_abs() {
                    0 => return None,
                    1 => end - start,
                    step => (end - start).div_ceil(step),
                };
                Some(Self { first, len, step })
            }
            SliceInfoElem::Index(index) => {
                let first = position(index, len).filter(|first| *first < len)?;
                Some(Self { first, len: 1, step: 1 })
            }
            _ => Some(Self { first: 0, len: 1, step: 1 }),
        }
    }

    /// The indices in the order of memory addresses along an axis of this length and stride.
    fn span_in_memory(&self, axis_len: usize, stride: isize) -> Span {
        let Some(steps) = self.len.checked_sub(1) else { return Span::EMPTY };
        let distance = steps * self.step.unsigned_abs();
        let mut lowest = if self.step < 0 { self.first - distance } else { self.first };
        if stride < 0 {
            lowest = axis_len - 1 - (lowest + distance);
        }
        let end = (lowest + distance + 1) as u64;
        Span::new(lowest as u64, end, self.step.unsigned_abs() as u64)
    }
}

/// The number of indices before `index`, which counts from the end if it is negative. `None` if
/// it lies outside of the axis.
#[inline]
fn position(index: isize, len: usize) -> Option<usize> {
    // No axis has more than `isize::MAX` indices, so what lies before the first becomes too large.
    let position = if index < 0 { index.wrapping_add_unsigned(len) } else { index } as usize;
    (position <= len).then_some(position)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, Axis, ShapeBuilder, Slice, SliceInfoElem, s};

    use super::Layout;

    /// A slice of a layout has the same elements as ndarray's slice.
    macro_rules! agrees {
        ($array:expr, $layout:expr, $($slice:expr),+ $(,)?) => {
            $({
                let expected = $array.slice($slice);
                let part = $layout.slice(&$slice).expect("within bounds");
                assert_eq!(part.shape(), expected.shape());
                if expected.len() > 0 {
                    let first = *expected.iter().next().expect("not empty") as usize;
                    let memory = $array.as_slice_memory_order().expect("contiguous");
                    assert_eq!(memory[part.offset()] as usize, first, "{}", stringify!($slice));
                }
            })+
        };
    }

    #[test]
    fn slices_start_where_ndarrays_do() {
        for fortran in [false, true] {
            let shape = (4, 5, 6).set_f(fortran);
            let array =
                Array3::from_shape_vec(shape, (0..120_i32).collect()).expect("120 elements");
            let layout = Layout::of_shape::<i32>((4, 5, 6).set_f(fortran));
            agrees!(
                array,
                layout,
                s![.., .., ..],
                s![1..3, ..;2, ..;-1],
                s![-1, 1..4, ..;-2],
                s![.., 4..;-3, 2],
                s![2..2, .., ..],
                s![.., ndarray::NewAxis, 3, -2..],
                s![0, 0, 0],
            );
        }
    }

    /// The indices of `len` that a slice selects, one by one; `None` if it is out of range.
    fn indices(len: isize, start: isize, end: Option<isize>, step: isize) -> Option<Vec<isize>> {
        let position = |index: isize| if index < 0 { index + len } else { index };
        let (start, end) = (position(start), end.map_or(len, position));
        let inside = |position| (0..=len).contains(&position);
        (inside(start) && inside(end) && step != 0).then(|| {
            let range = start..end.max(start);
            let step_by = step.unsigned_abs();
            match step < 0 {
                false => range.step_by(step_by).collect(),
                true => range.rev().step_by(step_by).collect(),
            }
        })
    }

    #[test]
    fn every_slice_of_a_short_axis_has_its_indices() {
        let ends = || std::iter::once(None).chain((-6..=6).map(Some));
        for (len, start, end) in (0..=4).flat_map(|len| {
            (-6..=6).flat_map(move |start| ends().map(move |end| (len, start, end)))
        }) {
            let layout = Layout::of_shape::<i32>(len);
            for step in -3..=3 {
                let slice = Slice { start, end, step };
                let found = layout.slice_axis(Axis(0), slice).ok().map(|part| {
                    let element = |index| part.element(&[index]).map(|offset| offset as isize);
                    (0..part.len()).filter_map(element).collect::<Vec<_>>()
                });
                assert_eq!(found, indices(len as isize, start, end, step), "{slice:?} of {len}");
            }
        }
    }

    #[test]
    fn a_slice_of_another_number_of_axes_is_refused() {
        let table = Layout::of_shape::<i32>((2, 3)).with_any_dim();
        let one: &[SliceInfoElem] = &[(..).into()];
        let why = table.slice(&one).err();
        assert_eq!(why.as_deref(), Some("a slice of 1 axes of its 2 axes"));
    }
}
