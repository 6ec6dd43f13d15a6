//! The rules for which arguments a launch accepts for which parameters, and their encoding.
//!
//! The types that stand for the arguments of a launch, in the order in which it makes them:
//!
//! 1. `&SmartArray`, `&mut SmartViewMut`, `2.0`, ...: what the caller passes, an [`Argument`] for
//!    its parameter. The tuple of them are [`Arguments`].
//! 2. [`BoundArgument`]: an argument and its parameter, without their types. For an array it is a
//!    [`BoundArray`]: its storage, its strided view, and how the kernel accesses it.
//! 3. `transfer::Request`: the elements of a bound array, and the call that needs them. `transfer`
//!    answers with the address of the device's copy.
//! 4. `transfer::LaunchedArrays`: what `transfer` keeps of the acquired arrays until the launch is
//!    queued and they are marked.
//! 5. What the backend gets: the words of all arguments in order, and for each array a
//!    `PackedArray`, its address and where its words begin. A `LaunchCall` borrows them; a launch
//!    that runs later owns them as `PackedArguments`.
//! 6. [`Unpacker`](unpack::Unpacker): makes slices, views and scalars of them for a host body.

#![allow(
    private_bounds,
    private_interfaces,
    reason = "hidden methods of sealed traits name private types"
)]

use std::convert::Infallible;

use ndarray::Dimension;

use self::bound::{BoundArgument, BoundArray};
use super::arity::for_each_arity;
use super::signature::{Flat, In, InOut, Out, Signature};
use crate::array::{AnyView, AnyViewMut, WithDimension};
use crate::element::Element;
use resident_backend::grid::Grid;

pub(super) mod bound;
pub(super) mod unpack;

/// `Self` may be passed for parameter `P`: `&` of an array or view for [`In`], `&mut` for [`InOut`]
/// and [`Out`], a scalar or a reference to one for a scalar. [`Parameter`](crate::Parameter) has a
/// table. Sealed.
#[diagnostic::on_unimplemented(
    message = "a kernel's `{P}` cannot be given `{Self}`",
    note = "`In` takes `&`, and `InOut` and `Out` take `&mut`, of an array or view of this library \
            with the parameter's elements and axes (`&*x` of an `Arc`, a `Box` or a lock's guard): \
            `ops::cast` converts elements, and `SmartArray::from(array)` adopts an ndarray array; \
            a scalar takes a value of its type: `1.0`, not `1`, for an `f32`"
)]
pub trait Argument<P>: Bind<P> {}

// Errors of the implementations of `Bind` become those of `Argument`, without a list of types.
#[diagnostic::do_not_recommend]
impl<P, A: Bind<P>> Argument<P> for A {}

/// What an [`Argument`] does.
pub trait Bind<P> {
    #[doc(hidden)]
    fn bind(&self) -> BoundArgument<'_>;
}

impl<E: Element> Bind<E> for E {
    #[inline]
    fn bind(&self) -> BoundArgument<'_> {
        BoundArgument::scalar(self)
    }
}

impl<E: Element> Bind<E> for &E {
    #[inline]
    fn bind(&self) -> BoundArgument<'_> {
        BoundArgument::scalar(*self)
    }
}

macro_rules! array_argument {
    ($parameter:ident, $borrow:ty, $any_view:ident) => {
        impl<T: Element, A: $any_view<T>> Bind<$parameter<T, Flat>> for $borrow {
            #[inline]
            fn bind(&self) -> BoundArgument<'_> {
                let access = $parameter::<T, Flat>::ACCESS;
                BoundArgument::Array(BoundArray::flat(self.erased(), self.home(), access))
            }
        }

        impl<T: Element, D: Dimension, A: WithDimension<T, D> + $any_view<T>> Bind<$parameter<T, D>>
            for $borrow
        {
            #[inline]
            fn bind(&self) -> BoundArgument<'_> {
                let access = $parameter::<T, D>::ACCESS;
                BoundArgument::Array(BoundArray::sized(self.erased(), self.home(), access))
            }
        }
    };
}

