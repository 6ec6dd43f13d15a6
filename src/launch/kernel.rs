//! A kernel: a name, a signature, requirements, and bodies.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::argument::{Arguments, Bound};
use super::body::HostBody;
use super::queue::{self, Launch};
use super::signature::Signature;
use crate::backend::Code;
use crate::device::{Device, Stream};
use crate::error::{Error, Result, Text};
use crate::grid::Grid;

/// A function over arrays that can run on a device. Its type says what it reads and what it writes.
///
/// ```
/// use resident::{Device, Grid, In, InOut, Kernel, SmartArray};
///
/// let axpy = Kernel::<(f32, In<f32>, InOut<f32>)>::new("axpy")
///     .require("both have one length", |_grid, (_, x, y)| x.len() == y.len())
///     .host(|_grid, (a, x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x));
///
/// let _here = Device::cpu().enter();
/// let x = SmartArray::<f32, _>::ones(1000);
/// let mut y = SmartArray::<f32, _>::zeros(1000);
/// axpy.launch(Grid::cover(y.len()), (2.0, &x, &mut y))?;
/// assert_eq!(y.host()?.sum(), 2000.0);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// Write the signature at `Kernel::<..>::new`: closures take their types from there. Cloning is cheap.
pub struct Kernel<S: Signature> {
    inner: Arc<Inner<S>>,
}

struct Inner<S: Signature> {
    name: Arc<str>,
    /// `kernel "name"`, for messages.
    title: Arc<str>,
    requirements: Vec<Requirement<S>>,
    host: Option<Code>,
}

/// Whether a requirement holds.
type Condition<S> = dyn for<'a> Fn(Grid, <S as Signature>::Described<'a>) -> bool + Send + Sync;

struct Requirement<S: Signature> {
    text: Arc<str>,
    holds: Arc<Condition<S>>,
}

impl<S: Signature> Kernel<S> {
    /// A kernel without a body.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let title = format!("kernel \"{name}\"").into();
        Self { inner: Arc::new(Inner { name, title, requirements: Vec::new(), host: None }) }
    }

    /// Adds a requirement on grid and arguments, checked at each launch before anything moves: arrays show `len()` and `shape()`, scalars their
    /// value. The text completes "kernel k requires that ...".
    #[must_use]
    pub fn require(
        self,
        text: impl Into<Arc<str>>,
        holds: impl for<'a> Fn(Grid, S::Described<'a>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|inner| inner.requirements.push(Requirement { text: text.into(), holds: Arc::new(holds) }))
    }

    /// Gives it a body for the embedded device and for [`call`](Self::call): run once for a whole launch, with slices for flat parameters and ndarray
    /// views for sized ones.
    ///
    /// A body that panics loses what the launch was to write; inside it, calls of this library that would have to wait are
    /// [`InsideKernel`](crate::Error::InsideKernel).
    #[must_use]
    pub fn host(self, run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.host = Some(Code::Host(Arc::new(HostBody::<S, _>::new(Arc::clone(&inner.name), run)))))
    }

    fn with(self, change: impl FnOnce(&mut Inner<S>)) -> Self {
        let mut inner = Arc::try_unwrap(self.inner).unwrap_or_else(|shared| Inner::clone(&shared));
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Queues it on the current device's default stream. See [`launch_on`](Self::launch_on).
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), and [`NoDevice`](crate::Error::NoDevice) if there is no current device.
    #[track_caller]
    pub fn launch<A: Arguments<S>>(&self, grid: Grid, arguments: A) -> Result<()> {
        let stream = Device::current()?.stream();
        self.launch_from(&stream, grid, &arguments, Location::caller())
    }

    /// Queues it on a stream: brings each `In` and `InOut` to the stream's device where it is stale, orders the stream behind other uses of the same
    /// bytes, queues the body, and marks what it writes as newest there. Returns when it is queued.
    ///
    /// # Errors
    ///
    /// Nothing is queued and no contents change on [`Requirement`](crate::Error::Requirement), [`Grid`](crate::Error::Grid),
    /// [`NoKernelBody`](crate::Error::NoKernelBody), [`NotContiguous`](crate::Error::NotContiguous),
    /// [`LayoutMismatch`](crate::Error::LayoutMismatch), [`Uninitialised`](crate::Error::Uninitialised), [`Lost`](crate::Error::Lost),
    /// [`OutOfMemory`](crate::Error::OutOfMemory), [`Backend`](crate::Error::Backend), [`InsideKernel`](crate::Error::InsideKernel). Copies that were
    /// made already stay, and are counted.
    #[track_caller]
    pub fn launch_on<A: Arguments<S>>(&self, stream: &Stream, grid: Grid, arguments: A) -> Result<()> {
        self.launch_from(stream, grid, &arguments, Location::caller())
    }

    fn launch_from<A: Arguments<S>>(&self, stream: &Stream, grid: Grid, arguments: &A, site: &'static Location<'static>) -> Result<()> {
        arguments.with_bound(|bound| {
            self.check(grid, bound)?;
            let Some(code) = &self.inner.host else { return Err(self.no_body(&stream.device().name())) };
            queue::launch(&Launch { code, title: &self.inner.title, grid, bound, site }, stream)
        })
    }

    /// Runs the host body on the host copies, here and now: no device, no stream. A panic of the body goes through.
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on).
    #[track_caller]
    pub fn call<A: Arguments<S>>(&self, grid: Grid, arguments: A) -> Result<()> {
        let site = Location::caller();
        arguments.with_bound(|bound| {
            self.check(grid, bound)?;
            let Some(code @ Code::Host(body)) = &self.inner.host else { return Err(self.no_body("the host")) };
            queue::call(&Launch { code, title: &self.inner.title, grid, bound, site }, &**body)
        })
    }

    fn check(&self, grid: Grid, bound: &[Bound<'_>]) -> Result<()> {
        if let Some(fault) = grid.fault() {
            return Err(self.bad_grid(grid, fault));
        }
        for Requirement { text, holds } in &self.inner.requirements {
            if !holds(grid, S::describe(bound)) {
                return Err(Error::Requirement {
                    kernel: self.quoted(),
                    requirement: Text::new(&**text),
                    arguments: Text::new(queue::in_words(bound)),
                });
            }
        }
        super::flat::check(&self.inner.name, bound)
    }

    fn bad_grid(&self, grid: Grid, fault: &str) -> Error {
        let (blocks, threads) = (grid.blocks(), grid.threads());
        Error::Grid {
            kernel: self.quoted(),
            grid: Text::new(format!("{}x{}x{} blocks of {}x{}x{} threads", blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z)),
            fault: Text::new(fault),
        }
    }

    fn no_body(&self, device: &str) -> Error {
        Error::NoKernelBody { kernel: self.quoted(), device: Text::new(device), method: Text::new("`.host(..)`") }
    }

    fn quoted(&self) -> Text {
        Text::new(format!("\"{}\"", self.inner.name))
    }
}

impl<S: Signature> Clone for Kernel<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: Signature> Clone for Inner<S> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            title: Arc::clone(&self.title),
            requirements: self.requirements.clone(),
            host: self.host.clone(),
        }
    }
}

impl<S: Signature> Clone for Requirement<S> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), holds: Arc::clone(&self.holds) }
    }
}

impl<S: Signature> fmt::Debug for Kernel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirements: Vec<&str> = self.inner.requirements.iter().map(|requirement| &*requirement.text).collect();
        f.debug_struct("Kernel")
            .field("name", &self.inner.name)
            .field("signature", &std::any::type_name::<S>())
            .field("requirements", &requirements)
            .field("has_host_body", &self.inner.host.is_some())
            .finish()
    }
}
