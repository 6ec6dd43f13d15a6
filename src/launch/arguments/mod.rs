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

use ndarray::Dimension;

use self::bound::{BoundArgument, BoundArray};
use super::arity::for_each_arity;
use super::signature::{Flat, In, InOut, Out, Parameter, Signature};
use crate::array::{AnyView, AnyViewMut, WithDimension};
use crate::element::Element;

pub(super) mod bound;
pub(super) mod unpack;

/// `Self` may be passed for parameter `P`: `&` of an array or view for [`In`], `&mut` for [`InOut`]
/// and [`Out`], a scalar or a reference to one for a scalar. [`Parameter`] has a table. Sealed.
#[diagnostic::on_unimplemented(
    message = "a kernel's `{P}` cannot be given `{Self}`",
    label = "wrong kind of argument",
    note = "`In` takes `&` of an array or view, `InOut` and `Out` take `&mut`; elements and \
            dimensions must be those of the parameter",
    note = "an array in an `Arc`, a `Box` or the guard of a lock is passed as `&*x` or `&mut *x`",
    note = "a scalar parameter takes a value of its type, or `&` of one",
    note = "adopt an ndarray array with `SmartArray::from(array)`; copy into an existing one with \
            `a.host_overwrite()?.assign(&x)`"
)]
pub trait Argument<P> {
    #[doc(hidden)]
    fn bind(&self) -> BoundArgument<'_>;
}

impl<E: Element> Argument<E> for E {
    #[inline]
    fn bind(&self) -> BoundArgument<'_> {
        BoundArgument::scalar(self)
    }
}

impl<E: Element> Argument<E> for &E {
    #[inline]
    fn bind(&self) -> BoundArgument<'_> {
        BoundArgument::scalar(*self)
    }
}

macro_rules! array_argument {
    ($parameter:ident, $borrow:ty, $any_view:ident) => {
        impl<T: Element, A: $any_view<T>> Argument<$parameter<T, Flat>> for $borrow {
            #[inline]
            fn bind(&self) -> BoundArgument<'_> {
                let access = $parameter::<T, Flat>::ACCESS;
                BoundArgument::Array(BoundArray::flat(self.erased(), self.home(), access))
            }
        }

        impl<T: Element, D: Dimension, A: WithDimension<T, D> + $any_view<T>>
            Argument<$parameter<T, D>> for $borrow
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
    label = "not one argument for each parameter",
    note = "pass a tuple with one argument for each parameter, in order: `(2.0, &x, &mut y)`; a \
            tuple of one takes a comma: `(&mut x,)`"
)]
pub trait Arguments<S: Signature> {
    /// Calls `serve` with the bound arguments in order. The bound arguments stay in this stack
    /// frame, since moving them costs as much as binding them.
    #[doc(hidden)]
    fn with_bound<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R;
}

macro_rules! arguments {
    ($($parameter:ident $argument:ident $index:tt),+) => {
        impl<$($parameter: Parameter, $argument: Argument<$parameter>),+>
            Arguments<($($parameter,)+)> for ($($argument,)+)
        {
            #[inline]
            fn with_bound<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R {
                serve(&[$(self.$index.bind()),+])
            }
        }
    };
}

for_each_arity!(arguments);
