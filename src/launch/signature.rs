//! Kernel signatures: tuples of scalars, `In`, `InOut`, `Out`, and slices of them.

#![allow(private_interfaces, reason = "hidden methods of sealed traits name private types")]

use std::marker::PhantomData;

use ndarray::{ArrayView, ArrayViewMut, Dimension};

use super::arguments::bound::{BoundArgument, BoundArray};
use super::arguments::unpack::Unpacker;
use super::arity::for_each_arity;
use super::each::{Walk, Walked};
use crate::element::Element;
use resident_backend::{ElementLayout, ParameterLayout};
use resident_core::Access;
use resident_core::layout::Strided;

/// Marks a parameter without a dimension, which is flat: a slice of contiguous elements in memory
/// order. `In<f32>` is `In<f32, Flat>`.
#[derive(Clone, Copy, Debug)]
pub enum Flat {}

/// An array that the kernel reads, passed as `&array`. The launch uploads the bytes that are stale
/// on the device.
///
/// With a dimension the parameter is *sized*: the host body gets an ndarray view, CUDA C gets a
/// `resident::View1` to `View6` by value, and the argument may have any layout, gaps included.
/// Without a dimension it is *flat*: the host body gets `&[T]`, CUDA C gets a bare pointer, and the
/// argument must be contiguous. All flat arguments of a launch must have the same axis order, since
/// their elements correspond by position in memory.
///
/// ```
/// use resident::{Device, Error, Grid, In, Kernel, Out, SmartArray, ndarray::{Array2, Ix2, s}};
///
/// let sized = Kernel::<(In<f32, Ix2>, Out<f32>)>::new("sized")
///     .host(|_grid, (table, sum)| sum[0] = table.sum());
/// let flat = Kernel::<(In<f32>, Out<f32>)>::new("flat")
///     .host(|_grid, (xs, sum)| sum[0] = xs.iter().sum());
///
/// let _here = Device::cpu().enter();
/// let table = SmartArray::from(Array2::<f32>::ones((4, 5)));
/// let mut sum = SmartArray::<f32, _>::uninit(1);
/// flat.launch(Grid::cover(1), (&table, &mut sum))?;             // any number of axes
/// assert_eq!(sum.get(0)?, 20.0);
/// let columns = table.slice(s![.., 1..3]);
/// sized.launch(Grid::cover(1), (&columns, &mut sum))?;
/// assert_eq!(sum.get(0)?, 8.0);
/// let refused = flat.launch(Grid::cover(1), (&columns, &mut sum));
/// assert!(matches!(refused, Err(Error::NotContiguous { .. })));
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Debug)]
pub struct In<T, D = Flat>(PhantomData<fn() -> (T, D)>);

/// An array that the kernel reads and writes, passed as `&mut array`. The launch uploads the bytes
/// that are stale on the device; then the device has the newest contents. Sized or flat, as for
/// [`In`]: the host body gets an `ArrayViewMut` or `&mut [T]`. The example of
/// [`Kernel`](crate::Kernel) shows its use.
#[derive(Debug)]
pub struct InOut<T, D = Flat>(PhantomData<fn() -> (T, D)>);

/// An array that the kernel overwrites without reading it, passed as `&mut array`. The array may be
/// uninitialised. The launch uploads nothing; the device then has the newest contents. Sized or
/// flat, as for [`In`]: the host body gets an `ArrayViewMut` or `&mut [T]`.
///
/// The body must write every element. An `Out` counts as written once its kernel was launched. What
/// a body in Rust leaves out has earlier contents of the same array, or zeros, never contents of
/// another array. What CUDA C leaves out has whatever the memory held: that is for the author of
/// the `unsafe { .cuda(..) }`. In debug builds both have poison on embedded devices (see
/// [`Emulation::poison`](crate::Emulation::poison)).
///
/// A device that checks kernels ([`Emulation::sanitize`](crate::Emulation::sanitize)) knows which
/// elements a body in CUDA C did not write: who reads them gets
/// [`Uninitialised`](crate::Error::Uninitialised), the host too, until they are written.
///
/// ```
/// use resident::{Device, Grid, Kernel, Out, SmartArray};
///
/// let number = Kernel::<(u32, Out<u32>)>::new("number")
///     .host(|_grid, (first, xs)| xs.iter_mut().zip(first..).for_each(|(x, n)| *x = n));
/// let _here = Device::cpu().enter();
/// let mut xs = SmartArray::from(vec![0_u32; 1000]);
/// number.launch(Grid::cover(xs.len()), (7, &mut xs))?;
/// assert_eq!((xs.get(2)?, xs.traffic().to_device.bytes), (9, 0));   // no upload
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Debug)]
pub struct Out<T, D = Flat>(PhantomData<fn() -> (T, D)>);

