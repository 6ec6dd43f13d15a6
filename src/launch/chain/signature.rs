//! The parameters of chains, and the symbols that stand for them while a chain is recorded.

#![allow(
    private_bounds,
    private_interfaces,
    reason = "hidden methods of sealed traits name private types"
)]

use std::fmt;
use std::marker::PhantomData;

use ndarray::{Dimension, SliceArg, SliceInfoElem};
use smallvec::SmallVec;

use super::super::arguments::bound::BoundArgument;
use super::super::arguments::{BindAll, OneForEach};
use super::super::arity::for_each_arity;
use super::super::signature::{Described, In, InOut, Out, Parameter, described};
use super::part::PartOf;
use super::temp::{self, ReadBy, Temp, Temporary};
use crate::element::Element;
use crate::error::Result;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_core::layout::Strided;

/// One parameter of a [`Chain`](crate::Chain): any [`Element`] by value, [`In`], [`InOut`],
/// [`Out`], or a [`Temp`]. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a chain",
    note = "a scalar is an element (`f32`, `u32`, ...); an array is `In<f32, Ix2>`, `InOut<..>` or \
            `Out<..>`, and one that lives within the chain is `Temp<f32, Ix2>`"
)]
pub trait ChainParameter: sealed::Sealed + 'static {
    /// The type of the parameter in a closure that chooses a grid.
    type Described<'a>;

    #[doc(hidden)]
    fn describe<'a>(bound: &BoundArgument<'a>) -> Self::Described<'a>;

    #[doc(hidden)]
    fn kind() -> ParameterKind;
}

/// What a chain knows of a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum ParameterKind {
    Scalar,
    Array(Access),
    Temporary(fn(&Strided<'_>, ReadBy, CallSite) -> Result<Temporary>),
}

impl ParameterKind {
    /// Whether a replay has contents before its first step writes them.
    pub(super) fn has_contents(self) -> bool {
        !matches!(self, Self::Array(Access::Overwrite) | Self::Temporary(_))
    }
}

#[diagnostic::do_not_recommend]
impl<E: Element> ChainParameter for E {
    type Described<'a> = E;

    fn describe<'a>(bound: &BoundArgument<'a>) -> E {
        <E as Parameter>::describe(bound)
    }

    fn kind() -> ParameterKind {
        ParameterKind::Scalar
    }
}

macro_rules! array_parameter {
    ($type:ident, $kind:expr) => {
        impl<T: Element, D: 'static> sealed::Sealed for $type<T, D> {}

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: 'static> ChainParameter for $type<T, D> {
            type Described<'a> = Described<'a>;

            fn describe<'a>(bound: &BoundArgument<'a>) -> Described<'a> {
                described(bound)
            }

            fn kind() -> ParameterKind {
                $kind
            }
        }
    };
}

array_parameter!(In, ParameterKind::Array(Access::Read));
array_parameter!(InOut, ParameterKind::Array(Access::ReadWrite));
array_parameter!(Out, ParameterKind::Array(Access::Overwrite));
array_parameter!(Temp, ParameterKind::Temporary(temp::allocate::<T>));

/// A tuple of 1 to 16 [`ChainParameter`]s. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the signature of a chain",
    label = "expected a tuple of 1 to 16 parameters",
    note = "a tuple of one takes a comma: `Chain::<(InOut<f32>,)>`"
)]
pub trait ChainSignature: sealed::SealedTuple + 'static {
    /// The tuple of what a closure that chooses a grid gets.
    type Described<'a>;
    /// The tuple of the symbols.
    type Symbols<'r>;

    #[doc(hidden)]
    fn describe<'a>(bound: &[BoundArgument<'a>]) -> Self::Described<'a>;

    #[doc(hidden)]
    fn kinds() -> Box<[ParameterKind]>;

    #[doc(hidden)]
    fn symbols<'r>() -> Self::Symbols<'r>;
}

