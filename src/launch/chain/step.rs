//! The steps of a chain, as they were recorded, and what may be passed to them.

#![allow(
    private_bounds,
    private_interfaces,
    reason = "hidden methods of sealed traits name private types"
)]

use std::sync::Arc;

use ndarray::Dimension;
use smallvec::SmallVec;

use super::super::arguments::IntoGrid;
use super::super::arguments::bound::{ArrayForm, BoundArgument};
use super::super::arity::for_each_arity;
use super::super::signature::{Flat, In, InOut, Out, Signature};
use super::super::slice::Slice;
use super::part::PartsNamed;
use super::signature::{ChainSignature, Intent, Symbol};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::{Bytes, KernelCode};
use resident_core::Access;

/// A step, and the line that recorded it.
pub(super) struct Step {
    pub(super) kind: StepKind,
    /// The arrays that it uses. None that it writes occurs twice.
    pub(super) uses: SmallVec<[Use; 4]>,
    pub(super) site: CallSite,
}

impl Step {
    /// For messages.
    pub(super) fn name(&self) -> &str {
        match &self.kind {
            StepKind::Launch { kernel, .. } => kernel.title(),
            StepKind::Copy { .. } => "\"copy\"",
            StepKind::Fill { .. } => "\"fill\"",
        }
    }
}

pub(super) enum StepKind {
    Launch { kernel: Arc<dyn StepKernel>, grid: StepGrid, arguments: Vec<Passed> },
    Copy { from: usize, to: usize },
    Fill { to: usize, value: Passed },
}

/// A part of a parameter, by its number, and what a step does with its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Use {
    pub(super) part: usize,
    pub(super) access: Access,
}

/// What is passed to a parameter of a step's kernel.
#[derive(Clone, Debug)]
pub(super) enum Passed {
    /// A value's bytes, and a function that formats them for a message.
    Value {
        bytes: Bytes,
        show: fn(&[u8]) -> String,
    },
    /// A scalar parameter of the chain.
    Scalar(usize),
    Array(Use, ArrayForm),
}

impl Passed {
    pub(super) fn array(&self) -> Option<Use> {
        match self {
            Self::Array(used, _) => Some(*used),
            Self::Value { .. } | Self::Scalar(_) => None,
        }
    }
}

/// Gets what a step launches: the code, the grid, and the arguments as the code takes them.
pub(crate) type ServeStep<'s> =
    &'s mut dyn FnMut(KernelCode, Grid, &[BoundArgument<'_>]) -> Result<()>;

/// A kernel without its signature.
pub(crate) trait StepKernel: Send + Sync {
    /// `kernel "name"`, for messages.
    fn title(&self) -> &Arc<str>;
    fn has_requirements(&self) -> bool;
    /// Calls `serve` with the code for a device, and the grid that it will run there. Checks the
    /// arguments.
    fn resolve(
        &self,
        device: &Device,
        grid: Grid,
        bound: &[BoundArgument<'_>],
        serve: ServeStep<'_>,
    ) -> Result<()>;
}

/// The grid of a step.
pub(super) enum StepGrid {
    Fixed(Grid),
    /// Made anew of the arguments of a replay.
    OfArguments(Box<GridOfArguments>),
}

type GridOfArguments = dyn Fn(&[BoundArgument<'_>]) -> Grid + Send + Sync;

impl StepGrid {
    pub(super) fn of(&self, bound: &[BoundArgument<'_>]) -> Grid {
        match self {
            Self::Fixed(grid) => *grid,
            Self::OfArguments(make) => make(bound),
        }
    }
}

/// What a step of a chain with the signature `S` takes as its grid: what a launch takes, or a
/// closure over the arguments of the replay, which shows the `shape()` and `len()` of arrays and
/// the values of scalars. `M` says which, so that both can be arguments.
///
/// rustc does not infer the types of the closure's parameters: write [`Described`] for each array,
/// as in `|(_, a, _): (_, Described, Described)| Grid::cover(a.len())`.
///
/// [`Described`]: crate::Described
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a grid of a step",
    note = "a grid is what a launch takes, or a closure over the arguments of a replay, with a \
            type for each array: `|(_, a, b): (_, Described, Described)| Grid::cover(a.len())`"
)]
pub trait ChainGrid<S: ChainSignature, M> {
    #[doc(hidden)]
    fn step_grid(self) -> StepGrid;
}

#[diagnostic::do_not_recommend]
impl<S: ChainSignature, G: IntoGrid> ChainGrid<S, ()> for G {
    fn step_grid(self) -> StepGrid {
        StepGrid::Fixed(self.into_grid())
    }
}

#[diagnostic::do_not_recommend]
impl<S, G, F> ChainGrid<S, (G,)> for F
where
    S: ChainSignature,
    G: IntoGrid,
    F: for<'a> Fn(S::Described<'a>) -> G + Send + Sync + 'static,
{
    fn step_grid(self) -> StepGrid {
        StepGrid::OfArguments(Box::new(move |bound| self(S::describe(bound)).into_grid()))
    }
}

/// `Self` may be passed to parameter `P` of a kernel in a step of a chain: an array's
/// [`read`](Symbol::read) for [`In`], [`write`](Symbol::write) for [`Out`],
/// [`read_write`](Symbol::read_write) for [`InOut`]; a scalar parameter of the chain or a value for
/// a scalar. A flat parameter takes arrays of any dimension.
#[diagnostic::on_unimplemented(
    message = "a kernel's `{P}` cannot be given `{Self}` in a step of a chain",
    note = "`In` takes `a.read()`, `Out` takes `a.write()`, and `InOut` takes `a.read_write()`, of \
            a symbol with the parameter's elements and axes; a scalar takes a symbol or a value of \
            its type"
)]
pub trait StepArgument<'r, P> {
    #[doc(hidden)]
    fn passed(&self, parts: &mut PartsNamed) -> Passed;
}

