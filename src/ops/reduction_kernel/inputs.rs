//! The inputs of a [`Reduction`](super::Reduction), and its body in Rust.

#![allow(private_interfaces, reason = "hidden items of sealed traits name private types")]

use ndarray::{ArrayViewMutD, Axis, IxDyn};

use super::plan::{LANES, Plan};
use crate::launch::{Flat, In, Out, Signature};
use crate::ops::arithmetic::{Arithmetic, Scalar};
use crate::ops::elementwise::host::longest_axis;
use crate::ops::elementwise_kernel::{ElementwiseParameter, ElementwiseSignature};
use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};
use crate::ops::rows::reducer::Reducer;

/// One input of a [`Reduction`](super::Reduction): a scalar or an [`In`](crate::In) without a
/// dimension, as [`ElementwiseParameter`] lists them. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an input of a `Reduction`",
    note = "inputs are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, `half`'s `f16` and `bf16`, \
            `num_complex`'s `Complex<f32>` and `Complex<f64>`, and `In` of these, without a \
            dimension"
)]
pub trait ReductionInput: ElementwiseParameter {}

#[diagnostic::do_not_recommend]
impl<T: Arithmetic> ReductionInput for T {}
#[diagnostic::do_not_recommend]
impl<T: Arithmetic> ReductionInput for In<T, Flat> {}

/// A tuple of 1 to 8 [`ReductionInput`]s, as in [`Reduction`](super::Reduction)'s angle brackets.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the inputs of a `Reduction`",
    label = "expected a tuple of 1 to 8 inputs",
    note = "a tuple of one takes a comma: `Reduction::<(In<f32>,), f32>`",
    note = "inputs are scalars, and `In` without a dimension"
)]
pub trait ReductionInputs: ElementwiseSignature {
    /// The inputs, and the results of chunks.
    #[doc(hidden)]
    type Kernel<R: Scalar>: Signature;

    /// Reduces each chunk of each row.
    #[doc(hidden)]
    fn reduce<R: Scalar>(
        host: <Self::Kernel<R> as Signature>::Host<'_>,
        plan: &Plan<R>,
        map: &(impl for<'e> Fn(Self::Elements<'e>) -> R + Sync),
        join: &(impl Fn(R, R) -> R + Sync),
    );
}

