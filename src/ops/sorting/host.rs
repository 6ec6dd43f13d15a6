//! Bodies in Rust that sort rows: by the standard library's stable sort, in pieces that are merged
//! if a row is long. And one that searches a sorted line.

use std::cmp::Ordering;

use ndarray::{ArrayViewD, ArrayViewMut1, ArrayViewMutD, Axis, Ix1, Zip};

use crate::ops::arithmetic::Number;
use crate::ops::elementwise::host::each_of_one;
use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// The runs of a long row that are sorted before they are merged, each on one core.
const RUNS: usize = 4;

/// Ascending, NaN last.
fn is_before<T: Number>(x: T, y: T) -> bool {
    (x < y) | (y.is_nan() & !x.is_nan())
}

/// Sorts each row.
pub(super) fn sort<T: Number>(a: ArrayViewMutD<'_, T>) {
    let is_large = a.len() >= PARALLEL_LEN_MIN;
    let sort_row = |mut row: ArrayViewMut1<'_, T>| match row.as_slice_mut() {
        Some(row) => sort_slice(row, &is_before),
        None => {
            let mut copy = row.to_vec();
            sort_slice(&mut copy, &is_before);
            row.iter_mut().zip(copy).for_each(|(to, from)| *to = from);
        }
    };
    let mut a = a;
    if is_large && a.len() / row_len(a.shape()) > 1 {
        return each_piece(pieces_of(a, &halves), |mut rows| {
            rows.rows_mut().into_iter().for_each(sort_row);
        });
    }
    a.rows_mut().into_iter().for_each(sort_row);
}

/// The places of the elements of each row in sorted order. The elements lie beside their places
/// while these are sorted, since comparisons would look for them all over the memory.
pub(super) fn argsort<T: Number>(a: ArrayViewD<'_, T>, mut out: ArrayViewMutD<'_, u64>) {
    let mut places: Vec<(T, u64)> = Vec::new();
    Zip::from(out.rows_mut()).and(a.rows()).for_each(|mut out, a| {
        places.clear();
        places.extend(a.iter().copied().zip(0..));
        sort_slice(&mut places, &|(x, _), (y, _)| is_before(x, y));
        out.iter_mut().zip(&places).for_each(|(out, (_, place))| *out = *place);
    });
}

/// The number of elements of a sorted line that come before each value.
pub(super) fn search<T: Number>(
    sorted: ArrayViewD<'_, T>,
    values: ArrayViewD<'_, T>,
    index: ArrayViewMutD<'_, u64>,
) {
    let Ok(sorted) = sorted.into_dimensionality::<Ix1>() else { unreachable!("a line") };
    let sorted = &sorted;
    each_of_one(values, index, |value, index| {
        let (mut least, mut most) = (0, sorted.len());
        while least < most {
            let middle = usize::midpoint(least, most);
            if is_before(sorted[middle], value) {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        *index = least as u64;
    });
}

fn row_len(shape: &[usize]) -> usize {
    shape.last().copied().unwrap_or(1).max(1)
}

/// Halves rows until few are left.
fn halves<T>(a: ArrayViewMutD<'_, T>) -> Halves<ArrayViewMutD<'_, T>> {
    let rows = a.ndim() - 1;
    let longest = (0..rows).max_by_key(|axis| a.shape()[*axis]);
    let axis = longest.filter(|axis| a.shape()[*axis] > 1 && a.len() > TASK_LEN);
    let Some(axis) = axis else { return (a, None) };
    let middle = a.shape()[axis] / 2;
    let (first, second) = a.split_at(Axis(axis), middle);
    (first, Some(second))
}

/// Sorts a slice, by all cores if it is long.
fn sort_slice<T: Copy + Send + Sync>(all: &mut [T], is_before: &(impl Fn(T, T) -> bool + Sync)) {
    let sort = |run: &mut [T]| {
        run.sort_by(|x, y| match (is_before(*x, *y), is_before(*y, *x)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        });
    };
    if all.len() < PARALLEL_LEN_MIN {
        return sort(all);
    }
    let mut width = all.len().div_ceil(RUNS);
    each_piece(all.chunks_mut(width).collect(), sort);
    let mut copy = all.to_vec();
    let mut is_in_copy = false;
    while width < all.len() {
        let (from, to) = if is_in_copy { (&*copy, &mut *all) } else { (&*all, &mut *copy) };
        let pairs = from.chunks(2 * width).zip(to.chunks_mut(2 * width)).flat_map(|(from, to)| {
            let (left, right) = from.split_at(width.min(from.len()));
            pieces_of(Merge { left, right, to }, &|merge| merge.halves(is_before))
        });
        each_piece(pairs.collect(), |merge| merge.run(is_before));
        is_in_copy = !is_in_copy;
        width *= 2;
    }
    if is_in_copy {
        all.copy_from_slice(&copy);
    }
}

/// Two sorted runs, and the memory of both, sorted. Of equal elements, those of the left come
/// first.
struct Merge<'a, 'o, T> {
    left: &'a [T],
    right: &'a [T],
    to: &'o mut [T],
}

impl<T: Copy> Merge<'_, '_, T> {
    /// Two that write half of the memory each, if it is longer than a task.
    fn halves(self, is_before: &impl Fn(T, T) -> bool) -> Halves<Self> {
        if self.to.len() <= TASK_LEN {
            return (self, None);
        }
        let middle = self.to.len() / 2;
        let of_left = self.taken_from_left(middle, is_before);
        let (first_left, left) = self.left.split_at(of_left);
        let (first_right, right) = self.right.split_at(middle - of_left);
        let (first, to) = self.to.split_at_mut(middle);
        (Self { left: first_left, right: first_right, to: first }, Some(Self { left, right, to }))
    }

    /// How many of the first `count` elements of both are of the left run.
    fn taken_from_left(&self, count: usize, is_before: &impl Fn(T, T) -> bool) -> usize {
        let (mut least, mut most) =
            (count.saturating_sub(self.right.len()), count.min(self.left.len()));
        while least < most {
            let taken = usize::midpoint(least, most);
            if is_before(self.right[count - taken - 1], self.left[taken]) {
                most = taken;
            } else {
                least = taken + 1;
            }
        }
        least
    }

    /// Without a branch for which run is next, which no processor could foresee.
    fn run(self, is_before: &impl Fn(T, T) -> bool) {
        let Self { left, right, to } = self;
        let (mut from_left, mut from_right, mut out) = (0, 0, 0);
        while from_left < left.len() && from_right < right.len() {
            let (x, y) = (left[from_left], right[from_right]);
            let is_right = is_before(y, x);
            to[out] = if is_right { y } else { x };
            from_left += usize::from(!is_right);
            from_right += usize::from(is_right);
            out += 1;
        }
        let middle = out + left.len() - from_left;
        to[out..middle].copy_from_slice(&left[from_left..]);
        to[middle..].copy_from_slice(&right[from_right..]);
    }
}
