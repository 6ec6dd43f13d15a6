//! The body in Rust of running sums and products.

use ndarray::{ArrayView1, ArrayViewD, ArrayViewMut1, ArrayViewMutD, Axis, Zip};

use crate::ops::arithmetic::Number;
use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// What an element becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) enum Running {
    /// The sum up to the element, which it includes.
    Sum,
    /// The sum of the elements before.
    SumBefore,
    /// The product up to the element, which it includes.
    Product,
}

impl Running {
    /// Whether an element includes itself.
    pub(super) fn includes_own(self) -> bool {
        self != Self::SumBefore
    }

    /// What comes before the first element.
    fn start<T: Number>(self) -> T {
        if self == Self::Product { T::from_u8(1) } else { T::ZERO }
    }
}

/// Fewer rows than this are cut into chunks, each of which is a task.
const LONG_ROWS_MAX: usize = 64;

/// The running sums or products of the chunks of each row. `before` has, for each chunk, that of
/// its row up to the end of the chunk.
pub(super) fn running<T: Number>(
    chunk: usize,
    running: Running,
    a: ArrayViewD<'_, T>,
    before: ArrayViewD<'_, T>,
    out: ArrayViewMutD<'_, T>,
) {
    if a.len() < PARALLEL_LEN_MIN {
        return each_row(a, before, out, |a, before, out| {
            chunks(chunk, running, a, before, out).for_each(|chunk| chunk.run(running));
        });
    }
    if a.ndim() == 1 || a.len() / a.len_of(Axis(a.ndim() - 1)) < LONG_ROWS_MAX {
        return each_row(a, before, out, |a, before, out| {
            each_piece(chunks(chunk, running, a, before, out).collect(), |chunk| {
                chunk.run(running);
            });
        });
    }
    each_piece(pieces_of((a, before, out), &halves), |(a, before, out)| {
        each_row(a, before, out, |a, before, out| {
            chunks(chunk, running, a, before, out).for_each(|chunk| chunk.run(running));
        });
    });
}

/// Rows, what comes before their chunks, and the result.
type Rows<'a, 'o, T> = (ArrayViewD<'a, T>, ArrayViewD<'a, T>, ArrayViewMutD<'o, T>);

/// Halves the rows of a piece that is longer than a task.
fn halves<'a, 'o, T>((a, before, out): Rows<'a, 'o, T>) -> Halves<Rows<'a, 'o, T>> {
    let longest = (0..a.ndim() - 1).max_by_key(|axis| a.shape()[*axis]);
    let axis = longest.filter(|axis| a.shape()[*axis] > 1 && a.len() > TASK_LEN);
    let Some(axis) = axis else { return ((a, before, out), None) };
    let middle = a.shape()[axis] / 2;
    let (a, before) = (a.split_at(Axis(axis), middle), before.split_at(Axis(axis), middle));
    let (first, second) = out.split_at(Axis(axis), middle);
    ((a.0, before.0, first), Some((a.1, before.1, second)))
}

fn each_row<T: Number>(
    a: ArrayViewD<'_, T>,
    before: ArrayViewD<'_, T>,
    mut out: ArrayViewMutD<'_, T>,
    run: impl Fn(ArrayView1<'_, T>, ArrayView1<'_, T>, ArrayViewMut1<'_, T>),
) {
    Zip::from(out.rows_mut()).and(a.rows()).and(before.rows()).for_each(|out, a, before| {
        run(a, before, out);
    });
}

struct Chunk<'a, 'o, T> {
    /// The sum or product of its row up to it.
    start: T,
    a: ArrayView1<'a, T>,
    out: ArrayViewMut1<'o, T>,
}

impl<T: Number> Chunk<'_, '_, T> {
    fn run(self, running: Running) {
        match running {
            Running::Sum => self.each(|before, element| [before.plus(element); 2]),
            Running::SumBefore => self.each(|before, element| [before, before.plus(element)]),
            Running::Product => self.each(|before, element| [before.times(element); 2]),
        }
    }

    /// `step` gives the result of an element, and what comes before the next.
    fn each(mut self, step: impl Fn(T, T) -> [T; 2]) {
        let mut before = self.start;
        Zip::from(&mut self.out).and(&self.a).for_each(|out, element| {
            [*out, before] = step(before, *element);
        });
    }
}

fn chunks<'a, 'o, T: Number>(
    chunk: usize,
    running: Running,
    a: ArrayView1<'a, T>,
    before: ArrayView1<'a, T>,
    out: ArrayViewMut1<'o, T>,
) -> impl Iterator<Item = Chunk<'a, 'o, T>> {
    let mut rest = Some((a, out));
    let mut number = 0;
    std::iter::from_fn(move || {
        let (a, out) = rest.take()?;
        let start = if number == 0 { running.start() } else { before[number - 1] };
        number += 1;
        let len = chunk.min(a.len());
        let ((a, a_rest), (out, out_rest)) = (a.split_at(Axis(0), len), out.split_at(Axis(0), len));
        rest = (!a_rest.is_empty()).then_some((a_rest, out_rest));
        Some(Chunk { start, a, out })
    })
}