macro_rules! inputs {
    ($($input:ident $view:ident $index:tt),+; $out:tt) => {
        #[allow(non_snake_case, reason = "views are named as their types")]
        #[allow(clippy::too_many_arguments, reason = "there is one for each input")]
        const _: () = {
            fn walk<R: Scalar, $($input: ReductionInput,)+ Map>(
                $(mut $view: $input::View<'_>,)+
                mut out: ArrayViewMutD<'_, R>,
                plan: &Plan<R>,
                map: &Map,
                join: &(impl Fn(R, R) -> R + Sync),
            ) where
                Map: for<'e> Fn(($($input::Element<'e>,)+)) -> R + Sync,
            {
                if out.ndim() > 1 {
                    for index in 0..out.shape()[0] {
                        $(let $view = $input::inner(&mut $view, index);)+
                        let out = out.index_axis_mut(Axis(0), index);
                        walk::<R, $($input,)+ Map>($($view,)+ out, plan, map, join);
                    }
                    return;
                }
                let shapes = [$($input::shape(&$view)),+];
                let len = shapes.into_iter().flatten().next().map_or(0, |shape| shape[0]);
                if let ($(Some(mut $view),)+) = ($($input::line(&mut $view, len),)+) {
                    out.iter_mut().enumerate().for_each(|(chunk, out)| {
                        let range = plan.range(chunk, len);
                        *out = plan.of_chunk(range, join, |index| {
                            map(($($input::of_line(&mut $view, index),)+))
                        });
                    });
                    return;
                }
                out.iter_mut().enumerate().for_each(|(chunk, out)| {
                    let range = plan.range(chunk, len);
                    *out = plan.of_chunk(range, join, |index| {
                        map(($($input::of_view(&mut $view, index),)+))
                    });
                });
            }

            type Piece<'v, 'o, R, $($input),+> =
                ($(<$input as ElementwiseParameter>::View<'v>,)+ ArrayViewMutD<'o, R>);

            /// The halves of a piece that is longer than a task.
            fn halves<'v, 'o, R: Scalar, $($input: ReductionInput),+>(
                ($($view,)+ out): Piece<'v, 'o, R, $($input),+>,
                plan: &Plan<R>,
            ) -> Halves<Piece<'v, 'o, R, $($input),+>> {
                if out.len() == 1 || plan.elements(out.shape()) <= TASK_LEN {
                    return (($($view,)+ out), None);
                }
                let axis = longest_axis(out.shape());
                let middle = out.len_of(axis) / 2;
                let factor = if axis.0 + 1 == out.ndim() { plan.chunk } else { 1 };
                $(let $view = $input::split($view, axis, middle * factor);)+
                let (first, second) = out.split_at(axis, middle);
                (($($view.0,)+ first), Some(($($view.1,)+ second)))
            }

            impl<$($input: ReductionInput),+> ReductionInputs for ($($input,)+) {
                type Kernel<R: Scalar> = ($($input::Sized,)+ Out<R, IxDyn>);

                fn reduce<R: Scalar>(
                    host: <Self::Kernel<R> as Signature>::Host<'_>,
                    plan: &Plan<R>,
                    map: &(impl for<'e> Fn(Self::Elements<'e>) -> R + Sync),
                    join: &(impl Fn(R, R) -> R + Sync),
                ) {
                    $(let $view = $input::view(host.$index);)+
                    let mut out = host.$out;
                    if plan.elements(out.shape()) < PARALLEL_LEN_MIN {
                        walk::<R, $($input,)+ _>($($view,)+ out.view_mut(), plan, map, join);
                    } else {
                        let whole = ($($view,)+ out.view_mut());
                        let halve = |piece| halves::<R, $($input),+>(piece, plan);
                        let pieces = pieces_of(whole, &halve);
                        each_piece(pieces, |($($view,)+ out)| {
                            walk::<R, $($input,)+ _>($($view,)+ out, plan, map, join);
                        });
                    }
                    plan.join_initial(&mut out, join);
                }
            }
        };
    };
}

inputs!(P0 A0 0; 1);
inputs!(P0 A0 0, P1 A1 1; 2);
inputs!(P0 A0 0, P1 A1 1, P2 A2 2; 3);
inputs!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3; 4);
inputs!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4; 5);
inputs!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5; 6);
inputs!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6; 7);
inputs!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7; 8);

impl<R: Scalar> Plan<R> {
    /// At most how many elements the chunks of such results have.
    fn elements(&self, results: &[usize]) -> usize {
        results.iter().product::<usize>().saturating_mul(self.chunk)
    }

    /// The elements of a chunk of a row.
    fn range(&self, chunk: usize, row_len: usize) -> std::ops::Range<usize> {
        let first = chunk * self.chunk;
        first..row_len.min(first + self.chunk)
    }

    /// The elements of a chunk, of which there is at least one, in the groups of `kernel.cu`.
    fn of_chunk(
        &self,
        range: std::ops::Range<usize>,
        join: &impl Fn(R, R) -> R,
        mut term: impl FnMut(usize) -> R,
    ) -> R {
        if self.reducer == Reducer::Thread {
            let first = term(range.start);
            return range.skip(1).fold(first, |total, index| join(total, term(index)));
        }
        let mut count = range.len().min(LANES);
        let mut lanes = [R::ZERO; LANES];
        let mut next = range.start;
        for lane in &mut lanes[..count] {
            *lane = term(next);
            next += 1;
        }
        while next < range.end {
            for lane in &mut lanes[..LANES.min(range.end - next)] {
                *lane = join(*lane, term(next));
                next += 1;
            }
        }
        while count > 1 {
            let half = count.div_ceil(2);
            for lane in 0..count - half {
                lanes[lane] = join(lanes[lane], lanes[lane + half]);
            }
            count = half;
        }
        lanes[0]
    }

    /// Joins the initial value once, to the last results.
    fn join_initial(&self, out: &mut ArrayViewMutD<'_, R>, join: &impl Fn(R, R) -> R) {
        let shape = out.shape();
        let is_last = if self.is_whole { out.len() == 1 } else { shape.last() == Some(&1) };
        if is_last {
            out.iter_mut().for_each(|out| *out = join(self.initial, *out));
        }
    }
}
