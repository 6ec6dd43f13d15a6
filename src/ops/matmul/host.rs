//! Bodies in Rust of matrix products. Floats are multiplied by the crate `matrixmultiply`.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use crate::ops::arithmetic::Scalar;
use crate::ops::parallel::{Halves, each_piece, pieces_of};

/// From this many products on, all cores multiply.
const PARALLEL_PRODUCTS_MIN: usize = 1 << 20;

/// The most rows or columns of a task.
const TASK_ROWS: usize = 256;

/// `c = a b`.
pub(super) fn product<T: Scalar>(
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    c: ArrayViewMut2<'_, T>,
) {
    let products = c.len().saturating_mul(a.ncols());
    if products < PARALLEL_PRODUCTS_MIN {
        return multiply(a, b, c);
    }
    each_piece(pieces_of((a, b, c), &halves), |(a, b, c)| multiply(a, b, c));
}

/// Two factors and their product.
type Product<'a, 'c, T> = (ArrayView2<'a, T>, ArrayView2<'a, T>, ArrayViewMut2<'c, T>);

/// Halves the longer axis of a product that is larger than a task.
fn halves<'a, 'c, T>((a, b, c): Product<'a, 'c, T>) -> Halves<Product<'a, 'c, T>> {
    let (rows, columns) = c.dim();
    if rows.max(columns) <= TASK_ROWS {
        return ((a, b, c), None);
    }
    if rows >= columns {
        let (upper, lower) = c.split_at(Axis(0), rows / 2);
        let (a_upper, a_lower) = a.split_at(Axis(0), rows / 2);
        ((a_upper, b, upper), Some((a_lower, b, lower)))
    } else {
        let (left, right) = c.split_at(Axis(1), columns / 2);
        let (b_left, b_right) = b.split_at(Axis(1), columns / 2);
        ((a, b_left, left), Some((a, b_right, right)))
    }
}

fn multiply<T: Scalar>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, mut c: ArrayViewMut2<'_, T>) {
    if !T::multiply(&a, &b, &mut c) {
        of_integers(a, b, c);
    }
}

/// The product of integers, which wraps around.
fn of_integers<T: Scalar>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>, mut c: ArrayViewMut2<'_, T>) {
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
