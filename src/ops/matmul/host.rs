//! Bodies in Rust of matrix products. Floats are multiplied by the crate `matrixmultiply`.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use crate::ops::arithmetic::Number;
use crate::ops::parallel::with_threads;

/// From this many products on, all cores multiply.
const PARALLEL_PRODUCTS_MIN: usize = 1 << 20;

/// The most rows or columns of a task.
const TASK_ROWS: usize = 256;

/// `c = a b`.
pub(super) fn product<T: Number>(
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    c: ArrayViewMut2<'_, T>,
) {
    let products = c.len().saturating_mul(a.ncols());
    if products < PARALLEL_PRODUCTS_MIN {
        multiply(a, b, c);
    } else {
        with_threads(|| split(a, b, c));
    }
}

/// Halves the longer axis of the result until the parts are small.
fn split<T: Number>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, c: ArrayViewMut2<'_, T>) {
    let (rows, columns) = c.dim();
    if rows.max(columns) <= TASK_ROWS {
        return multiply(a, b, c);
    }
    if rows >= columns {
        let (upper, lower) = c.split_at(Axis(0), rows / 2);
        let (a_upper, a_lower) = a.split_at(Axis(0), rows / 2);
        rayon::join(|| split(a_upper, b, upper), || split(a_lower, b, lower));
    } else {
        let (left, right) = c.split_at(Axis(1), columns / 2);
        let (b_left, b_right) = b.split_at(Axis(1), columns / 2);
        rayon::join(|| split(a, b_left, left), || split(a, b_right, right));
    }
}

fn multiply<T: Number>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, mut c: ArrayViewMut2<'_, T>) {
    if !T::multiply(&a, &b, &mut c) {
        of_integers(a, b, c);
    }
}

/// The product of integers, which wraps around.
fn of_integers<T: Number>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, mut c: ArrayViewMut2<'_, T>) {
    let b = b.as_standard_layout();
    let mut sums = vec![T::ZERO; c.ncols()];
    for (a, mut c) in a.rows().into_iter().zip(c.rows_mut()) {
        sums.fill(T::ZERO);
        for (factor, b) in a.iter().zip(b.rows()) {
            let pairs = sums.iter_mut().zip(b);
            pairs.for_each(|(sum, other)| *sum = sum.plus(factor.times(*other)));
        }
        c.iter_mut().zip(&sums).for_each(|(c, sum)| *c = *sum);
    }
}