macro_rules! chain_signature {
    ($($parameter:ident $argument:ident $index:tt),+) => {
        impl<$($parameter: ChainParameter),+> sealed::SealedTuple for ($($parameter,)+) {}

        #[diagnostic::do_not_recommend]
        impl<$($parameter: ChainParameter),+> ChainSignature for ($($parameter,)+) {
            type Described<'a> = ($($parameter::Described<'a>,)+);
            type Symbols<'r> = ($(Symbol<'r, $parameter>,)+);

            fn describe<'a>(bound: &[BoundArgument<'a>]) -> Self::Described<'a> {
                ($($parameter::describe(&bound[$index]),)+)
            }

            fn kinds() -> Box<[ParameterKind]> {
                Box::new([$($parameter::kind()),+])
            }

            fn symbols<'r>() -> Self::Symbols<'r> {
                ($(Symbol::<$parameter>::new($index),)+)
            }
        }
    };
}

for_each_arity!(chain_signature);

/// A tuple of arguments for the signature `S` of a [`Chain`](crate::Chain), one per parameter: as
/// the [`Arguments`](crate::Arguments) of a launch, and a [`Temp`] for each `Temp`.
#[diagnostic::on_unimplemented(
    message = "a chain with the signature `{S}` cannot be launched with `{Self}`",
    label = "expected a tuple with one argument for each parameter: `(2.0, &mut y)`, or \
             `(&mut y,)` of one"
)]
pub trait ChainArguments<S: ChainSignature> {
    /// Calls `serve` with the bound arguments in order.
    #[doc(hidden)]
    fn with_bound<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R;
}

impl<S: ChainSignature, A: OneForEach<S> + BindAll<A::Parameters>> ChainArguments<S> for A {
    #[inline]
    fn with_bound<R>(&self, serve: impl FnOnce(&[BoundArgument<'_>]) -> R) -> R {
        self.bind_all(serve)
    }
}

/// Each recording has a lifetime of its own, so that its symbols fit no other recording.
pub(super) type Brand<'r> = PhantomData<fn(&'r ()) -> &'r ()>;

/// Stands for the argument of parameter `P` while a chain is recorded. A scalar is passed to a step
/// as it is, an array as what the step does with it: [`read`](Symbol::read),
/// [`write`](Symbol::write) or [`read_write`](Symbol::read_write), of all of it or of a
/// [`slice`](Symbol::slice).
pub struct Symbol<'r, P> {
    pub(super) parameter: usize,
    brand: Brand<'r>,
    type_of_parameter: PhantomData<fn() -> P>,
}

/// A slice of an array parameter `P` while a chain is recorded: see [`Symbol::slice`].
pub struct SymbolPart<'r, P> {
    part: PartOf,
    symbol: PhantomData<Symbol<'r, P>>,
}

/// An array in a step of a chain: as an [`In`], an [`InOut`] or an [`Out`], which is `P`.
pub struct Intent<'r, P>(SymbolPart<'r, P>);

impl<'r, P> Symbol<'r, P> {
    fn new(parameter: usize) -> Self {
        Self { parameter, brand: PhantomData, type_of_parameter: PhantomData }
    }

    fn part<Q>(self, slice: &[SliceInfoElem]) -> SymbolPart<'r, Q> {
        let part = PartOf { parameter: self.parameter, slice: SmallVec::from_slice(slice) };
        SymbolPart { part, symbol: PhantomData }
    }

    fn used_as<Q>(self) -> Intent<'r, Q> {
        Intent(self.part(&[]))
    }
}

impl<'r, P> SymbolPart<'r, P> {
    fn used_as<Q>(self) -> Intent<'r, Q> {
        Intent(SymbolPart { part: self.part, symbol: PhantomData })
    }
}

impl<P> Intent<'_, P> {
    pub(super) fn part(&self) -> &PartOf {
        &self.0.part
    }
}

impl<P> Copy for Symbol<'_, P> {}

