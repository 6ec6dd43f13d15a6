//! The parameters of [`Elementwise`](super::Elementwise) and their tuples.

#![allow(private_interfaces, reason = "hidden items of sealed traits name private types")]

use ndarray::{ArrayViewD, ArrayViewMutD, Axis, IxDyn};
use smallvec::SmallVec;

use crate::launch::{Flat, In, InOut, Out, Parameter, Signature, for_each_arity};
use crate::ops::arithmetic::Arithmetic;
use crate::ops::c_type::CType;
use crate::ops::elementwise::host::longest_axis;
use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// How a text uses a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    Scalar,
    Read,
    Change,
    Write,
}

impl Use {
    pub(crate) fn is_output(self) -> bool {
        matches!(self, Self::Change | Self::Write)
    }
}

/// A parameter, for the CUDA C that is written for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub(crate) how: Use,
    pub(crate) c: CType,
}

/// One parameter of an [`Elementwise`](super::Elementwise): a scalar, or an array without a
/// dimension, with elements `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, `f16`, `bf16`,
/// `Complex<f32>` or `Complex<f64>`. Sealed.
///
/// | parameter | in the text | closure of `host` | argument |
/// |---|---|---|---|
/// | `f32` | a value | `f32` | `2.0`, `&factor` |
/// | `In<f32>` | a value | `f32` | `&array`, `&view` |
/// | `InOut<f32>` | a variable with the element's value | `&mut f32` | `&mut array`, `&mut view` |
/// | `Out<f32>` | a variable that is 0 at first | `&mut f32`, an earlier element or 0 | `&mut array` |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of an `Elementwise` or a `Reduction`",
    note = "parameters are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, `half`'s `f16` and \
            `bf16`, `num_complex`'s `Complex<f32>` and `Complex<f64>`, and `In`, `InOut` and `Out` \
            of these, without a dimension"
)]
pub trait ElementwiseParameter: Parameter {
    /// What the closure of [`Elementwise::host`](super::Elementwise::host) gets for one element.
    type Element<'e>;

    /// The parameter of the kernels, which take any number of axes.
    #[doc(hidden)]
    type Sized: Parameter;
    /// What the body in Rust has of an argument, and of a line of it without gaps.
    #[doc(hidden)]
    type View<'v>: Send;
    #[doc(hidden)]
    type Line<'l>;
    #[doc(hidden)]
    const DECLARED: Declared;

    #[doc(hidden)]
    fn view<'v>(host: <Self::Sized as Parameter>::Host<'v>) -> Self::View<'v>;
    /// The shape, of an array.
    #[doc(hidden)]
    fn shape<'s>(view: &'s Self::View<'_>) -> Option<&'s [usize]>;
    #[doc(hidden)]
    fn split<'v>(view: Self::View<'v>, axis: Axis, at: usize) -> (Self::View<'v>, Self::View<'v>);
    /// What has this index of the first axis.
    #[doc(hidden)]
    fn inner<'i>(view: &'i mut Self::View<'_>, index: usize) -> Self::View<'i>;
    /// The elements of a view of one axis, if it has no gaps.
    #[doc(hidden)]
    fn line<'l>(view: &'l mut Self::View<'_>, len: usize) -> Option<Self::Line<'l>>;
    #[doc(hidden)]
    fn of_line<'e>(line: &'e mut Self::Line<'_>, index: usize) -> Self::Element<'e>;
    /// An element of a view of one axis.
    #[doc(hidden)]
    fn of_view<'e>(view: &'e mut Self::View<'_>, index: usize) -> Self::Element<'e>;
}

#[diagnostic::do_not_recommend]
impl<T: Arithmetic> ElementwiseParameter for T {
    type Element<'e> = T;
    type Sized = T;
    type View<'v> = T;
    type Line<'l> = T;
    const DECLARED: Declared = Declared { how: Use::Scalar, c: T::C };

