//! A kernel: a name, a signature, requirements, and bodies.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::argument::{Arguments, Bound};
use super::body::HostBody;
use super::code::DeviceCode;
use super::compare::{self, Bodies, Difference};
use super::queue::{self, Launch};
use super::signature::Signature;
use crate::backend::{Body, BodyKind, Code, CudaSource, KernelAttributes, LoadError, Program, prototype};
use crate::device::{self, Device, Stream};
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
    cuda: Option<Arc<DeviceCode>>,
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
        Self { inner: Arc::new(Inner { name, title, requirements: Vec::new(), host: None, cuda: None }) }
    }

    /// Adds a requirement on grid and arguments, checked at each launch before anything moves: arrays show `len()` and `shape()`, scalars their
    /// value. The text completes "kernel k requires that ...". It is asked again if a device chose another grid (`Grid::auto`).
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

    /// Gives it a body for NVIDIA GPUs: CUDA C, or what [`CudaSource`] says. It is compiled and loaded at the first launch on a device, or by
    /// [`prepare`](Self::prepare), and kept for the life of the process; what NVRTC makes is kept on disk too (`RESIDENT_CACHE`: `off`, or a folder;
    /// else `resident` in the user's folder for caches).
    ///
    /// The function has the kernel's name, unless [`CudaSource::entry`] says otherwise, and the parameters that [`prototype`](Self::prototype) prints:
    /// scalars by value, flat arrays as bare pointers, sized ones as `resident::View1` to `View6` by value (`data`, `shape`, `strides` in elements,
    /// `operator()(i, j)`, `contains(i, j)`, `size()`, `at(n)`), which are declared in front of the source. Their number and sizes are checked when it
    /// is loaded.
    ///
    /// ```
    /// use resident::{In, InOut, Kernel};
    ///
    /// let axpy = Kernel::<(f32, In<f32>, InOut<f32>, u64)>::new("axpy")
    ///     .require("both have one length, and that is passed", |_grid, (_, x, y, len)| x.len() == y.len() && y.len() as u64 == len)
    ///     .host(|_grid, (a, x, y, _)| y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x));
    /// // SAFETY: it reads and writes elements below `len` alone, which is the length of both by the requirement.
    /// let axpy = unsafe {
    ///     axpy.cuda(r#"extern "C" __global__ void axpy(float a, const float *x, float *y, unsigned long long len) {
    ///         unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    ///         if (i < len) y[i] += a * x[i];
    ///     }"#)
    /// };
    /// # drop(axpy);
    /// ```
    ///
    /// # Safety
    ///
    /// For every launch that the requirements let through, on any grid, the code keeps to the signature: it reads no more than the elements of `In`
    /// and `InOut` arrays, writes no more than those of `InOut` and `Out`, is free of data races, ends, and its parameters have the types that the
    /// signature says.
    #[must_use]
    pub unsafe fn cuda(self, source: impl Into<CudaSource>) -> Self {
        let program = Program { kernel: Arc::clone(&self.inner.name), source: source.into(), parameters: S::layouts() };
        self.with(|inner| inner.cuda = Some(Arc::new(DeviceCode::new(program))))
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
    /// [`NoKernelBody`](crate::Error::NoKernelBody), [`Compile`](crate::Error::Compile), [`NotContiguous`](crate::Error::NotContiguous),
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
            let code = self.loaded_on(stream.device_ref())?;
            let grid = self.fitted(code, grid, bound)?;
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
            let (code, body) = self.host_body()?;
            queue::call(&Launch { code, title: &self.inner.title, grid, bound, site }, body)
        })
    }

    /// Compiles and loads it for a device now, rather than at the first launch there. On the embedded device there is nothing to do.
    ///
    /// ```
    /// use resident::{Device, In, Kernel};
    ///
    /// let kernel = Kernel::<(In<f32>,)>::new("nothing").host(|_grid, _| ());
    /// kernel.prepare(&Device::cpu())?;
    /// assert_eq!(kernel.attributes(&Device::cpu())?.registers, 0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoKernelBody`](crate::Error::NoKernelBody); [`Compile`](crate::Error::Compile) with the compiler's log, or what else is wrong with the code;
    /// [`Backend`](crate::Error::Backend) and [`DeviceLost`](crate::Error::DeviceLost) if the driver refuses.
    pub fn prepare(&self, device: &Device) -> Result<()> {
        self.loaded_on(device).map(drop)
    }

    /// What it needs of a device, where it is loaded if it is not yet. A host body needs nothing, and its blocks have no limit.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    pub fn attributes(&self, device: &Device) -> Result<KernelAttributes> {
        self.loaded_on(device).map(Code::attributes)
    }

    /// The declaration of a CUDA C function that fits the signature, to be pasted.
    ///
    /// ```
    /// use resident::{In, InOut, Kernel, ndarray::Ix2};
    ///
    /// let axpy = Kernel::<(f32, In<f32>, InOut<f32, Ix2>)>::new("axpy");
    /// assert_eq!(axpy.prototype(), r#"extern "C" __global__ void axpy(float a, const float *x, resident::View2<float> y)"#);
    /// ```
    #[must_use]
    pub fn prototype(&self) -> String {
        let entry = self.inner.cuda.as_ref().and_then(|code| code.program().source.entry.as_deref());
        prototype::declaration(entry.unwrap_or(&self.inner.name), &S::layouts())
    }

    /// Runs the host body and the device's body, each on copies of the arguments, and tells where their results first differ by more than `tolerance`:
    /// absolutely for values up to 1, relative to the larger above; what is not made of floats or integers differs by any bit. The arguments
    /// themselves stay as they are. Waits until both are done.
    ///
    /// A difference is a value and no error, since the comparison went well, and none is `None`: `assert_eq!(kernel.compare(..)?, None)` is a test
    /// that shows what is wrong.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// let square = Kernel::<(InOut<f32>,)>::new("square").host(|_grid, (x,)| x.iter_mut().for_each(|x| *x *= *x));
    /// let mut x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    /// assert_eq!(square.compare(&Device::cpu(), Grid::cover(3), (&mut x,), 1e-6)?, None);
    /// assert_eq!(x.host()?.to_vec(), [1.0, 2.0, 3.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), [`prepare`](Self::prepare) and [`SmartArray::host`](crate::SmartArray::host).
    #[track_caller]
    pub fn compare<A: Arguments<S>>(&self, device: &Device, grid: Grid, arguments: A, tolerance: f64) -> Result<Option<Difference>> {
        let site = Location::caller();
        arguments.with_bound(|bound| {
            self.check(grid, bound)?;
            let (code, body) = self.host_body()?;
            let (title, name) = (&*self.inner.title, &*self.inner.name);
            let loaded = self.loaded_on(device)?;
            let fitted = self.fitted(loaded, grid, bound)?;
            let bodies = Bodies { title, name, host: (code, body, grid), device: (loaded, fitted), site };
            compare::first_difference(bodies, &device.stream(), bound, &S::judges(), tolerance)
        })
    }

    /// The grid as the device will run it. One that it chose answers to the requirements like one that was given.
    #[inline]
    fn fitted(&self, code: &Code, grid: Grid, bound: &[Bound<'_>]) -> Result<Grid> {
        match code.fit(&grid) {
            Ok(None) => Ok(grid),
            Ok(Some(chosen)) => self.check(chosen, bound).map(|()| chosen),
            Err(fault) => Err(self.bad_grid(grid, &fault)),
        }
    }

    #[inline]
    fn loaded_on(&self, device: &Device) -> Result<&Code> {
        match device.backend().runs() {
            BodyKind::Host => self.inner.host.as_ref().ok_or_else(|| self.no_body(&device.name(), "`.host(..)`")),
            BodyKind::Cuda => match &self.inner.cuda {
                Some(code) => code.on(device).map_err(|fault| self.not_loaded(device, fault)),
                None => Err(self.no_body(&device.name(), "`.cuda(..)`")),
            },
        }
    }

    fn host_body(&self) -> Result<(&Code, &dyn Body)> {
        match &self.inner.host {
            Some(code @ Code::Host(body)) => Ok((code, &**body)),
            _ => Err(self.no_body("the host", "`.host(..)`")),
        }
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

    #[cold]
    fn bad_grid(&self, grid: Grid, fault: &str) -> Error {
        let (blocks, threads) = (grid.blocks(), grid.threads());
        Error::Grid {
            kernel: self.quoted(),
            grid: Text::new(format!("{}x{}x{} blocks of {}x{}x{} threads", blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z)),
            fault: Text::new(fault),
        }
    }

    #[cold]
    fn no_body(&self, device: &str, method: &str) -> Error {
        Error::NoKernelBody { kernel: self.quoted(), device: Text::new(device), method: Text::new(method) }
    }

    #[cold]
    fn not_loaded(&self, device: &Device, fault: LoadError) -> Error {
        match fault {
            LoadError::Program(log) => Error::Compile { kernel: self.quoted(), device: Text::new(device.name()), log: Text::new(log) },
            LoadError::Refused(refusal) => {
                device::call_error(device, &self.inner.title, &format!("loading {}", self.inner.title), &refusal)
            }
        }
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
            cuda: self.cuda.clone(),
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
            .field("has_cuda_body", &self.inner.cuda.is_some())
            .finish()
    }
}
