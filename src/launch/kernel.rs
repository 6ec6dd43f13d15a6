//! A kernel: a name, a signature, requirements, and bodies.

use std::fmt;
use std::sync::Arc;

use super::arguments::Arguments;
use super::arguments::bound::BoundArgument;
use super::compare::{self, Bodies, Difference};
use super::device_code::DeviceCode;
use super::host_body::HostBody;
use super::queue::{self, Launch};
use super::signature::Signature;
use crate::backend::{
    Body, BodyKind, Code, CudaSource, KernelAttributes, LoadError, Program, prototype,
};
use crate::call_site::{CallSite, call_site};
use crate::device::{self, Device, Stream};
use crate::error::{Error, Result, Text};
use crate::grid::Grid;

/// A function over arrays that can run on a device. Its type says what it reads and what it writes,
/// so that a launch brings to the device what is missing there and nothing else: Numba's launches
/// copy each host array in and out.
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
/// | to run it | where | with which body |
/// |---|---|---|
/// | [`launch`](Self::launch), [`launch_on`](Self::launch_on) | queued on a stream | the device's: `host` on the embedded device, `cuda` on a GPU |
/// | [`call`](Self::call) | on the calling thread, on the host's copies | `host` |
/// | [`compare`](Self::compare) | both, on copies | both |
///
/// Write the signature at `Kernel::<..>::new`: closures take their types from there. Cloning is
/// cheap.
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
    /// A kernel without a body. Messages speak of it by this name, and it is the name of the
    /// function in CUDA C, unless [`CudaSource::entry`](crate::CudaSource::entry) says otherwise.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let title = format!("kernel \"{name}\"").into();
        Self {
            inner: Arc::new(Inner {
                name,
                title,
                requirements: Vec::new(),
                host: None,
                cuda: None,
            }),
        }
    }

    /// Adds a requirement on grid and arguments, checked at each launch before anything moves:
    /// arrays show `len()`, `shape()` and `strides()`, scalars their value. The text completes
    /// "kernel k requires that ...". It is asked again if a device chose another grid
    /// ([`Grid::auto`]).
    ///
    /// ```
    /// use resident::{Device, Error, Grid, In, Kernel, Out, SmartArray};
    ///
    /// let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
    ///     .require("both have one length", |_grid, (from, to)| from.len() == to.len())
    ///     .require("there is a thread for each element", |grid, (from, _)| grid.blocks().count() * grid.threads().count() >= from.len() as u64)
    ///     .host(|_grid, (from, to)| to.copy_from_slice(from));
    ///
    /// let _here = Device::cpu().enter();
    /// let (from, mut to) = (SmartArray::from(vec![1.0_f32; 10]), SmartArray::<f32, _>::uninit(11));
    /// let refused = copy.launch(Grid::cover(10), (&from, &mut to));
    /// assert!(matches!(refused, Err(Error::Requirement { .. })));
    /// assert_eq!(from.traffic().to_device.count, 0);                        // nothing moved
    /// ```
    #[must_use]
    pub fn require(
        self,
        text: impl Into<Arc<str>>,
        holds: impl for<'a> Fn(Grid, S::Described<'a>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|inner| {
            inner.requirements.push(Requirement { text: text.into(), holds: Arc::new(holds) })
        })
    }

    /// Gives it a body for the embedded device and for [`call`](Self::call): run once for a whole
    /// launch, with slices for flat parameters and ndarray views for sized ones. Parallelism within
    /// it is its own affair.
    ///
    /// A body that panics loses what the launch was to write: reading that is
    /// [`Lost`](crate::Error::Lost) until it is written anew. Inside a body, calls of this library
    /// that would have to wait are [`InsideKernel`](crate::Error::InsideKernel).
    ///
    /// ```
    /// use resident::{Device, Grid, In, Kernel, Out, SmartArray, ndarray::{Array2, Axis, Ix1, Ix2}};
    ///
    /// let row_sums = Kernel::<(In<f32, Ix2>, Out<f32, Ix1>)>::new("row_sums")
    ///     .host(|_grid, (table, mut sums)| sums.assign(&table.sum_axis(Axis(1))));        // ArrayView2, ArrayViewMut1
    ///
    /// let _here = Device::cpu().enter();
    /// let table = SmartArray::from(Array2::<f32>::ones((3, 5)));
    /// let mut sums = SmartArray::<f32, _>::uninit(3);
    /// row_sums.launch(Grid::cover(3), (&table, &mut sums))?;
    /// assert_eq!(sums.host()?.to_vec(), [5.0, 5.0, 5.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn host(self, run: impl for<'a> Fn(Grid, S::Host<'a>) + Send + Sync + 'static) -> Self {
        self.with(|inner| {
            inner.host =
                Some(Code::Host(Arc::new(HostBody::<S, _>::new(Arc::clone(&inner.name), run))))
        })
    }

    /// Gives it a body for NVIDIA GPUs: CUDA C, or what [`CudaSource`] says. It is compiled and
    /// loaded at the first launch on a device, or by [`prepare`](Self::prepare), and kept for the
    /// life of the process; what NVRTC makes is kept on disk too (`RESIDENT_CACHE`: `off`, or a
    /// folder; else `resident` in the user's folder for caches).
    ///
    /// The function has the kernel's name, unless [`CudaSource::entry`] says otherwise, and the
    /// parameters that [`prototype`](Self::prototype) prints: scalars by value, flat arrays as bare
    /// pointers, sized ones as `resident::View1` to `View6` by value (`data`, `shape`, `strides` in
    /// elements, `operator()(i, j)`, `contains(i, j)`, `size()`, `at(n)`), which are declared in
    /// front of the source. Their number and sizes are checked when it is loaded.
    ///
    /// ```
    /// use resident::{Device, Grid, In, InOut, Kernel, SmartArray};
    ///
    /// // The length stands first: `y.len()` is taken before `&mut y` borrows it.
    /// let axpy = Kernel::<(u64, f32, In<f32>, InOut<f32>)>::new("axpy")
    ///     .require("both have one length, and that is passed", |_grid, (len, _, x, y)| x.len() == y.len() && y.len() as u64 == len)
    ///     .host(|_grid, (_, a, x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x));
    /// // SAFETY: it reads and writes elements below `len` alone, which is the length of both by the requirement.
    /// let axpy = unsafe {
    ///     axpy.cuda(r#"extern "C" __global__ void axpy(unsigned long long len, float a, const float *x, float *y) {
    ///         unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    ///         if (i < len) y[i] += a * x[i];
    ///     }"#)
    /// };
    ///
    /// let _here = Device::cpu().enter();                                    // without this line it runs on the first GPU
    /// let (x, mut y) = (SmartArray::<f32, _>::ones(1000), SmartArray::<f32, _>::zeros(1000));
    /// axpy.launch(Grid::cover(y.len()), (y.len() as u64, 2.0, &x, &mut y))?;
    /// assert_eq!(y.host()?.sum(), 2000.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// For every launch that the requirements let through, on any grid, the code keeps to the
    /// signature: it reads no more than the elements of `In` and `InOut` arrays, writes no more
    /// than those of `InOut` and `Out`, is free of data races, ends, and its parameters have the
    /// types that the signature says.
    #[must_use]
    pub unsafe fn cuda(self, source: impl Into<CudaSource>) -> Self {
        let program = Program {
            kernel: Arc::clone(&self.inner.name),
            source: source.into(),
            parameters: S::layouts(),
        };
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

    /// Queues it on the current device's default stream: [`launch_on`](Self::launch_on) that
    /// stream. The example of [`Kernel`] shows it.
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), and [`NoDevice`](crate::Error::NoDevice) if there is no
    /// current device.
    ///
    /// # Panics
    ///
    /// A panic of a `require` goes through; nothing moved then.
    #[track_caller]
    pub fn launch<A: Arguments<S>>(&self, grid: Grid, arguments: A) -> Result<()> {
        let stream = Device::current()?.stream();
        self.launch_from(&stream, grid, &arguments, call_site())
    }

    /// Queues it on a stream: brings each `In` and `InOut` to the stream's device where it is
    /// stale, orders the stream behind other uses of the same bytes, queues the body, and marks
    /// what it writes as newest there. Returns when it is queued; what fails later is told by
    /// [`Stream::synchronize`](crate::Stream::synchronize), and by who reads what is lost.
    ///
    /// At the first launch on a GPU its code is compiled and loaded there:
    /// [`prepare`](Self::prepare) does that ahead of time. A covering grid over nothing
    /// (`Grid::cover(0)`) is checked like any other, and then queues nothing and marks nothing as
    /// written.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray, ndarray::{Array2, s}};
    ///
    /// let double = Kernel::<(InOut<f32>,)>::new("double").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let device = Device::cpu();
    /// let (one, two) = (device.new_stream()?, device.new_stream()?);
    /// let mut table = SmartArray::from(Array2::<f32>::ones((4, 256)));
    /// let (mut top, mut bottom) = table.multi_slice_mut((s![..2, ..], s![2.., ..]));
    /// double.launch_on(&one, Grid::cover(512), (&mut top,))?;               // 2,048 bytes go up
    /// double.launch_on(&two, Grid::cover(512), (&mut bottom,))?;            // and 2,048; the two may overlap
    /// double.launch_on(&two, Grid::cover(1024), (&mut table,))?;            // behind both, moves nothing
    /// assert_eq!((table.host()?.sum(), table.traffic().to_device.bytes), (4096.0, 4096));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Nothing is queued, and no contents change. By the checks, before anything moves:
    /// [`Requirement`](crate::Error::Requirement) if one does not hold;
    /// [`Grid`](crate::Error::Grid) if no device, or not this one, can launch it;
    /// [`NotContiguous`](crate::Error::NotContiguous) if a flat parameter was given a part with
    /// gaps; [`LayoutMismatch`](crate::Error::LayoutMismatch) if flat ones have different axis
    /// orders; [`NoKernelBody`](crate::Error::NoKernelBody) if it has none that this device runs;
    /// [`Compile`](crate::Error::Compile) if its code could not be made ready.
    ///
    /// By the arguments: [`Uninitialised`](crate::Error::Uninitialised) or
    /// [`Lost`](crate::Error::Lost) if some of an `In` or `InOut` has no contents;
    /// [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no room, or the host none to
    /// stage in; [`TooManyDevices`](crate::Error::TooManyDevices) if an array is on 63 devices
    /// already; [`Backend`](crate::Error::Backend) if a call is refused;
    /// [`DeviceLost`](crate::Error::DeviceLost) if this device died, or another that has the newest
    /// contents; [`InsideKernel`](crate::Error::InsideKernel) if it would have to wait inside a
    /// kernel body. Copies that were made already stay then, and are counted.
    ///
    /// # Panics
    ///
    /// A panic of a `require` goes through; nothing moved then.
    #[track_caller]
    pub fn launch_on<A: Arguments<S>>(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: A,
    ) -> Result<()> {
        self.launch_from(stream, grid, &arguments, call_site())
    }

    fn launch_from<A: Arguments<S>>(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &A,
        site: CallSite,
    ) -> Result<()> {
        arguments.with_bound(|bound| {
            self.check(grid, bound)?;
            let code = self.loaded_on(stream.device_ref())?;
            let grid = self.fitted(code, grid, bound)?;
            queue::launch(&Launch { code, title: &self.inner.title, grid, bound, site }, stream)
        })
    }

    /// Runs the host body on the host's copies, here and now, on the calling thread: for tests, and
    /// for machines without a device. What is stale on the host of `In` and `InOut` comes down
    /// first, as by [`SmartArray::host`](crate::SmartArray::host); what it writes is newest on the
    /// host.
    ///
    /// ```
    /// use resident::{Grid, In, Kernel, Out, SmartArray};
    ///
    /// let total = Kernel::<(In<u32>, Out<u32>)>::new("total").host(|_grid, (xs, sum)| sum[0] = xs.iter().sum());
    /// let (xs, mut sum) = (SmartArray::from(vec![1_u32, 2, 3]), SmartArray::<u32, _>::uninit(1));
    /// total.call(Grid::cover(1), (&xs, &mut sum))?;
    /// assert_eq!((sum.get(0)?, xs.traffic().to_device.count), (6, 0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), but for `Compile` and `TooManyDevices`:
    /// [`NoKernelBody`](crate::Error::NoKernelBody) says that there is no host body,
    /// [`OutOfMemory`](crate::Error::OutOfMemory) that the host has no room.
    ///
    /// # Panics
    ///
    /// A panic of the body goes through. What it wrote by then stays, and the arrays it was to
    /// write are newest on the host.
    #[track_caller]
    pub fn call<A: Arguments<S>>(&self, grid: Grid, arguments: A) -> Result<()> {
        let site = call_site();
        arguments.with_bound(|bound| {
            self.check(grid, bound)?;
            let (code, body) = self.host_body()?;
            queue::call(&Launch { code, title: &self.inner.title, grid, bound, site }, body)
        })
    }

    /// Compiles and loads it for a device now, rather than at the first launch there. On the
    /// embedded device there is nothing to do. Moves nothing.
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
    /// [`NoKernelBody`](crate::Error::NoKernelBody) if it has none that this device runs;
    /// [`Compile`](crate::Error::Compile) with the compiler's log, or what else is wrong with the
    /// code; [`Backend`](crate::Error::Backend) if the driver refuses;
    /// [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    pub fn prepare(&self, device: &Device) -> Result<()> {
        self.loaded_on(device).map(drop)
    }

    /// What it needs of a device (registers of a thread, bytes of shared memory, the largest
    /// block), where it is loaded if it is not yet: `cuFuncGetAttribute`. A host body needs
    /// nothing, and its blocks have no limit. The example of [`prepare`](Self::prepare) shows it.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    pub fn attributes(&self, device: &Device) -> Result<KernelAttributes> {
        self.loaded_on(device).map(Code::attributes)
    }

    /// The declaration of a CUDA C function that fits the signature, to be pasted. Scalars are
    /// called a, b, ..., arrays x, y, z: name them as you like.
    ///
    /// ```
    /// use resident::{In, InOut, Kernel, ndarray::Ix2};
    ///
    /// let axpy = Kernel::<(f32, In<f32>, InOut<f32, Ix2>)>::new("axpy");
    /// assert_eq!(axpy.prototype(), r#"extern "C" __global__ void axpy(float a, const float *x, resident::View2<float> y)"#);
    /// ```
    #[must_use]
    pub fn prototype(&self) -> String {
        let entry =
            self.inner.cuda.as_ref().and_then(|code| code.program().source.entry.as_deref());
        prototype::declaration(entry.unwrap_or(&self.inner.name), &S::layouts())
    }

    /// Runs the host body and the device's body, each on copies of the arguments, and tells where
    /// their results first differ by more than `tolerance`: absolutely for values up to 1, relative
    /// to the larger above; what is not made of floats or integers differs by any bit, and two that
    /// are not a number are the same. The arguments themselves stay as they are and where they are.
    /// Waits until both are done.
    ///
    /// A difference is a value and no error, since the comparison went well, and none is `None`:
    /// `assert_eq!(kernel.compare(..)?, None)` is a test that shows what is wrong.
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
    /// As [`launch_on`](Self::launch_on) and [`call`](Self::call), which it does;
    /// [`Lost`](crate::Error::Lost) if the device's body fails.
    ///
    /// # Panics
    ///
    /// A panic of the host body or of a `require` goes through.
    #[track_caller]
    pub fn compare<A: Arguments<S>>(
        &self,
        device: &Device,
        grid: Grid,
        arguments: A,
        tolerance: f64,
    ) -> Result<Option<Difference>> {
        let site = call_site();
        arguments.with_bound(|bound| {
            self.check(grid, bound)?;
            let (code, body) = self.host_body()?;
            let (title, name) = (&*self.inner.title, &*self.inner.name);
            let loaded = self.loaded_on(device)?;
            let fitted = self.fitted(loaded, grid, bound)?;
            let bodies =
                Bodies { title, name, host: (code, body, grid), device: (loaded, fitted), site };
            compare::first_difference(bodies, &device.stream(), bound, &S::layouts(), tolerance)
        })
    }

    /// The grid as the device will run it. One that it chose answers to the requirements like one
    /// that was given.
    #[inline]
    fn fitted(&self, code: &Code, grid: Grid, bound: &[BoundArgument<'_>]) -> Result<Grid> {
        match code.fit(&grid) {
            Ok(None) => Ok(grid),
            Ok(Some(chosen)) => self.check(chosen, bound).map(|()| chosen),
            Err(fault) => Err(self.bad_grid(grid, &fault)),
        }
    }

    #[inline]
    fn loaded_on(&self, device: &Device) -> Result<&Code> {
        match device.backend().runs() {
            BodyKind::Host => {
                self.inner.host.as_ref().ok_or_else(|| self.no_body(&device.name(), "`.host(..)`"))
            }
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

    fn check(&self, grid: Grid, bound: &[BoundArgument<'_>]) -> Result<()> {
        if let Some(fault) = grid.fault() {
            return Err(self.bad_grid(grid, fault));
        }
        for Requirement { text, holds } in &self.inner.requirements {
            if !holds(grid, S::describe(bound)) {
                return Err(Error::Requirement {
                    kernel: self.quoted(),
                    requirement: Text::new(&**text),
                    arguments: Text::new(
                        bound.iter().map(BoundArgument::describe).collect::<Vec<_>>().join(", "),
                    ),
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
            grid: Text::new(format!(
                "{}x{}x{} blocks of {}x{}x{} threads",
                blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z
            )),
            fault: Text::new(fault),
        }
    }

    #[cold]
    fn no_body(&self, device: &str, method: &str) -> Error {
        Error::NoKernelBody {
            kernel: self.quoted(),
            device: Text::new(device),
            method: Text::new(method),
        }
    }

    #[cold]
    fn not_loaded(&self, device: &Device, fault: LoadError) -> Error {
        match fault {
            LoadError::Program(log) => Error::Compile {
                kernel: self.quoted(),
                device: Text::new(device.name()),
                log: Text::new(log),
            },
            LoadError::Refused(refusal) => device::call_error(
                device,
                &self.inner.title,
                &format!("loading {}", self.inner.title),
                &refusal,
            ),
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
        let requirements: Vec<&str> =
            self.inner.requirements.iter().map(|requirement| &*requirement.text).collect();
        f.debug_struct("Kernel")
            .field("name", &self.inner.name)
            .field("signature", &std::any::type_name::<S>())
            .field("requirements", &requirements)
            .field("has_host_body", &self.inner.host.is_some())
            .field("has_cuda_body", &self.inner.cuda.is_some())
            .finish()
    }
}