    fn view<'v>(host: <Self::Sized as Parameter>::Host<'v>) -> Self::View<'v> {
        host
    }
    fn shape(_view: &T) -> Option<&[usize]> {
        None
    }
    fn split<'v>(
        view: Self::View<'v>,
        _axis: Axis,
        _at: usize,
    ) -> (Self::View<'v>, Self::View<'v>) {
        (view, view)
    }
    fn inner(view: &mut T, _index: usize) -> T {
        *view
    }
    fn line(view: &mut T, _len: usize) -> Option<T> {
        Some(*view)
    }
    #[inline]
    fn of_line(line: &mut T, _index: usize) -> T {
        *line
    }
    #[inline]
    fn of_view(view: &mut T, _index: usize) -> T {
        *view
    }
}

#[diagnostic::do_not_recommend]
impl<T: Arithmetic> ElementwiseParameter for In<T, Flat> {
    type Element<'e> = T;
    type Sized = In<T, IxDyn>;
    type View<'v> = ArrayViewD<'v, T>;
    type Line<'l> = &'l [T];
    const DECLARED: Declared = Declared { how: Use::Read, c: T::C };

    fn view<'v>(host: <Self::Sized as Parameter>::Host<'v>) -> Self::View<'v> {
        host
    }
    fn shape<'s>(view: &'s ArrayViewD<'_, T>) -> Option<&'s [usize]> {
        Some(view.shape())
    }
    fn split<'v>(view: Self::View<'v>, axis: Axis, at: usize) -> (Self::View<'v>, Self::View<'v>) {
        view.split_at(axis, at)
    }
    fn inner<'i>(view: &'i mut ArrayViewD<'_, T>, index: usize) -> ArrayViewD<'i, T> {
        view.index_axis(Axis(0), index)
    }
    fn line<'l>(view: &'l mut ArrayViewD<'_, T>, len: usize) -> Option<&'l [T]> {
        view.as_slice()?.get(..len)
    }
    #[inline]
    fn of_line(line: &mut &[T], index: usize) -> T {
        line[index]
    }
    #[inline]
    fn of_view(view: &mut ArrayViewD<'_, T>, index: usize) -> T {
        view[[index]]
    }
}

macro_rules! output {
    ($parameter:ident, $how:ident) => {
        #[diagnostic::do_not_recommend]
        impl<T: Arithmetic> ElementwiseParameter for $parameter<T, Flat> {
            type Element<'e> = &'e mut T;
            type Sized = $parameter<T, IxDyn>;
            type View<'v> = ArrayViewMutD<'v, T>;
            type Line<'l> = &'l mut [T];
            const DECLARED: Declared = Declared { how: Use::$how, c: T::C };

            fn view<'v>(host: <Self::Sized as Parameter>::Host<'v>) -> Self::View<'v> {
                host
            }
            fn shape<'s>(view: &'s ArrayViewMutD<'_, T>) -> Option<&'s [usize]> {
                Some(view.shape())
            }
            fn split<'v>(
                view: Self::View<'v>,
                axis: Axis,
                at: usize,
            ) -> (Self::View<'v>, Self::View<'v>) {
                view.split_at(axis, at)
            }
            fn inner<'i>(view: &'i mut ArrayViewMutD<'_, T>, index: usize) -> ArrayViewMutD<'i, T> {
                view.index_axis_mut(Axis(0), index)
            }
            fn line<'l>(view: &'l mut ArrayViewMutD<'_, T>, len: usize) -> Option<&'l mut [T]> {
                view.as_slice_mut()?.get_mut(..len)
            }
            #[inline]
            fn of_line<'e>(line: &'e mut &mut [T], index: usize) -> &'e mut T {
                &mut line[index]
            }
            #[inline]
            fn of_view<'e>(view: &'e mut ArrayViewMutD<'_, T>, index: usize) -> &'e mut T {
                &mut view[[index]]
            }
        }
    };
}

output!(InOut, Change);
output!(Out, Write);

