//! Bodies in Rust of sums of products.

use ndarray::{ArrayView1, ArrayViewD, ArrayViewMutD, Axis, Zip};

use crate::ops::arithmetic::Scalar;
use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};
use crate::ops::reduce::host::{LANES, LEAF_LEN, Sum, middle, of_lanes};

/// The sums of products of the chunks of two lines.
pub(in crate::ops) fn dot<T: Scalar>(
    chunk: usize,
    a: ArrayViewD<'_, T>,
    b: ArrayViewD<'_, T>,
    out: ArrayViewMutD<'_, T>,
) {
    let run = |a: ArrayViewD<'_, T>, b: ArrayViewD<'_, T>, mut out: ArrayViewMutD<'_, T>| {
        Zip::from(out.rows_mut()).and(a.rows()).and(b.rows()).for_each(|mut out, a, b| {
            let chunks = a.axis_chunks_iter(Axis(0), chunk).zip(b.axis_chunks_iter(Axis(0), chunk));
            out.iter_mut().zip(chunks).for_each(|(out, (a, b))| *out = dot_of_lines(a, b));
        });
    };
    if a.len() < PARALLEL_LEN_MIN {
        return run(a, b, out);
    }
    let pieces = pieces_of((a, b, out), &|(a, b, out)| halves(chunk, a, b, out));
    each_piece(pieces, |(a, b, out)| run(a, b, out));
}

/// Two operands, and the chunks that belong to them in the result.
type Lines<'a, 'o, T> = (ArrayViewD<'a, T>, ArrayViewD<'a, T>, ArrayViewMutD<'o, T>);

/// The halves of a piece that is longer than a task.
fn halves<'a, 'o, T>(
    chunk: usize,
    a: ArrayViewD<'a, T>,
    b: ArrayViewD<'a, T>,
    out: ArrayViewMutD<'o, T>,
) -> Halves<Lines<'a, 'o, T>> {
    let last = a.ndim() - 1;
    let axis = (0..last).find(|axis| a.shape()[*axis] > 1).unwrap_or(last);
    if a.len() <= TASK_LEN || out.shape()[axis] < 2 {
        return ((a, b, out), None);
    }
    let middle = out.shape()[axis] / 2;
    let (first, second) = out.split_at(Axis(axis), middle);
    let at = if axis == last { middle * chunk } else { middle };
    let (a, b) = (a.split_at(Axis(axis), at), b.split_at(Axis(axis), at));
    ((a.0, b.0, first), Some((a.1, b.1, second)))
}

fn dot_of_lines<T: Scalar>(a: ArrayView1<'_, T>, b: ArrayView1<'_, T>) -> T {
    if a.len() > LEAF_LEN {
        let middle = middle(a.len());
        let (a, b) = (a.split_at(Axis(0), middle), b.split_at(Axis(0), middle));
        return dot_of_lines(a.0, b.0).plus(dot_of_lines(a.1, b.1));
    }
    let mut lanes = [T::ZERO; LANES];
    if let (Some(a), Some(b)) = (a.as_slice(), b.as_slice()) {
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                lanes[lane] = lanes[lane].plus(a[lane].times(b[lane]));
            }
        }
        let rest = rest_of_a.iter().zip(rest_of_b);
        lanes.iter_mut().zip(rest).for_each(|(lane, (a, b))| *lane = lane.plus(a.times(*b)));
    } else {
        for (index, (a, b)) in a.iter().zip(b).enumerate() {
            let lane = &mut lanes[index % LANES];
            *lane = lane.plus(a.times(*b));
        }
    }
    of_lanes::<T, Sum>(lanes)
}
