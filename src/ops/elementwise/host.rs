//! Bodies in Rust of elementwise operations: operands are walked in pieces, by all cores if they
//! are large.

use ndarray::{ArrayViewD, ArrayViewMutD, Axis, Ix2, Zip};

use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// Where operands lie in different orders, pieces of this many elements are walked at a time, so
/// that both are in the cache.
const TILE_LEN: usize = 1 << 12;

macro_rules! zip {
    ($pieces:ident, $each:ident, $($array:ident: $element:ident),+) => {
        /// Calls `run` with pieces that cover all elements.
        pub(in crate::ops) fn $pieces<$($element: Sync,)+ U: Send>(
            $($array: ArrayViewD<'_, $element>,)+
            out: ArrayViewMutD<'_, U>,
            run: &(impl Fn($(ArrayViewD<'_, $element>,)+ ArrayViewMutD<'_, U>) + Sync),
        ) {
            type Piece<'a, $($element,)+ U> =
                ($(ArrayViewD<'a, $element>,)+ ArrayViewMutD<'a, U>);

            /// The halves of a piece that has more elements.
            fn halves<$($element,)+ U>(
                ($($array,)+ out): Piece<'_, $($element,)+ U>,
                len_max: usize,
            ) -> Halves<Piece<'_, $($element,)+ U>> {
                if out.len() <= len_max {
                    return (($($array,)+ out), None);
                }
                let axis = longest_axis(out.shape());
                let middle = out.len_of(axis) / 2;
                $(let $array = $array.split_at(axis, middle);)+
                let (first, second) = out.split_at(axis, middle);
                (($($array.0,)+ first), Some(($($array.1,)+ second)))
            }

            fn each_tile<$($element,)+ U>(
                piece: Piece<'_, $($element,)+ U>,
                run: &impl Fn($(ArrayViewD<'_, $element>,)+ ArrayViewMutD<'_, U>),
            ) {
                match halves(piece, TILE_LEN) {
                    (($($array,)+ out), None) => run($($array,)+ out),
                    (first, Some(second)) => {
                        each_tile(first, run);
                        each_tile(second, run);
                    }
                }
            }

            let is_flat = true $(&& $array.as_slice().is_some())+ && out.ndim() == 1;
            let is_in_order = is_flat || (true $(&& is_row_by_row($array.strides()))+);
            let is_large = out.len() >= PARALLEL_LEN_MIN;
            let whole = ($($array,)+ out);
            match (is_large, is_in_order) {
                (true, true) => each_piece(
                    pieces_of(whole, &|piece| halves(piece, TASK_LEN)),
                    |($($array,)+ out)| run($($array,)+ out),
                ),
                (true, false) => each_piece(
                    pieces_of(whole, &|piece| halves(piece, TASK_LEN)),
                    |piece| each_tile(piece, run),
                ),
                (false, true) => {
                    let ($($array,)+ out) = whole;
                    run($($array,)+ out);
                }
                (false, false) => each_tile(whole, run),
            }
        }

        /// Calls `each` with the corresponding elements. Each piece has a copy of it, since writes
        /// to a piece could change what it refers to, and its loop were not vectorised.
        pub(in crate::ops) fn $each<$($element: Sync + Copy,)+ U: Send>(
            $($array: ArrayViewD<'_, $element>,)+
            out: ArrayViewMutD<'_, U>,
            each: impl Fn($($element,)+ &mut U) + Sync + Copy,
        ) {
            $pieces($($array,)+ out, &|$($array: ArrayViewD<'_, $element>,)+ mut out| {
                let each_here = each;
                if let ($(Some($array),)+ Some(out)) =
                    ($($array.as_slice(),)+ out.as_slice_mut())
                {
                    let len = out.len();
                    $(let $array = &$array[..len];)+
                    for index in 0..len {
                        each_here($($array[index],)+ &mut out[index]);
                    }
                } else {
                    Zip::from(&mut out)$(.and(&$array))+.for_each(|out, $($array),+| {
                        each_here($(*$array,)+ out);
                    });
                }
            });
        }
    };
}

zip!(pieces_of_one, each_of_one, a: A);
zip!(pieces_of_two, each_of_two, a: A, b: B);
zip!(pieces_of_three, each_of_three, a: A, b: B, c: C);

/// Copies the elements of a piece. Most have two axes, of which ndarray's loops know more than of
/// a number of axes that is open.
pub(in crate::ops) fn assign<W: Copy>(a: ArrayViewD<'_, W>, mut out: ArrayViewMutD<'_, W>) {
    if a.ndim() == 2
        && let (Ok(a), Ok(mut out)) =
            (a.view().into_dimensionality::<Ix2>(), out.view_mut().into_dimensionality::<Ix2>())
    {
        return out.assign(&a);
    }
    out.assign(&a);
}

/// Calls `each` with every element.
pub(in crate::ops) fn each_alone<U: Send>(
    mut out: ArrayViewMutD<'_, U>,
    each: impl Fn(&mut U) + Sync,
) {
    out.iter_mut().for_each(each);
}

pub(in crate::ops) fn longest_axis(shape: &[usize]) -> Axis {
    let longest = shape.iter().enumerate().max_by_key(|(_, len)| **len);
    Axis(longest.map_or(0, |(axis, _)| axis))
}

/// Whether the last axis is the fastest in memory, as it is in the result.
fn is_row_by_row(strides: &[isize]) -> bool {
    let last = strides.last().map_or(0, |last| last.unsigned_abs());
    strides.iter().all(|stride| stride.unsigned_abs() >= last || *stride == 0)
}