/// An array argument of a [`Kernel::require`](crate::Kernel::require) closure: the array's layout
/// without its contents, which may be on a device.
///
/// ```
/// use resident::{InOut, Kernel, ndarray::Ix2};
///
/// let fft = Kernel::<(InOut<f32, Ix2>,)>::new("fft")
///     .require("the length of a row is a power of two", |_grid, (table,)| {
///         table.shape()[1].is_power_of_two()
///     })
///     .require("rows are contiguous", |_grid, (table,)| table.strides()[1] == 1);
/// # drop(fft);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    view: Strided<'a>,
}

impl<'a> Described<'a> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.view.len() as usize
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of each axis.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.view.shape
    }

    /// The stride of each axis, in elements. It is negative if the axis runs backwards.
    #[must_use]
    pub fn strides(&self) -> &'a [isize] {
        self.view.strides
    }
}

/// One parameter of a kernel: any [`Element`] by value, [`In`], [`InOut`] or [`Out`], or a
/// [`Slice`](crate::launch::Slice) of one of the three. Sealed.
///
/// | parameter | host body | CUDA C | argument |
/// |---|---|---|---|
/// | `f32`, or another element | `f32` | `float` | `2.0`, `&factor` |
/// | `In<f32>` | `&[f32]` | `const float *` | `&array`, `&view` |
/// | `InOut<f32>` | `&mut [f32]` | `float *` | `&mut array`, `&mut view` |
/// | `Slice<In<f32>>` | `&[f32]` | `const float *`, `unsigned long long` | `&array`, `&view` |
/// | `In<f32, Ix2>` | `ArrayView2<f32>` | `resident::View2<const float>` | `&array`, `&view` |
/// | `InOut<f32, Ix2>` | `ArrayViewMut2<f32>` | `resident::View2<float>` | `&mut array` |
///
/// In a body of [`host_each`](crate::Kernel::host_each), which is called for each element,
/// `InOut` and `Out` are `&mut f32`, and all others are as in the table.
///
/// `Out` is like `InOut`. A sized parameter (one with a dimension) accepts arrays and views with
/// its number of axes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    note = "a scalar is an element (`f32`, `u32`, ...; `u8` instead of `bool`); an array is \
            `In<f32>`, `InOut<f32>` or `Out<f32>`, not `Vec<f32>` or `&[f32]`, with axes \
            `In<f32, Ix2>`, and with its length `Slice<In<f32>>`"
)]
pub trait Parameter: sealed::Sealed + 'static {
    /// The type of the parameter in the host body.
    type Host<'a>;
    /// The type of the parameter in a `require`.
    type Described<'a>;

    #[doc(hidden)]
    fn describe<'a>(bound: &BoundArgument<'a>) -> Self::Described<'a>;

    #[doc(hidden)]
    fn layout() -> ParameterLayout;

    /// Adds the parameters that compiled code has for this one.
    #[doc(hidden)]
    fn add_compiled(layouts: &mut Vec<ParameterLayout>) {
        layouts.push(Self::layout());
    }

    /// # Safety
    ///
    /// The next words of `unpacker` are those that `BoundArgument::pack` wrote for this parameter.
    /// The pointers of `unpacker` belong to the launch, as `Body::run` requires.
    #[doc(hidden)]
    unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> Self::Host<'a>;

    /// What `host_each` walks.
    #[doc(hidden)]
    type Each: Walked;

    #[doc(hidden)]
    fn each_view<'a>(host: Self::Host<'a>) -> <Self::Each as Walked>::View<'a>;
}

/// A tuple of 1 to 16 [`Parameter`]s, as in [`Kernel`](crate::Kernel)'s angle brackets. The example
/// of [`Arguments`](crate::Arguments) is generic over it. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel signature",
    label = "expected a tuple of 1 to 16 parameters",
    note = "a tuple of one takes a comma: `Kernel::<(InOut<f32>,)>`",
    note = "a scalar is an element (`f32`, `u32`, ...; `u8` instead of `bool`); an array is \
            `In<f32>`, `InOut<f32>` or `Out<f32>`, not `Vec<f32>` or `&[f32]`, with axes \
            `In<f32, Ix2>`, and with its length `Slice<In<f32>>`"
)]
pub trait Signature: sealed::SealedTuple + 'static {
    /// The tuple of the host body's parameters.
    type Host<'a>;
    /// The tuple of a `require`'s parameters.
    type Described<'a>;

    #[doc(hidden)]
    fn describe<'a>(bound: &[BoundArgument<'a>]) -> Self::Described<'a>;

    #[doc(hidden)]
    fn layouts() -> Box<[ParameterLayout]>;

    /// The parameters of compiled code.
    #[doc(hidden)]
    fn compiled() -> Box<[ParameterLayout]>;

    /// # Safety
    ///
    /// As [`Parameter::unpack`], for all parameters in order.
    #[doc(hidden)]
    unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> Self::Host<'a>;

    /// What `host_each` walks.
    #[doc(hidden)]
    type Each: Walk;

    #[doc(hidden)]
    fn each_views<'a>(host: Self::Host<'a>) -> <Self::Each as Walk>::Views<'a>;
}

pub(super) mod sealed {
    pub trait Sealed {}
    pub trait SealedTuple {}
}

#[diagnostic::do_not_recommend]
impl<E: Element> sealed::Sealed for E {}

