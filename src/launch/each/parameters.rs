//! What a body that is called for each element gets of each kind of parameter.

use ndarray::iter::LanesIterMut;
use ndarray::{ArrayView, ArrayViewMut, ArrayViewMut1, Axis, Dimension, Ix1};

use super::outputs::Outputs;
use super::walk::{Walked, WalkedLayout};
use crate::element::Element;
use crate::launch::signature::{Flat, In, InOut, Out};

macro_rules! whole {
    ([$($generics:tt)*] $parameter:ty, $whole:ty) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Walked for $parameter {
            type Element<'v> = $whole;
            type OutputsWith<Rest: Outputs> = Rest;
            type View<'v> = $whole;
            type Lanes<'v> = $whole;
            type Lane<'v> = $whole;
            type Line<'v> = $whole;

            fn output_layout<'s>(_view: &'s Self::View<'_>) -> Option<WalkedLayout<'s>> {
                None
            }
            fn split<'v>(
                view: Self::View<'v>,
                _axis: Axis,
                _at: usize,
            ) -> (Self::View<'v>, Self::View<'v>) {
                (view.clone(), view)
            }
            fn lanes<'l>(view: &'l mut Self::View<'_>, _axis: Axis) -> Self::Lanes<'l> {
                view.clone()
            }
            #[inline]
            fn next_lane<'l>(lanes: &mut Self::Lanes<'l>) -> Self::Lane<'l> {
                lanes.clone()
            }
            #[inline]
            fn line<'l>(lane: &'l mut Self::Lane<'_>, _len: usize) -> Option<Self::Line<'l>> {
                Some(lane.clone())
            }
            #[inline(always)]
            fn of_line<'e>(line: &'e mut Self::Line<'_>, _index: usize) -> Self::Element<'e> {
                line.clone()
            }
            #[inline(always)]
            fn of_lane<'e>(lane: &'e mut Self::Lane<'_>, _index: usize) -> Self::Element<'e> {
                lane.clone()
            }
        }
    };
}

whole!([E: Element] E, E);
whole!([T: Element] In<T, Flat>, &'v [T]);
whole!([T: Element, D: Dimension + 'static] In<T, D>, ArrayView<'v, T, D>);

macro_rules! output {
    ([$($generics:tt)*] $parameter:ty, $dimension:ty, $outputs:ty) => {
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Walked for $parameter {
            type Element<'e> = &'e mut T;
            type OutputsWith<Rest: Outputs> = $outputs;
            type View<'v> = ArrayViewMut<'v, T, $dimension>;
            type Lanes<'l> = LanesIterMut<'l, T, <$dimension as Dimension>::Smaller>;
            type Lane<'l> = ArrayViewMut1<'l, T>;
            type Line<'l> = &'l mut [T];

            fn output_layout<'s>(view: &'s Self::View<'_>) -> Option<WalkedLayout<'s>> {
                Some(WalkedLayout { shape: view.shape(), strides: view.strides() })
            }
            fn split<'v>(
                view: Self::View<'v>,
                axis: Axis,
                at: usize,
            ) -> (Self::View<'v>, Self::View<'v>) {
                view.split_at(axis, at)
            }
            fn lanes<'l>(view: &'l mut Self::View<'_>, axis: Axis) -> Self::Lanes<'l> {
                view.lanes_mut(axis).into_iter()
            }
            #[inline]
            fn next_lane<'l>(lanes: &mut Self::Lanes<'l>) -> Self::Lane<'l> {
                lanes.next().expect("all outputs have one shape")
            }
            #[inline]
            fn line<'l>(lane: &'l mut Self::Lane<'_>, len: usize) -> Option<Self::Line<'l>> {
                lane.as_slice_mut()?.get_mut(..len)
            }
            #[inline(always)]
            fn of_line<'e>(line: &'e mut Self::Line<'_>, index: usize) -> Self::Element<'e> {
                &mut line[index]
            }
            #[inline(always)]
            fn of_lane<'e>(lane: &'e mut Self::Lane<'_>, index: usize) -> Self::Element<'e> {
                &mut lane[index]
            }
        }
    };
}

macro_rules! outputs {
    ($($parameter:ident),+) => {
        $(output!([T: Element] $parameter<T, Flat>, Ix1, Rest::WithFlat);
        output!([T: Element, D: Dimension + 'static] $parameter<T, D>, D, Rest::WithSized<D>);)+
    };
}

outputs!(InOut, Out);