array_argument!(In, &A, AnyView);
array_argument!(InOut, &mut A, AnyViewMut);
array_argument!(Out, &mut A, AnyViewMut);

/// A tuple of arguments for the signature `S`, one per parameter. Use this trait as a bound in
/// functions that are generic over the kernel's arguments.
///
/// ```
/// use resident::{Arguments, Device, Grid, InOut, Kernel, Result, Signature, SmartArray};
///
/// fn print_and_launch<S: Signature>(
///     kernel: &Kernel<S>,
///     grid: Grid,
///     arguments: impl Arguments<S>,
/// ) -> Result<()> {
///     println!("{} on {:?} blocks", kernel.name(), grid.blocks());
///     kernel.launch(grid, arguments)
/// }
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let _here = Device::cpu().enter();
/// let mut array = SmartArray::<f32, _>::ones(10);
/// print_and_launch(&double, Grid::cover(10), (&mut array,))?;
/// assert_eq!(array.host()?.sum(), 20.0);
/// # Ok::<(), resident::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a kernel with the signature `{S}` cannot be launched with `{Self}`",
    label = "after the grid comes a tuple with one argument for each parameter: `(2.0, &mut y)`, \
             or `(&mut y,)` of one"
)]
pub trait Arguments<S: Signature> {
    /// Calls `serve` with the bound arguments in order. The bound arguments stay in this stack
    /// frame, since moving them costs as much as binding them.
    #[doc(hidden)]
    fn with_bound<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R;
}

// One implementation for all types, and bounds in two steps, so that rustc lists no tuples: it
// names the argument that does not fit its parameter, else that there is not one for each.
impl<S: Signature, A: OneForEach<S> + BindAll<A::Parameters>> Arguments<S> for A {
    #[inline]
    fn with_bound<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R {
        self.bind_all(serve)
    }
}

/// A tuple of as many arguments as the signature `S` has parameters.
#[diagnostic::on_unimplemented(
    message = "a kernel with the signature `{S}` cannot be launched with `{Self}`",
    label = "after the grid comes a tuple with one argument for each parameter: `(2.0, &mut y)`, \
             or `(&mut y,)` of one"
)]
pub trait OneForEach<S> {
    /// The signature, if there is one.
    type Parameters;
}

/// A tuple of an [`Argument`] for each of the parameters `P`.
pub trait BindAll<P> {
    #[doc(hidden)]
    fn bind_all<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R;
}

/// Where there is not one argument for each parameter, `P` is unknown, and rustc would report that
/// too if no type, or only one, could be meant.
impl<A> BindAll<Infallible> for A {
    fn bind_all<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R {
        serve(&[])
    }
}

macro_rules! arguments {
    ($($parameter:ident $argument:ident $index:tt),+) => {
        #[diagnostic::do_not_recommend]
        impl<$($parameter, $argument),+> OneForEach<($($parameter,)+)> for ($($argument,)+) {
            type Parameters = ($($parameter,)+);
        }

        impl<$($parameter, $argument: Argument<$parameter>),+>
            BindAll<($($parameter,)+)> for ($($argument,)+)
        {
            #[inline]
            fn bind_all<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R {
                serve(&[$(self.$index.bind()),+])
            }
        }
    };
}

for_each_arity!(arguments);

/// What a launch takes as its grid: a [`Grid`], and what converts into one, such as a number of
/// threads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a grid",
    note = "the grid comes before the tuple of arguments, and behind the stream of `launch_on`: \
            `launch(Grid::cover(n), (&x, &mut y))`; numbers of threads are grids too: `n`, \
            `(rows, columns)`"
)]
pub trait IntoGrid {
    /// The grid.
    fn into_grid(self) -> Grid;
}

#[diagnostic::do_not_recommend]
impl<G: Into<Grid>> IntoGrid for G {
    #[inline]
    fn into_grid(self) -> Grid {
        self.into()
    }
}