impl<P> Clone for Symbol<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Clone for SymbolPart<'_, P> {
    fn clone(&self) -> Self {
        Self { part: self.part.clone(), symbol: PhantomData }
    }
}

impl<P> fmt::Debug for Symbol<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({})", self.parameter)
    }
}

impl<P> fmt::Debug for SymbolPart<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SymbolPart({})", self.part)
    }
}

impl<P> fmt::Debug for Intent<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Intent({})", self.part())
    }
}

macro_rules! reads {
    ($symbol:ident, $type:ident) => {
        impl<'r, T, D> $symbol<'r, $type<T, D>> {
            /// The step reads the elements: an [`In`] of a kernel, or the source of a copy.
            #[must_use]
            pub fn read(self) -> Intent<'r, In<T, D>> {
                self.used_as()
            }
        }
    };
}

macro_rules! writes {
    ($symbol:ident, $type:ident) => {
        reads!($symbol, $type);

        impl<'r, T, D> $symbol<'r, $type<T, D>> {
            /// The step overwrites the elements without reading them: an [`Out`] of a kernel, or
            /// the destination of a copy or a fill.
            #[must_use]
            pub fn write(self) -> Intent<'r, Out<T, D>> {
                self.used_as()
            }

            /// The step reads and writes the elements: an [`InOut`] of a kernel.
            #[must_use]
            pub fn read_write(self) -> Intent<'r, InOut<T, D>> {
                self.used_as()
            }
        }
    };
}

macro_rules! slices {
    ($type:ident) => {
        impl<'r, T, D: Dimension> Symbol<'r, $type<T, D>> {
            /// A part of the array, as [`SmartArray::slice`](crate::SmartArray::slice) and
            /// `slice_mut` of the array that a replay gets. Negative indices count from its ends.
            ///
            /// ```
            /// use resident::ndarray::{Ix1, Ix2, s};
            /// use resident::{Chain, Device, In, InOut, SmartArray};
            ///
            /// type Frame = Chain<(In<f32, Ix1>, InOut<f32, Ix2>)>;
            /// let frame = Frame::record("frame", |r, (edge, a)| {
            ///     r.fill(a.slice(s![1..-1, 1..-1]).write(), 0.0)?;
            ///     r.copy(edge.read(), a.slice(s![0, ..]).write())?;
            ///     r.copy(edge.read(), a.slice(s![-1, ..;-1]).write())
            /// })?;
            /// let edge = SmartArray::from([1.0, 2.0, 3.0]);
            /// let mut a = SmartArray::<f32, _>::ones((3, 3));
            /// frame.launch_on(&Device::cpu().stream(), (&edge, &mut a))?;
            /// assert_eq!(a.to_vec()?, [1.0, 2.0, 3.0, 1.0, 0.0, 1.0, 3.0, 2.0, 1.0]);
            /// # Ok::<(), resident::Error>(())
            /// ```
            ///
            /// A slice that does not fit the array of a replay is [`Shape`](crate::Error::Shape)
            /// there. So it is if slices of a view of smaller elements
            /// ([`reinterpret_mut`](crate::SmartArray::reinterpret_mut)) begin or end within an
            /// element of the array of which a step writes some.
            #[must_use]
            pub fn slice<I: SliceArg<D>>(self, info: I) -> SymbolPart<'r, $type<T, I::OutDim>> {
                self.part(info.as_ref())
            }
        }
    };
}

reads!(Symbol, In);
writes!(Symbol, InOut);
writes!(Symbol, Out);
writes!(Symbol, Temp);

reads!(SymbolPart, In);
writes!(SymbolPart, InOut);
writes!(SymbolPart, Out);
writes!(SymbolPart, Temp);

slices!(In);
slices!(InOut);
slices!(Out);
slices!(Temp);

mod sealed {
    use crate::element::Element;

    pub trait Sealed {}
    pub trait SealedTuple {}

    #[diagnostic::do_not_recommend]
    impl<E: Element> Sealed for E {}
}
