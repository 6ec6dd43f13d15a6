//! Chains: launches, copies and fills that are recorded once, and queued as one operation.
//!
//! 1. `recorder` makes steps of what the program records (`step`), for the parameters of the
//!    chain's `signature`. It is symbolic: a step names parameters, or slices of them (`part`).
//! 2. `instance` makes of them what a backend gets, for one stream and arguments of one shape.
//! 3. `replay` acquires the arrays of a replay, each once, with what all steps do with it (`uses`),
//!    writes those addresses that are new into the instance's `steps`, has these queued, and marks
//!    the arrays.

mod core;
mod instance;
mod part;
mod recorder;
mod repeat;
mod replay;
mod signature;
mod step;
mod steps;
mod temp;
mod uses;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use self::core::Core;
use self::replay::{Instances, Replay};
use super::arguments::bound::BoundArgument;
use crate::device::Stream;
use crate::error::{AtCall, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_documents::quoted;

pub use recorder::Recorder;
pub use signature::{ChainArguments, ChainParameter, ChainSignature, Intent, Symbol, SymbolPart};
pub use step::{ChainGrid, StepArgument, StepArguments};
pub(crate) use step::{ServeStep, StepKernel};
pub use temp::Temp;

/// A kernel whose body is launches, copies and fills: recorded once, and queued by each replay as
/// one operation. Arrays and scalars are parameters of each replay, so that other arrays, of other
/// shapes, on other devices may come each time.
///
/// ```
/// use resident::ndarray::{Array2, Ix2, s};
/// use resident::{Chain, Device, Grid, In, InOut, Kernel, Out, SmartArray, Temp};
///
/// let step = Kernel::<(f32, In<f32, Ix2>, Out<f32, Ix2>)>::new("step")
///     .require("both have one shape", |_grid, (_, a, b)| a.shape() == b.shape())
///     .host(|_grid, (k, a, mut b)| b.assign(&a.mapv(|x| x + k)));
/// type Two = Chain<(f32, InOut<f32, Ix2>, Temp<f32, Ix2>)>;
/// let two = Two::record("two steps", |r, (k, a, tmp)| {
///     let grid = Grid::cover_2d((64, 48), (8, 32));
///     r.launch(&step, grid, (k, a.read(), tmp.write()))?;  // nothing is queued
///     r.launch(&step, grid, (k, tmp.read(), a.write()))
/// })?;
///
/// let stream = Device::cpu().new_stream()?;
/// let mut now = SmartArray::from(Array2::<f32>::zeros((64, 48)));
/// let scratch = Temp::like(&now);                          // a shape, no memory
/// two.launch_on(&stream, (0.5, &mut now, scratch))?;       // uploads `now`, once
/// two.repeat_on(&stream, 1000, (0.5, &mut now, scratch))?; // 2,000 launches, one operation
/// assert_eq!(now.get([0, 0])?, 1001.0);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # What a replay checks, moves and marks
///
/// The shapes of the arguments, and each `require` of a kernel, are checked at the first replay
/// with arguments of these shapes on a stream, and again if a scalar changes on which they may
/// depend. Then a replay acquires each array once, as a launch does: it copies what is stale there
/// and what a step reads before the chain overwrites it, and orders the stream after other uses. An
/// array that the chain overwrites first is not uploaded. What no step uses is left as it is. All
/// of this is exact by element where steps use parts ([`Symbol::slice`]). One record of the
/// [`audit`](crate::audit) and one span of `tracing` stand for the replay; copies have its line and
/// the chain's name.
///
/// Steps run in the order in which they were recorded, or side by side where they have no bytes in
/// common of which one writes some. To wait for a replay, or to await it, use the stream
/// ([`Stream::synchronize`], [`Stream::done`]).
///
/// If a step fails when it runs, what it and all later steps were to write is lost, and what
/// earlier ones wrote stays; if that is in an earlier one of several replays that were queued
/// together, all that the chain writes is lost. Errors name the kernel, the chain, and the line
/// that recorded the step.
///
/// # What is kept
///
/// For the last eight pairs of a stream and shapes of arguments, a chain keeps its steps as the
/// device takes them and the memory of its [`Temp`]s; they end with the last clone of the chain.
/// Threads may replay one chain side by side.
///
/// A chain can do nothing that waits: its steps are launches, copies, fills, and
/// [`Elementwise`](crate::ops::Elementwise) operations ([`Recorder::apply`]). [`Recorder`] says
/// what cannot be recorded.
pub struct Chain<S: ChainSignature> {
    shared: Arc<Shared>,
    signature: PhantomData<fn() -> S>,
}

/// A chain without its signature.
struct Shared {
    core: Core,
    instances: Instances,
}

impl<S: ChainSignature> Chain<S> {
    /// Records a chain. The closure gets a [`Recorder`] and a [`Symbol`] for each parameter, and is
    /// called once. Nothing is allocated, moved or queued. The name is used in messages.
    ///
    /// ```
    /// use resident::{Chain, Error, InOut, Temp, ndarray::Ix1};
    ///
    /// let clear = Chain::<(f32, InOut<f32, Ix1>)>::record("clear", |r, (value, a)| {
    ///     r.fill(a.write(), value)
    /// })?;
    /// let unwritten = Chain::<(InOut<f32, Ix1>, Temp<f32, Ix1>)>::record("copy", |r, (a, tmp)| {
    ///     r.copy(tmp.read(), a.write())
    /// });
    /// assert!(matches!(unwritten, Err(Error::Uninitialised { .. })));
    /// # drop(clear);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the closure returns, or else the first error of a method of its recorder.
    pub fn record(
        name: impl Into<Arc<str>>,
        record: impl for<'r> FnOnce(&mut Recorder<'r, S>, S::Symbols<'r>) -> Result<()>,
    ) -> Result<Self> {
        let name = name.into();
        let title: Arc<str> = format!("chain {}", quoted(&name)).into();
        let mut recorder = Recorder::new(Arc::clone(&title));
        record(&mut recorder, S::symbols())?;
        let core = Core::new(name, title, S::kinds(), recorder.finish()?);
        let shared = Shared { core, instances: Instances::default() };
        Ok(Self { shared: Arc::new(shared), signature: PhantomData })
    }

    /// The chain's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.core.name
    }

    /// Queues the chain on the current stream: see [`Kernel::launch`](crate::Kernel::launch) and
    /// [`launch_on`](Self::launch_on).
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), and [`NoDevice`](crate::Error::NoDevice) if there is no
    /// current device.
    #[track_caller]
    pub fn launch(&self, arguments: impl ChainArguments<S>) -> Result<()> {
        let site = call_site();
        let stream = Stream::current().at(site)?;
        self.replay(&stream, 1, &arguments, site)
    }

    /// Queues the chain on a stream, and returns when it is queued. [`Chain`] says what it checks,
    /// moves and marks; its example shows the use.
    ///
    /// # Errors
    ///
    /// As [`Kernel::launch_on`](crate::Kernel::launch_on): nothing is queued then, and array
    /// contents are unchanged. [`Shape`](crate::Error::Shape) if the arrays of a copy differ in
    /// shape, or a slice does not fit one. [`Uninitialised`](crate::Error::Uninitialised) also if
    /// a step reads elements of a temporary that no step writes, or that a launch without threads
    /// (`Grid::cover(0)`) was to write. [`Requirement`](crate::Error::Requirement) if slices that
    /// are passed to one step have elements in common of which it writes some.
    ///
    /// # Panics
    ///
    /// If a `require` or a closure that chooses a grid panics; nothing has been copied then.
    #[track_caller]
    pub fn launch_on(&self, stream: &Stream, arguments: impl ChainArguments<S>) -> Result<()> {
        self.replay(stream, 1, &arguments, call_site())
    }

    /// As [`launch_on`](Self::launch_on), `count` times one after the other, as one operation. If
    /// `count` is 0, the arguments are checked and nothing is queued.
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on).
    #[track_caller]
    pub fn repeat_on(
        &self,
        stream: &Stream,
        count: u64,
        arguments: impl ChainArguments<S>,
    ) -> Result<()> {
        self.replay(stream, count, &arguments, call_site())
    }

    /// Repeats the chain while the array that its [`Recorder::repeat_while`] names is not 0, at
    /// most `most` times. Returns how often it ran. The host reads the array after `look_every`
    /// replays each time, and waits for them, so the chain may run up to `look_every - 1` times too
    /// often: further steps must leave a finished result as it is. If `most` is 0, the arguments
    /// are checked and nothing is queued. (Conditional nodes of CUDA graphs are not used.)
    ///
    /// ```
    /// use resident::{Chain, Device, InOut, Kernel, Out, SmartArray, Temp, ndarray::Ix1};
    ///
    /// // Halves the number until it is below 1.
    /// let halve = Kernel::<(InOut<f32>, Out<u32>)>::new("halve").host(|_grid, (x, go_on)| {
    ///     x[0] *= if x[0] < 1.0 { 1.0 } else { 0.5 };
    ///     go_on[0] = u32::from(x[0] >= 1.0);
    /// });
    /// let chain = Chain::<(InOut<f32, Ix1>, Temp<u32, Ix1>)>::record("halve", |r, (x, go_on)| {
    ///     r.launch(&halve, 1, (x.read_write(), go_on.write()))?;
    ///     r.repeat_while(go_on.read())
    /// })?;
    /// let mut x = SmartArray::from([1000.0_f32]);
    /// let stream = Device::cpu().stream();
    /// let ran = chain.repeat_while_on(&stream, 100, 4, (&mut x, Temp::shape(1)))?;
    /// assert_eq!((ran, x.get(0)?), (12, 1000.0 / 1024.0));      // 10 would have done
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on). [`Shape`](crate::Error::Shape) if the array has not one
    /// element, if the chain names none, or if `look_every` is 0; nothing is queued then. As
    /// [`SmartArray::get`](crate::SmartArray::get) for the array: replays that were queued by then
    /// have run.
    #[track_caller]
    pub fn repeat_while_on(
        &self,
        stream: &Stream,
        most: u64,
        look_every: u64,
        arguments: impl ChainArguments<S>,
    ) -> Result<u64> {
        let site = call_site();
        let (Shared { core, instances }, count) = (&*self.shared, look_every);
        let repeat = |bound: &[BoundArgument<'_>]| {
            Replay { core, instances, stream, count, bound, site }.repeat_while(most)
        };
        arguments.with_bound(repeat).at(site)
    }

    fn replay(
        &self,
        stream: &Stream,
        count: u64,
        arguments: &impl ChainArguments<S>,
        site: CallSite,
    ) -> Result<()> {
        let Shared { core, instances } = &*self.shared;
        let queue = |bound: &[BoundArgument<'_>]| {
            Replay { core, instances, stream, count, bound, site }.queue()
        };
        arguments.with_bound(queue).at(site)
    }
}

impl<S: ChainSignature> Clone for Chain<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), signature: PhantomData }
    }
}

impl<S: ChainSignature> fmt::Debug for Chain<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("name", &self.shared.core.name)
            .field("signature", &std::any::type_name::<S>())
            .field("steps", &self.shared.core.steps.len())
            .finish()
    }
}
