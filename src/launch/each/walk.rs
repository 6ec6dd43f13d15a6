//! How a body that is called for each element walks its arguments.

use ndarray::{Axis, Dimension};

use super::outputs::{NoOutputs, Outputs};
use crate::launch::arity::for_each_arity;

/// The shape and the strides of an output.
#[derive(Clone, Copy, Debug)]
pub struct WalkedLayout<'s> {
    pub(super) shape: &'s [usize],
    pub(super) strides: &'s [isize],
}

impl WalkedLayout<'_> {
    /// The axes with more than one index.
    pub(super) fn long_axes(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.shape.len()).filter(move |axis| self.shape[*axis] > 1)
    }
}

/// One parameter: an output, of which each call gets an element, or another, which each call gets
/// whole.
pub trait Walked: 'static {
    /// What a call gets.
    type Element<'e>;

    /// `Rest`, and this one if it is an output.
    #[doc(hidden)]
    type OutputsWith<Rest: Outputs>: Outputs;
    /// The argument, or a piece of it.
    #[doc(hidden)]
    type View<'v>: Send;
    #[doc(hidden)]
    type Lanes<'l>;
    /// The elements along one axis.
    #[doc(hidden)]
    type Lane<'l>;
    /// As `Lane`, without gaps.
    #[doc(hidden)]
    type Line<'l>;

    /// `None` if this is no output.
    #[doc(hidden)]
    fn output_layout<'s>(view: &'s Self::View<'_>) -> Option<WalkedLayout<'s>>;
    #[doc(hidden)]
    fn split<'v>(view: Self::View<'v>, axis: Axis, at: usize) -> (Self::View<'v>, Self::View<'v>);
    /// The lanes along an axis, in row-major order of the other axes.
    #[doc(hidden)]
    fn lanes<'l>(view: &'l mut Self::View<'_>, axis: Axis) -> Self::Lanes<'l>;
    #[doc(hidden)]
    fn next_lane<'l>(lanes: &mut Self::Lanes<'l>) -> Self::Lane<'l>;
    #[doc(hidden)]
    fn line<'l>(lane: &'l mut Self::Lane<'_>, len: usize) -> Option<Self::Line<'l>>;
    #[doc(hidden)]
    fn of_line<'e>(line: &'e mut Self::Line<'_>, index: usize) -> Self::Element<'e>;
    #[doc(hidden)]
    fn of_lane<'e>(lane: &'e mut Self::Lane<'_>, index: usize) -> Self::Element<'e>;
}

/// The parameters of a signature, in order.
pub trait Walk: 'static {
    /// What a call gets.
    type Elements<'e>;

    #[doc(hidden)]
    type Outputs: Outputs;
    #[doc(hidden)]
    type Views<'v>: Send;

    /// That of the outputs, which have one shape.
    #[doc(hidden)]
    fn output_layout<'s>(views: &'s Self::Views<'_>) -> WalkedLayout<'s>;
    #[doc(hidden)]
    fn split<'v>(
        views: Self::Views<'v>,
        axis: Axis,
        at: usize,
    ) -> (Self::Views<'v>, Self::Views<'v>);
    /// Calls `each` for each element, along an axis: the last, if `IS_LAST`. The outputs have this
    /// shape, and the index of their first element is `first`.
    #[doc(hidden)]
    fn walk<D: Dimension, const IS_LAST: bool>(
        views: Self::Views<'_>,
        first: &D,
        shape: &D,
        axis: usize,
        each: &impl for<'e> Fn(D::Pattern, Self::Elements<'e>),
    );
}

/// An index, moved along an axis. The compiler keeps it in registers where it knows the axis.
#[inline(always)]
fn moved<D: Dimension, const IS_LAST: bool>(index: &D, axis: usize, by: usize) -> D::Pattern {
    let mut index = index.clone();
    let axis = match D::NDIM {
        _ if IS_LAST => index.ndim().wrapping_sub(1),
        Some(2) => 0,
        _ => axis,
    };
    // An array without axes has none to move along.
    if let Some(number) = index.slice_mut().get_mut(axis) {
        *number += by;
    }
    index.into_pattern()
}

/// Moves an index to the next lane, in row-major order.
#[inline]
fn to_next_lane<D: Dimension>(index: &mut D, first: &D, shape: &D, lane_axis: usize) {
    for axis in (0..shape.ndim()).rev().filter(|axis| *axis != lane_axis) {
        index[axis] += 1;
        if index[axis] - first[axis] < shape[axis] {
            return;
        }
        index[axis] = first[axis];
    }
}

macro_rules! outputs_of {
    () => { NoOutputs };
    ($first:ident $($rest:ident)*) => { $first::OutputsWith<outputs_of!($($rest)*)> };
}

macro_rules! walk {
    ($($walked:ident $lane:ident $index:tt),+) => {
        #[allow(non_snake_case, reason = "lanes are named as their types")]
        impl<$($walked: Walked),+> Walk for ($($walked,)+) {
            type Elements<'e> = ($($walked::Element<'e>,)+);
            type Outputs = outputs_of!($($walked)+);
            type Views<'v> = ($($walked::View<'v>,)+);

            fn output_layout<'s>(views: &'s Self::Views<'_>) -> WalkedLayout<'s> {
                let layouts = [$($walked::output_layout(&views.$index)),+];
                layouts.into_iter().flatten().next().expect("there is an output (`Indexed`)")
            }

            fn split<'v>(
                views: Self::Views<'v>,
                axis: Axis,
                at: usize,
            ) -> (Self::Views<'v>, Self::Views<'v>) {
                let halves = ($($walked::split(views.$index, axis, at),)+);
                (($(halves.$index.0,)+), ($(halves.$index.1,)+))
            }

            fn walk<D: Dimension, const IS_LAST: bool>(
                mut views: Self::Views<'_>,
                first: &D,
                shape: &D,
                axis: usize,
                each: &impl for<'e> Fn(D::Pattern, Self::Elements<'e>),
            ) {
                let len = shape.slice().get(axis).copied().unwrap_or(1);
                $(let mut $walked = $walked::lanes(&mut views.$index, Axis(axis));)+
                let mut index = first.clone();
                for _ in 0..shape.size() / len {
                    $(let mut $lane = $walked::next_lane(&mut $walked);)+
                    if let ($(Some(mut $lane),)+) = ($($walked::line(&mut $lane, len),)+) {
                        for at in 0..len {
                            let index = moved::<D, IS_LAST>(&index, axis, at);
                            each(index, ($($walked::of_line(&mut $lane, at),)+));
                        }
                    } else {
                        for at in 0..len {
                            let index = moved::<D, IS_LAST>(&index, axis, at);
                            each(index, ($($walked::of_lane(&mut $lane, at),)+));
                        }
                    }
                    to_next_lane(&mut index, first, shape, axis);
                }
            }
        }
    };
}

for_each_arity!(walk);
