//! What may be passed for which parameter, and arguments with their types erased.

use ndarray::Dimension;
use smallvec::SmallVec;

use super::signature::{Flat, In, InOut, Intent, Out, Parameter, Signature};
use crate::access::Access;
use crate::array::{AnyView, AnyViewMut, AsView, AsViewMut};
use crate::element::Element;
use crate::storage::{Storage, Strided};
use crate::transfer::End;

/// An argument of a launch, its type erased.
#[derive(Debug)]
pub(crate) enum Bound<'a> {
    /// A value's bytes, and what it looks like in a message.
    Scalar {
        words: SmallVec<[u64; 2]>,
        show: fn(&[u64]) -> String,
    },
    Array(BoundArray<'a>),
}

/// An array argument.
#[derive(Debug)]
pub(crate) struct BoundArray<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) view: Strided<'a>,
    /// The view is of all elements.
    pub(crate) is_whole: bool,
    pub(crate) access: Access,
    pub(crate) is_flat: bool,
}

impl<'a> Bound<'a> {
    #[inline]
    fn array(end: End<'a>, access: Access, is_flat: bool) -> Self {
        let End { storage, view } = end;
        let is_whole = view.len() == storage.memory_order().len();
        Self::Array(BoundArray { storage, view, is_whole, access, is_flat })
    }

    fn scalar<E: Element>(value: &E) -> Self {
        let mut words: SmallVec<[u64; 2]> = SmallVec::from_elem(0, size_of::<E>().div_ceil(8));
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..size_of::<E>()]
            .copy_from_slice(bytemuck::bytes_of(value));
        Self::Scalar { words, show: show::<E> }
    }
}

/// The value whose bytes these are.
pub(super) fn value_of<E: Element>(words: &[u64]) -> E {
    bytemuck::pod_read_unaligned(&bytemuck::cast_slice::<u64, u8>(words)[..size_of::<E>()])
}

/// A number as it is written; anything else as its type.
fn show<E: Element>(words: &[u64]) -> String {
    let value: E = value_of(words);
    let value: &dyn std::any::Any = &value;
    macro_rules! number {
        ($($type:ty),+) => {
            $(if let Some(number) = value.downcast_ref::<$type>() {
                return number.to_string();
            })+
        };
    }
    number!(f32, f64, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
    format!("a {}", std::any::type_name::<E>())
}

/// `Self` may be passed for parameter `P`: `&` of an array or view for [`In`], `&mut` for [`InOut`]
/// and [`Out`], a value or `&` of one for a scalar. [`Parameter`] has the table. Sealed by its
/// hidden method's type.
#[diagnostic::on_unimplemented(
    message = "a kernel's `{P}` cannot be given `{Self}`",
    label = "wrong kind of argument",
    note = "`In` takes `&` of an array or view, `InOut` and `Out` take `&mut`; elements and dimensions must be those of the parameter",
    note = "a scalar parameter takes a value of its type, or `&` of one",
    note = "adopt an ndarray array with `SmartArray::from(array)`; copy into an existing one with `a.host_overwrite()?.assign(&x)`"
)]
pub trait Argument<P> {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn bind(&self) -> Bound<'_>;
}

impl<E: Element> Argument<E> for E {
    #[allow(private_interfaces)]
    #[inline]
    fn bind(&self) -> Bound<'_> {
        Bound::scalar(self)
    }
}

impl<E: Element> Argument<E> for &E {
    #[allow(private_interfaces)]
    #[inline]
    fn bind(&self) -> Bound<'_> {
        Bound::scalar(*self)
    }
}

macro_rules! shared_argument {
    ($parameter:ident) => {
        impl<T: Element, A: AnyView<T>> Argument<$parameter<T, Flat>> for &A {
            #[allow(private_interfaces)]
            #[inline]
            fn bind(&self) -> Bound<'_> {
                Bound::array(self.erased(), $parameter::<T, Flat>::ACCESS, true)
            }
        }

        impl<T: Element, D: Dimension, A: AsView<T, D> + AnyView<T>> Argument<$parameter<T, D>>
            for &A
        {
            #[allow(private_interfaces)]
            #[inline]
            fn bind(&self) -> Bound<'_> {
                Bound::array(self.erased(), $parameter::<T, D>::ACCESS, false)
            }
        }
    };
}

macro_rules! exclusive_argument {
    ($parameter:ident) => {
        impl<T: Element, A: AnyViewMut<T>> Argument<$parameter<T, Flat>> for &mut A {
            #[allow(private_interfaces)]
            #[inline]
            fn bind(&self) -> Bound<'_> {
                Bound::array(self.erased(), $parameter::<T, Flat>::ACCESS, true)
            }
        }

        impl<T: Element, D: Dimension, A: AsViewMut<T, D> + AnyViewMut<T>>
            Argument<$parameter<T, D>> for &mut A
        {
            #[allow(private_interfaces)]
            #[inline]
            fn bind(&self) -> Bound<'_> {
                Bound::array(self.erased(), $parameter::<T, D>::ACCESS, false)
            }
        }
    };
}

shared_argument!(In);
exclusive_argument!(InOut);
exclusive_argument!(Out);

/// A tuple of arguments that fits signature `S`, parameter by parameter: functions that launch for
/// others name it.
///
/// ```
/// use resident::{Arguments, Device, Grid, InOut, Kernel, Result, Signature, SmartArray};
///
/// fn launch_aloud<S: Signature>(kernel: &Kernel<S>, grid: Grid, arguments: impl Arguments<S>) -> Result<()> {
///     println!("{} on {:?} blocks", kernel.name(), grid.blocks());
///     kernel.launch(grid, arguments)
/// }
///
/// let double = Kernel::<(InOut<f32>,)>::new("double").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let _here = Device::cpu().enter();
/// let mut array = SmartArray::<f32, _>::ones(10);
/// launch_aloud(&double, Grid::cover(10), (&mut array,))?;
/// assert_eq!(array.host()?.sum(), 20.0);
/// # Ok::<(), resident::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a kernel with the signature `{S}` cannot be launched with `{Self}`",
    label = "not one argument for each parameter",
    note = "pass a tuple with one argument for each parameter, in their order: `(2.0, &x, &mut y)`; a tuple of one takes a comma: `(&mut x,)`"
)]
pub trait Arguments<S: Signature> {
    /// Calls with the arguments in order. They stay where they were bound: moving them costs as
    /// much as binding them.
    #[doc(hidden)]
    #[allow(private_bounds, private_interfaces)]
    fn with_bound<R>(&self, serve: impl FnOnce(&[Bound<'_>]) -> R) -> R;
}

/// Calls a macro with type names and indices, once for each number of parameters.
macro_rules! for_each_arity {
    ($macro:ident) => {
        $macro!(P0 A0 0);
        $macro!(P0 A0 0, P1 A1 1);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13, P14 A14 14);
        $macro!(P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6, P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13, P14 A14 14, P15 A15 15);
    };
}
pub(super) use for_each_arity;

macro_rules! arguments {
    ($($parameter:ident $argument:ident $index:tt),+) => {
        impl<$($parameter: Parameter, $argument: Argument<$parameter>),+> Arguments<($($parameter,)+)> for ($($argument,)+) {
            #[allow(private_bounds, private_interfaces)]
            #[inline]
            fn with_bound<R>(&self, serve: impl FnOnce(&[Bound<'_>]) -> R) -> R {
                serve(&[$(self.$index.bind()),+])
            }
        }
    };
}

for_each_arity!(arguments);
