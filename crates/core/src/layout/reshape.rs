//! Strides of a view in another shape, if no element has to move.

use super::Strided;

impl Strided<'_> {
    /// Sets `strides` to those of this view's elements in another shape of as many elements, both
    /// in row-major order. Returns whether strides reach them. NumPy's `reshape` has the same rule
    /// for when it does not copy.
    #[must_use]
    pub fn reshape(&self, shape: &[usize], strides: &mut [isize]) -> bool {
        if self.is_empty() {
            set_row_major(strides, shape, 1);
            return true;
        }
        self.reshape_groups(shape, strides).is_some()
    }

    /// As [`reshape`](Self::reshape), for a view that is not empty.
    fn reshape_groups(&self, shape: &[usize], strides: &mut [isize]) -> Option<()> {
        let axes = self.shape.iter().zip(self.strides).filter(|(len, _)| **len != 1);
        let mut old = axes.map(|(len, stride)| (*len, *stride));
        let mut begin = 0;
        // A group of old axes without gaps becomes a group of new axes of as many elements.
        while let Some((mut len, mut stride)) = old.next() {
            let (mut end, mut new_len) = (begin, 1);
            while new_len != len {
                if new_len < len {
                    new_len *= shape.get(end)?;
                    end += 1;
                } else {
                    let (next_len, next_stride) = old.next()?;
                    if stride != next_stride * next_len as isize {
                        return None;
                    }
                    (len, stride) = (len * next_len, next_stride);
                }
            }
            set_row_major(&mut strides[begin..end], &shape[begin..end], stride);
            begin = end;
        }
        // What is left are axes of length 1.
        set_row_major(&mut strides[begin..], &shape[begin..], 1);
        Some(())
    }

    /// Sets `strides` to those of this view repeated along axes of length 1 and along new first
    /// axes, as NumPy broadcasts. Returns whether the shapes fit.
    #[must_use]
    #[inline]
    pub fn broadcast(&self, shape: &[usize], strides: &mut [isize]) -> bool {
        let Some(new) = shape.len().checked_sub(self.shape.len()) else { return false };
        let (repeated, strides) = strides.split_at_mut(new);
        repeated.fill(0);
        let axes = self.shape.iter().zip(self.strides).zip(&shape[new..]).zip(strides);
        axes.fold(true, |fits, (((len, stride), wanted), to)| {
            *to = if len == wanted { *stride } else { 0 };
            fits && (len == wanted || *len == 1)
        })
    }
}

/// Sets the strides of a row-major block whose last axis has stride `last`.
fn set_row_major(strides: &mut [isize], shape: &[usize], last: isize) {
    strides.fill(last);
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as isize;
    }
}

#[cfg(test)]
mod tests {
    use super::Strided;

    fn reshaped(view: &Strided<'_>, shape: &[usize]) -> Option<Vec<isize>> {
        let mut strides = vec![isize::MIN; shape.len()];
        view.reshape(shape, &mut strides).then_some(strides)
    }

    fn broadcast(view: &Strided<'_>, shape: &[usize]) -> Option<Vec<isize>> {
        let mut strides = vec![isize::MIN; shape.len()];
        view.broadcast(shape, &mut strides).then_some(strides)
    }

    /// The offsets of all elements in row-major order.
    fn offsets(view: &Strided<'_>) -> Vec<usize> {
        (0..view.len() as usize)
            .map(|number| {
                let mut rest = number;
                let mut index: Vec<usize> = Vec::new();
                for len in view.shape.iter().rev() {
                    index.push(rest % len);
                    rest /= len;
                }
                view.offset_at(index.into_iter().rev())
            })
            .collect()
    }

    /// Every shape of `len` elements with at most four axes.
    fn shapes(len: usize, axes: usize) -> Vec<Vec<usize>> {
        if axes == 0 {
            return if len == 1 { vec![Vec::new()] } else { Vec::new() };
        }
        let mut all = shapes(len, axes - 1);
        for first in (1..=len).filter(|first| len.is_multiple_of(*first)) {
            for mut rest in shapes(len / first, axes - 1) {
                rest.insert(0, first);
                all.push(rest);
            }
        }
        all.sort();
        all.dedup();
        all
    }

    /// The strides that give these offsets in this shape, if there are any: found from the first
    /// step along each axis.
    fn strides_of(offsets: &[usize], shape: &[usize]) -> Option<Vec<isize>> {
        let mut strides = vec![1; shape.len()];
        let mut step = 1;
        for axis in (0..shape.len()).rev() {
            if shape[axis] > 1 {
                strides[axis] = offsets[step] as isize - offsets[0] as isize;
            }
            step *= shape[axis];
        }
        let view = Strided { shape, strides: &strides, offset: offsets[0] };
        (self::offsets(&view) == offsets).then_some(strides)
    }

    #[test]
    fn every_shape_that_some_strides_reach_is_a_view() {
        let views: [(&[usize], &[isize]); 9] = [
            (&[24], &[1]),
            (&[24], &[-2]),
            (&[4, 6], &[6, 1]),
            (&[4, 6], &[12, 2]),
            (&[4, 6], &[1, 4]),
            (&[4, 6], &[7, 1]),
            (&[2, 3, 4], &[12, -4, 1]),
            (&[2, 1, 3, 4], &[40, 77, 4, 1]),
            (&[4, 6], &[0, 1]),
        ];
        let (mut reached, mut refused) = (0, 0);
        for (shape, strides) in views {
            let view = Strided { shape, strides, offset: 100 };
            let expected = offsets(&view);
            for wanted in shapes(24, 4) {
                let found = reshaped(&view, &wanted);
                assert_eq!(
                    found.is_some(),
                    strides_of(&expected, &wanted).is_some(),
                    "{view:?} as {wanted:?}: {found:?}"
                );
                if let Some(strides) = found {
                    let new = Strided { shape: &wanted, strides: &strides, offset: 100 };
                    assert_eq!(offsets(&new), expected, "{view:?} as {wanted:?}");
                    reached += 1;
                } else {
                    refused += 1;
                }
            }
        }
        assert!(reached > 100 && refused > 100, "{reached} and {refused}");
    }

    #[test]
    fn shapes_of_no_or_one_element_are_views() {
        let empty = Strided { shape: &[0, 3], strides: &[3, 1], offset: 0 };
        assert_eq!(reshaped(&empty, &[2, 0]).as_deref(), Some(&[1, 1][..]));
        let one = Strided { shape: &[1, 1], strides: &[9, 9], offset: 5 };
        assert_eq!(reshaped(&one, &[]).as_deref(), Some(&[][..]));
        assert_eq!(reshaped(&one, &[1, 1, 1]).as_deref(), Some(&[1, 1, 1][..]));
    }

    #[test]
    fn broadcasting_repeats_axes_of_length_1_and_new_ones() {
        let row = Strided { shape: &[1, 3], strides: &[3, 1], offset: 0 };
        assert_eq!(broadcast(&row, &[2, 4, 3]).as_deref(), Some(&[0, 0, 1][..]));
        assert_eq!(broadcast(&row, &[1, 3]).as_deref(), Some(&[3, 1][..]));
        assert_eq!(broadcast(&row, &[3]), None);
        assert_eq!(broadcast(&row, &[4, 1]), None);
        let number = Strided { shape: &[], strides: &[], offset: 0 };
        assert_eq!(broadcast(&number, &[2, 2]).as_deref(), Some(&[0, 0][..]));
    }
}