#[diagnostic::do_not_recommend]
impl<E: Element> Parameter for E {
    type Host<'a> = E;
    type Described<'a> = E;
    type Each = E;

    fn describe<'a>(bound: &BoundArgument<'a>) -> E {
        match bound {
            BoundArgument::Scalar { bytes, .. } => bytemuck::pod_read_unaligned(bytes),
            BoundArgument::Array(_) | BoundArgument::Temporary(_) => E::zeroed(),
        }
    }

    fn layout() -> ParameterLayout {
        ParameterLayout::Scalar(ElementLayout::of::<E>())
    }

    unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> E {
        unpacker.scalar()
    }

    fn each_view<'a>(host: Self::Host<'a>) -> <Self::Each as Walked>::View<'a> {
        host
    }
}

/// The layout of an array argument. A scalar cannot occur here, since a scalar does not implement
/// `Argument` for an array parameter.
pub(in crate::launch) fn described<'a>(bound: &BoundArgument<'a>) -> Described<'a> {
    match bound {
        BoundArgument::Array(BoundArray { view, .. }) | BoundArgument::Temporary(view) => {
            Described { view: *view }
        }
        BoundArgument::Scalar { .. } => {
            Described { view: Strided { shape: &[], strides: &[], offset: 0 } }
        }
    }
}

macro_rules! array_parameter {
    ($parameter:ident, $access:expr, $flat:ty, $sized:ident, $slice:ident, $view:ident) => {
        impl<T, D> $parameter<T, D> {
            pub(super) const ACCESS: Access = $access;
        }

        impl<T: Element, D> sealed::Sealed for $parameter<T, D> {}

        #[diagnostic::do_not_recommend]
        impl<T: Element> Parameter for $parameter<T, Flat> {
            type Host<'a> = $flat;
            type Described<'a> = Described<'a>;
            type Each = Self;

            fn describe<'a>(bound: &BoundArgument<'a>) -> Described<'a> {
                described(bound)
            }

            fn layout() -> ParameterLayout {
                ParameterLayout::Flat { element: ElementLayout::of::<T>(), access: Self::ACCESS }
            }

            unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> $flat {
                // SAFETY: the caller promises this; `Argument` bound the array as flat, with this
                // access.
                unsafe { unpacker.$slice::<T>() }
            }

            fn each_view<'a>(host: Self::Host<'a>) -> <Self::Each as Walked>::View<'a> {
                host.into()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension + 'static> Parameter for $parameter<T, D> {
            type Host<'a> = $sized<'a, T, D>;
            type Described<'a> = Described<'a>;
            type Each = Self;

            fn describe<'a>(bound: &BoundArgument<'a>) -> Described<'a> {
                described(bound)
            }

            fn layout() -> ParameterLayout {
                let (element, access) = (ElementLayout::of::<T>(), Self::ACCESS);
                ParameterLayout::Sized { element, ndim: D::NDIM, access }
            }

            unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> $sized<'a, T, D> {
                // SAFETY: the caller promises this; `Argument` bound the array as sized, with this
                // access and these dimensions.
                unsafe { unpacker.$view::<T, D>() }
            }

            fn each_view<'a>(host: Self::Host<'a>) -> <Self::Each as Walked>::View<'a> {
                host
            }
        }
    };
}

array_parameter!(In, Access::Read, &'a [T], ArrayView, slice, view);
array_parameter!(InOut, Access::ReadWrite, &'a mut [T], ArrayViewMut, slice_mut, view_mut);
array_parameter!(Out, Access::Overwrite, &'a mut [T], ArrayViewMut, slice_mut, view_mut);

macro_rules! signature {
    ($($parameter:ident $argument:ident $index:tt),+) => {
        impl<$($parameter: Parameter),+> sealed::SealedTuple for ($($parameter,)+) {}

        #[diagnostic::do_not_recommend]
        impl<$($parameter: Parameter),+> Signature for ($($parameter,)+) {
            type Host<'a> = ($($parameter::Host<'a>,)+);
            type Described<'a> = ($($parameter::Described<'a>,)+);
            type Each = ($($parameter::Each,)+);

            fn describe<'a>(bound: &[BoundArgument<'a>]) -> Self::Described<'a> {
                ($($parameter::describe(&bound[$index]),)+)
            }

            fn layouts() -> Box<[ParameterLayout]> {
                Box::new([$($parameter::layout()),+])
            }

            fn compiled() -> Box<[ParameterLayout]> {
                let mut layouts = Vec::new();
                $($parameter::add_compiled(&mut layouts);)+
                layouts.into()
            }

            unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> Self::Host<'a> {
                ($(
                    // SAFETY: the caller promises this; parameters are unpacked in the order in
                    // which `queue` packed them.
                    unsafe { $parameter::unpack(unpacker) },
                )+)
            }

            fn each_views<'a>(host: Self::Host<'a>) -> <Self::Each as Walk>::Views<'a> {
                ($($parameter::each_view(host.$index),)+)
            }
        }
    };
}

for_each_arity!(signature);