#[diagnostic::do_not_recommend]
impl<E: Element> StepArgument<'_, E> for E {
    fn passed(&self, _parts: &mut PartsNamed) -> Passed {
        match BoundArgument::scalar(self) {
            BoundArgument::Scalar { bytes, show } => {
                Passed::Value { bytes: Bytes::from_slice(bytes), show }
            }
            BoundArgument::Array(_) | BoundArgument::Temporary(_) => unreachable!("a scalar"),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<'r, E: Element> StepArgument<'r, E> for Symbol<'r, E> {
    fn passed(&self, _parts: &mut PartsNamed) -> Passed {
        Passed::Scalar(self.parameter)
    }
}

macro_rules! array_argument {
    ($parameter:ident) => {
        array_argument!($parameter, [], $parameter<T, Flat>, ArrayForm::Flat);
        array_argument!($parameter, [], Slice<$parameter<T>>, ArrayForm::Slice);
        array_argument!($parameter, [Dimension], $parameter<T, D>, ArrayForm::Sized);
    };
    ($parameter:ident, [$($bound:ident)?], $type:ty, $form:expr) => {
        #[diagnostic::do_not_recommend]
        impl<'r, T: Element, D $(: $bound)?> StepArgument<'r, $type>
            for Intent<'r, $parameter<T, D>>
        {
            fn passed(&self, parts: &mut PartsNamed) -> Passed {
                let (part, access) = (parts.number_of(self.part()), $parameter::<T, D>::ACCESS);
                Passed::Array(Use { part, access }, $form)
            }
        }
    };
}

array_argument!(In);
array_argument!(InOut);
array_argument!(Out);

/// A tuple with a [`StepArgument`] for each parameter of the kernel's signature `K`.
#[diagnostic::on_unimplemented(
    message = "a kernel with the signature `{K}` cannot be given `{Self}` in a step of a chain",
    label = "expected a tuple with one argument for each parameter: `(2.0, a.read(), b.write())`, \
             or `(a.read_write(),)` of one"
)]
pub trait StepArguments<'r, K: Signature> {
    #[doc(hidden)]
    fn all_passed(&self, parts: &mut PartsNamed) -> Vec<Passed>;
}

macro_rules! step_arguments {
    ($($parameter:ident $argument:ident $index:tt),+) => {
        #[diagnostic::do_not_recommend]
        impl<'r, $($parameter, $argument: StepArgument<'r, $parameter>),+>
            StepArguments<'r, ($($parameter,)+)> for ($($argument,)+)
        where
            ($($parameter,)+): Signature,
        {
            fn all_passed(&self, parts: &mut PartsNamed) -> Vec<Passed> {
                vec![$(self.$index.passed(parts)),+]
            }
        }
    };
}

for_each_arity!(step_arguments);