/// A tuple of 1 to 16 [`ElementwiseParameter`]s, as in [`Elementwise`](super::Elementwise)'s angle
/// brackets. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the parameters of an `Elementwise`",
    label = "expected a tuple of 1 to 16 parameters",
    note = "a tuple of one takes a comma: `Elementwise::<(InOut<f32>,)>`",
    note = "parameters are `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, `half`'s `f16` and \
            `bf16`, `num_complex`'s `Complex<f32>` and `Complex<f64>`, and `In`, `InOut` and `Out` \
            of these, without a dimension"
)]
pub trait ElementwiseSignature: Signature {
    /// The tuple that the closure of [`Elementwise::host`](super::Elementwise::host) gets for one
    /// element of each.
    type Elements<'e>;

    #[doc(hidden)]
    type Sized: Signature;
    #[doc(hidden)]
    const DECLARED: &'static [Declared];

    /// Calls `each` with the elements of each index, on all cores if there are many.
    #[doc(hidden)]
    fn for_each(
        host: <Self::Sized as Signature>::Host<'_>,
        each: &(impl for<'e> Fn(Self::Elements<'e>) + Sync),
    );
}

macro_rules! signature {
    ($($parameter:ident $view:ident $index:tt),+) => {
        #[allow(non_snake_case, reason = "views are named as their types")]
        #[allow(clippy::too_many_arguments, reason = "there is one for each parameter")]
        impl<$($parameter: ElementwiseParameter),+> ElementwiseSignature for ($($parameter,)+) {
            type Elements<'e> = ($($parameter::Element<'e>,)+);
            type Sized = ($($parameter::Sized,)+);
            const DECLARED: &'static [Declared] = &[$($parameter::DECLARED),+];

            fn for_each(
                host: <Self::Sized as Signature>::Host<'_>,
                each: &(impl for<'e> Fn(Self::Elements<'e>) + Sync),
            ) {
                /// The shape that all arrays have.
                fn shape<$($parameter: ElementwiseParameter),+>(
                    $($view: &$parameter::View<'_>),+
                ) -> SmallVec<[usize; 6]> {
                    let shapes = [$($parameter::shape($view)),+];
                    shapes.into_iter().flatten().next().unwrap_or_default().into()
                }

                fn walk<$($parameter: ElementwiseParameter,)+ Each>(
                    $(mut $view: $parameter::View<'_>,)+
                    each: &Each,
                ) where
                    Each: for<'e> Fn(($($parameter::Element<'e>,)+)) + Sync,
                {
                    let shape = shape::<$($parameter),+>($(&$view),+);
                    let [len] = shape[..] else {
                        for index in 0..shape.first().copied().unwrap_or(0) {
                            $(let $view = $parameter::inner(&mut $view, index);)+
                            walk::<$($parameter,)+ Each>($($view,)+ each);
                        }
                        return;
                    };
                    if let ($(Some(mut $view),)+) = ($($parameter::line(&mut $view, len),)+) {
                        for index in 0..len {
                            each(($($parameter::of_line(&mut $view, index),)+));
                        }
                        return;
                    }
                    for index in 0..len {
                        each(($($parameter::of_view(&mut $view, index),)+));
                    }
                }

                /// The halves of a piece that is longer than a task.
                fn halves<'v, $($parameter: ElementwiseParameter),+>(
                    ($($view,)+): ($($parameter::View<'v>,)+),
                ) -> Halves<($($parameter::View<'v>,)+)> {
                    let shape = shape::<$($parameter),+>($(&$view),+);
                    if shape.iter().product::<usize>() <= TASK_LEN {
                        return (($($view,)+), None);
                    }
                    let axis = longest_axis(&shape);
                    let middle = shape[axis.0] / 2;
                    $(let $view = $parameter::split($view, axis, middle);)+
                    (($($view.0,)+), Some(($($view.1,)+)))
                }

                $(let $view = $parameter::view(host.$index);)+
                let shape = shape::<$($parameter),+>($(&$view),+);
                if shape.iter().product::<usize>() < PARALLEL_LEN_MIN {
                    return walk::<$($parameter,)+ _>($($view,)+ each);
                }
                let pieces = pieces_of(($($view,)+), &halves::<$($parameter),+>);
                each_piece(pieces, |($($view,)+)| walk::<$($parameter,)+ _>($($view,)+ each));
            }
        }
    };
}

for_each_arity!(signature);
