//! A kernel: a name, a signature, requirements, and bodies.

mod errors;
mod rust_bodies;
mod step;

use std::fmt;
use std::sync::Arc;

use super::arguments::bound::BoundArgument;
use super::arguments::{Arguments, IntoGrid};
use super::compare_bodies::{Bodies, Difference};
use super::device_code::DeviceCode;
use super::each;
use super::signature::Signature;
use super::source::GpuSource;
use super::submit::Launch;
use crate::device::{Device, Stream};
use crate::error::{AtCall, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::grid::{Grid, GridLimits};
use resident_backend::{BodyKind, KernelAttributes, KernelBody, KernelCode, Program, sync};
use resident_code::c_declaration;
use resident_documents::{quoted, visible};

/// A function over arrays that runs on a device. Its type declares which arguments it reads and
/// which it writes, so a launch uploads only bytes that are stale on the device and that the kernel
/// reads. (Numba's launches copy each host array in and out.)
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
/// There are three ways to run it:
///
/// - [`launch`](Self::launch) and [`launch_on`](Self::launch_on) queue it on a stream, with the
///   device's body: `cuda` on a GPU; `host` or `host_each`, else `cuda`, on the embedded device,
///   which is made of this process's memory and threads ([`Device::cpu`]).
/// - [`call`](Self::call) runs that body on the calling thread, on the host's copies.
/// - [`compare`](Self::compare) runs the bodies of host and device, on copies of the arguments.
///
/// A kernel has 1 to 16 parameters, and each array is one of them. If the number of arrays is known
/// only at run time, make them one array with an axis more ([`ops::stack`](crate::ops::stack)), or
/// launch once for each.
///
/// Write the signature at `Kernel::<..>::new`, where closures infer their types: see
/// [`new`](Self::new). Cloning is cheap.
pub struct Kernel<S: Signature> {
    inner: Arc<Inner<S>>,
}

struct Inner<S: Signature> {
    name: Arc<str>,
    /// The name with what a terminal would obey escaped.
    shown: Arc<str>,
    /// `kernel "name"`, for messages.
    title: Arc<str>,
    requirements: Vec<Arc<Requirement<S>>>,
    host: Option<KernelCode>,
    /// Whether `host` is that of `host_each`, which needs outputs of one shape.
    is_each: bool,
    cuda: Option<Arc<DeviceCode>>,
    /// In place of `cuda` on AMD GPUs.
    hip: Option<Arc<DeviceCode>>,
}

// A body that panics loses what it writes, and the kernel stays as it was.
impl<S: Signature> std::panic::RefUnwindSafe for Inner<S> {}

/// The closure of a requirement.
type Condition<S> = dyn for<'a> Fn(Grid, <S as Signature>::Described<'a>) -> bool + Send + Sync;

struct Requirement<S: Signature> {
    text: Arc<str>,
    holds: Box<Condition<S>>,
}

impl<S: Signature> Kernel<S> {
    /// A kernel without a body. Its name is used in messages, where what a terminal would obey is
    /// escaped, and as the name of the CUDA C
    /// function unless [`GpuSource::entry`](crate::GpuSource::entry) sets another.
    ///
    /// Write the signature here, as `Kernel::<(f32, InOut<f32>)>::new("scale")`. The closures of
    /// `require`, `host` and `host_each` infer their parameters' types from it. A type that is
    /// written elsewhere, as the result of the function or at `let`, comes too late for them: the
    /// compiler reports E0282, "type annotations needed".
    ///
    /// ```
    /// use resident::{InOut, Kernel};
    ///
    /// fn scale() -> Kernel<(f32, InOut<f32>)> {
    ///     Kernel::<(f32, InOut<f32>)>::new("scale")       // `Kernel::new("scale")` is E0282 below
    ///         .require("there are elements", |_grid, (_, xs)| !xs.is_empty())
    ///         .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x *= k))
    /// }
    /// # drop(scale());
    /// ```
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let shown = match visible(&name) {
            shown if *shown == *name => Arc::clone(&name),
            shown => shown.into(),
        };
        let title = format!("kernel {}", quoted(&name)).into();
        Self {
            inner: Arc::new(Inner {
                name,
                shown,
                title,
                requirements: Vec::new(),
                host: None,
                is_each: false,
                cuda: None,
                hip: None,
            }),
        }
    }

    /// Adds a requirement on grid and arguments. Each launch checks it before anything is copied.
    /// The closure gets the `len()`, `shape()` and `strides()` of arrays and the values of scalars.
    /// Messages quote the text. If a device chooses another grid ([`Grid::auto`]), the launch
    /// checks the requirement again for that grid. If the compiler says "type annotations needed"
    /// (E0282), write the signature at [`new`](Self::new).
    ///
    /// ```
    /// use resident::{Device, Error, Grid, In, Kernel, Out, SmartArray};
    ///
    /// let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
    ///     .require("both have one length", |_grid, (from, to)| from.len() == to.len())
    ///     .require("there is a thread for each element", |grid, (from, _)| {
    ///         grid.blocks().count() * grid.threads().count() >= from.len() as u64
    ///     })
    ///     .host(|_grid, (from, to)| to.copy_from_slice(from));
    ///
    /// let _here = Device::cpu().enter();
    /// let from = SmartArray::from(vec![1.0_f32; 10]);
    /// let mut to = SmartArray::<f32, _>::uninit(11);
    /// let refused = copy.launch(Grid::cover(10), (&from, &mut to));
    /// assert!(matches!(refused, Err(Error::Requirement { .. })));
    /// assert_eq!(from.traffic().to_device.count, 0);        // nothing moved
    /// ```
    #[must_use]
    pub fn require(
        self,
        text: impl Into<Arc<str>>,
        holds: impl for<'a> Fn(Grid, S::Described<'a>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(|inner| {
            let requirement = Requirement { text: text.into(), holds: Box::new(holds) };
            inner.requirements.push(Arc::new(requirement));
        })
    }

    /// Sets the body for GPUs: CUDA C, or another [`GpuSource`]. AMD GPUs run CUDA C as HIP, unless
    /// the kernel has a [`hip`](Self::hip) body for them. The embedded device runs CUDA C too, if
    /// the kernel has no [`host`](Self::host) body: see below. A body is compiled and loaded at the
    /// first launch on a device, or by [`prepare`](Self::prepare), and stays loaded until the
    /// process ends. Compiled code is cached on disk: in `RESIDENT_CACHE` (a folder, or `off`),
    /// else in the folder `resident` of the user's cache folder.
    ///
    /// The function must have the kernel's name, unless [`GpuSource::entry`] sets another name. Its
    /// parameters must be those that [`prototype`](Self::prototype) prints. Scalars are passed by
    /// value, flat arrays (slices) as bare pointers, and sized arrays (views) as `resident::View1`
    /// to `View6` by value (`data`, `shape`, `strides` in elements, `operator()(i, j)`,
    /// `contains(i, j)`, `size()`, `at(n)`). The library declares these types,
    /// `resident::thread()`, the number of the thread in the grid, and `resident::wave_size()`, the
    /// lanes of a warp, a constant. Loading compares the parameters' number, sizes and types, but
    /// [neither sign nor `const`](crate::guide::from_a_loop_to_a_gpu#what-is-compared).
    ///
    /// ```
    /// use resident::{Device, Grid, In, InOut, Kernel, SmartArray};
    ///
    /// // The length comes first: `y.len()` is evaluated before `&mut y` borrows it.
    /// let axpy = Kernel::<(u64, f32, In<f32>, InOut<f32>)>::new("axpy")
    ///     .require("both have the length that is passed", |_grid, (len, _, x, y)| {
    ///         x.len() as u64 == len && y.len() as u64 == len
    ///     })
    ///     .host(|_grid, (_, a, x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x));
    /// // SAFETY: it reads and writes only elements below `len`, the length of both by the
    /// // requirement.
    /// let axpy = unsafe {
    ///     axpy.cuda(r#"
    ///         extern "C" __global__
    ///         void axpy(unsigned long long len, float a, const float *x, float *y) {
    ///             size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    ///             if (i < len) y[i] += a * x[i];
    ///         }
    ///     "#)
    /// };
    ///
    /// let _here = Device::cpu().enter();            // without this line it runs on the first GPU
    /// let x = SmartArray::<f32, _>::ones(1000);
    /// let mut y = SmartArray::<f32, _>::zeros(1000);
    /// axpy.launch(Grid::cover(y.len()), (y.len() as u64, 2.0, &x, &mut y))?;
    /// assert_eq!(y.host()?.sum(), 2000.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # On the embedded device
    ///
    /// A C++17 compiler compiles CUDA C for the host when the program runs: the one that
    /// `RESIDENT_CXX` names, else `c++`, `clang++` or `g++`. Blocks run on up to 24 cores; the
    /// threads of a block run on one core, one after the other until one waits. There are shared
    /// memory, barriers, warps of 32 lanes, atomics, vectors, most intrinsics, `printf` (to
    /// `tracing`, see [`audit`](crate::audit), once the launch is over; else to standard output),
    /// and `assert`, which fails the launch. A format of `printf` that does not fit its values, or
    /// has what CUDA lacks (`%n`, `%m`, `%2$d`, more than 32 values), is refused with the line if
    /// it is a constant, else it fails the launch. The order of blocks varies, on seeded devices
    /// too.
    /// `__CUDA_ARCH__` is 900, or that of the option `-arch`. There are `cuda_fp16.h`,
    /// `cuda_bf16.h` and `cooperative_groups.h` (blocks, tiles, coalesced groups and their parts,
    /// `reduce`, scans, `memcpy_async`); `cuda_runtime.h` and its kin can be included with every
    /// compiler, and what `<stdint.h>`, `<limits.h>`, `<float.h>` and `<math.h>` name is there
    /// without. A kernel that uses what is not there (groups of the grid, inline PTX, textures,
    /// surfaces, launches inside kernels, `wmma`, cub, thrust, cuRAND), itself or in a function
    /// that it may call, is refused with the line; others of its source run, unless the function is
    /// a member, an operator, overloaded, or in `#if`. Refused is what NVRTC refuses: functions of
    /// the host, also where they are only declared, `std::`, `sqrt(16)`, `alloca`, variables that
    /// code initialises. Local arrays of a thread may take about 1 MiB. On Linux on x86-64 more
    /// fails the launch: a handler of `SIGSEGV`, `SIGFPE` and `SIGILL`, which passes on what does
    /// not concern it, is installed with the first such kernel and stays: a shared library with
    /// this crate must not be unloaded. A handler installed later must pass on to it what it does
    /// not handle. Elsewhere more ends the process, at a guard page. A wild access ends the
    /// process, there with a line on standard error that names the kernel.
    ///
    /// Where C leaves a value open, kernels get a GPU's. Shifts by at least as many bits as a
    /// number has leave none, or those of the sign; a count has its lowest 32 bits. Floats that an
    /// integer cannot hold become the nearest of 32 or 64 bits, of which narrower types keep the
    /// lowest; not-a-number becomes 0, or the highest bit if one of the two types has 64 bits. Sums
    /// of integers wrap around. An integer of up to 64 bits divided by zero has all bits set (on
    /// Linux on x86-64). This holds for the source itself and its macros, not for headers that it
    /// includes, nor for `assert`, `<<=` of bit-fields, constants, and conversions that neither the
    /// text nor a place in it shows, as those within macros. Lines that the compiler then refuses,
    /// as it may where templates overload `<<`, keep the values of C, and all do if that does not
    /// help. Products and sums are rounded apart unless `--fmad=true` is an option, while NVRTC
    /// contracts them unless `--fmad=false` is one; mathematical functions are the C library's.
    ///
    /// With [`Emulation::prefer_cuda`](crate::Emulation::prefer_cuda), or with the environment
    /// variable `RESIDENT_CPU_KERNELS=cuda`, CUDA C runs also where there is a `host` body. With
    /// [`Emulation::sanitize`](crate::Emulation::sanitize) each of its accesses is checked. With
    /// the environment variable `RESIDENT_LAUNCH_TIMEOUT`, in seconds, launches of CUDA C on the
    /// embedded device fail when they take longer: on Linux on x86-64 by a signal (`SIGURG`),
    /// elsewhere by code that is slower and does not leave loops that compute nothing.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// // SAFETY: the block has as many threads as there are elements.
    /// let reverse = unsafe {
    ///     Kernel::<(InOut<f32>,)>::new("reverse")
    ///         .require("one block of all elements", |grid, (x,)| {
    ///             grid.blocks().count() == 1 && grid.threads().count() == x.len() as u64
    ///         })
    ///         .cuda(r#"
    ///             extern "C" __global__ void reverse(float *x) {
    ///                 __shared__ float part[1024];
    ///                 part[threadIdx.x] = x[threadIdx.x];
    ///                 __syncthreads();
    ///                 x[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
    ///             }
    ///         "#)
    /// };
    /// let _here = Device::cpu().enter();
    /// let mut x = SmartArray::from(vec![1.0, 2.0, 3.0]);
    /// match reverse.launch(Grid::new(1, 3), (&mut x,)) {
    ///     Err(resident::Error::Compile { log, .. }) => println!("{log}"),   // no C++ compiler
    ///     outcome => {
    ///         outcome?;
    ///         assert_eq!(x.to_vec()?, [3.0, 2.0, 1.0]);
    ///     }
    /// }
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// For every launch that passes the requirements, on any grid, the code must comply with the
    /// signature: it reads only elements of `In` and `InOut` arrays, writes only elements of
    /// `InOut` and `Out` arrays, has no data races, terminates, and its parameters have the types
    /// that the signature declares. What it does not write of an `Out` array has whatever the
    /// memory held, which may be contents of another array.
    ///
    /// Launches of one kernel may run at the same time, on several streams. All launches on a
    /// device share the variables of the module (`__device__`, `__constant__`, `__managed__`, see
    /// [`GpuSource::variable`]), so the code must have no data races on these. It must not keep a
    /// pointer to an array past the launch's end: the memory may then be freed or reused.
    #[must_use]
    pub unsafe fn cuda(self, source: impl Into<GpuSource>) -> Self {
        let code = self.device_code(source.into());
        self.with(|inner| inner.cuda = Some(code))
    }

    /// Sets a body for AMD GPUs alone: HIP C++, or [`GpuSource::hsaco`]. Without it they run the
    /// CUDA C of [`cuda`](Self::cuda), which hiprtc compiles as it is. So this is for kernels whose
    /// source names what only one of the vendors has, such as lanes beyond the 32nd: see
    /// `resident::wave_size()` in the views' declarations.
    ///
    /// ```
    /// use resident::{GpuSource, InOut, Kernel};
    ///
    /// # fn kernel(image: &[u8]) -> Kernel<(InOut<f32>,)> {
    /// let double = Kernel::<(InOut<f32>,)>::new("double");
    /// // SAFETY: the image was made of a `double` that writes only elements of its argument.
    /// unsafe { double.hip(GpuSource::hsaco(image)) }
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`cuda`](Self::cuda).
    #[must_use]
    pub unsafe fn hip(self, source: impl Into<GpuSource>) -> Self {
        let code = self.device_code(source.into());
        self.with(|inner| inner.hip = Some(code))
    }

    fn device_code(&self, source: GpuSource) -> Arc<DeviceCode> {
        let (kernel, parameters) = (Arc::clone(&self.inner.shown), S::compiled());
        let source = source.0;
        source.entries.add(source.entry.as_deref().unwrap_or(&kernel));
        Arc::new(DeviceCode::new(Program { kernel, source, parameters }))
    }

    fn with(self, change: impl FnOnce(&mut Inner<S>)) -> Self {
        let mut inner = Arc::try_unwrap(self.inner).unwrap_or_else(|shared| Inner::clone(&shared));
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// The name, in quotes, and the device code for GPUs of an architecture.
    pub(super) fn code_for(&self, architecture: &str) -> (String, Option<&Arc<DeviceCode>>) {
        let Inner { cuda, hip, .. } = &*self.inner;
        (self.quoted(), hip.as_ref().filter(|_| architecture.starts_with("gfx")).or(cuda.as_ref()))
    }

    /// The device code, if there is any.
    #[cfg(all(test, feature = "nccl"))]
    pub(crate) fn program(&self) -> Option<&Program> {
        self.inner.cuda.as_ref().map(|code| code.program())
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Queues the kernel on the current stream: the one that this thread [entered](Stream::enter),
    /// or the current device's default stream. See [`launch_on`](Self::launch_on).
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), and [`NoDevice`](crate::Error::NoDevice) if there is no
    /// current device.
    ///
    /// # Panics
    ///
    /// If a `require` panics; nothing has been copied then.
    #[track_caller]
    pub fn launch<A: Arguments<S>>(&self, grid: impl IntoGrid, arguments: A) -> Result<()> {
        let site = call_site();
        let stream = Stream::current().at(site)?;
        self.launch_from(&stream, grid.into_grid(), &arguments, 0, site)
    }

    /// Queues the kernel on a stream. Uploads the bytes of `In` and `InOut` arrays that are stale
    /// on the stream's device, orders the stream after other uses of the same bytes, queues the
    /// body, and marks what it writes as newest there. Returns when the body is queued. If it fails
    /// later, [`Stream::synchronize`](crate::Stream::synchronize) returns the failure, and so does
    /// every read of lost contents.
    ///
    /// The first launch on a GPU compiles and loads the code there; [`prepare`](Self::prepare) does
    /// so ahead of time. An empty covering grid (`Grid::cover(0)`) is checked like any other grid,
    /// but then nothing is queued and nothing is marked as written.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray, ndarray::{Array2, s}};
    ///
    /// let double = Kernel::<(InOut<f32>,)>::new("double")
    ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let device = Device::cpu();
    /// let (one, two) = (device.new_stream()?, device.new_stream()?);
    /// let mut table = SmartArray::from(Array2::<f32>::ones((4, 256)));
    /// let (mut top, mut bottom) = table.multi_slice_mut((s![..2, ..], s![2.., ..]));
    /// double.launch_on(&one, Grid::cover(512), (&mut top,))?;       // uploads 2,048 bytes
    /// double.launch_on(&two, Grid::cover(512), (&mut bottom,))?;    // and 2,048; they may overlap
    /// double.launch_on(&two, Grid::cover(1024), (&mut table,))?;    // after both; moves nothing
    /// assert_eq!((table.host()?.sum(), table.traffic().to_device.bytes), (4096.0, 4096));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// On an error nothing is queued and array contents are unchanged. Before anything is copied:
    ///
    /// - [`Requirement`](crate::Error::Requirement) if a requirement is not fulfilled.
    /// - [`Grid`](crate::Error::Grid) if this device, or any device, cannot launch the grid.
    /// - [`NotContiguous`](crate::Error::NotContiguous) if a flat argument (a slice in the body)
    ///   has gaps.
    /// - [`LayoutMismatch`](crate::Error::LayoutMismatch) if flat arguments differ in axis order.
    /// - [`NoKernelBody`](crate::Error::NoKernelBody) if the kernel has no body for this device.
    /// - [`Compile`](crate::Error::Compile) if its code could not be compiled or loaded.
    ///
    /// While arguments are acquired (copies made before the error stay valid and are counted):
    ///
    /// - [`Uninitialised`](crate::Error::Uninitialised) or [`Lost`](crate::Error::Lost) if some
    ///   elements of an `In` or `InOut` argument have no contents. Work that writes them may still
    ///   fail after the launch was queued. Then the launch is `Ok`, as with CUDA, but does not run:
    ///   what it was to write is lost too, and `synchronize` and reads of it return the failure.
    /// - [`OutOfMemory`](crate::Error::OutOfMemory) if what is in use on the device leaves no room,
    ///   or the host has none for staging.
    /// - [`TooManyDevices`](crate::Error::TooManyDevices) if 63 open devices have a copy of an
    ///   array already.
    /// - [`Backend`](crate::Error::Backend) if the device refuses a call.
    /// - [`DeviceLost`](crate::Error::DeviceLost) if this device died, or another that has the
    ///   newest contents.
    /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
    ///   kernel body.
    ///
    /// # Panics
    ///
    /// If a `require` panics; nothing has been copied then.
    #[track_caller]
    pub fn launch_on<A: Arguments<S>>(
        &self,
        stream: &Stream,
        grid: impl IntoGrid,
        arguments: A,
    ) -> Result<()> {
        self.launch_from(stream, grid.into_grid(), &arguments, 0, call_site())
    }

    /// As [`launch_on`](Self::launch_on), for a call of the program at `site`. With up to
    /// `brief_len_max` elements in all arrays, the calling thread may run the body: it takes
    /// microseconds and runs no code of the program.
    pub(crate) fn launch_from<A: Arguments<S>>(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &A,
        brief_len_max: u64,
        site: CallSite,
    ) -> Result<()> {
        let launched = arguments
            .with_bound(|bound| self.launch_bound(stream, grid, bound, brief_len_max, site));
        match launched {
            Ok(()) => Ok(()),
            Err(error) => Err(error).at(site),
        }
    }

    /// As [`launch_from`](Self::launch_from), for arguments that another signature has bound.
    ///
    /// # Safety
    ///
    /// They are as [`Arguments`] of this signature would bind them: for each parameter in order a
    /// scalar of its size, or an array with its elements, its access, and its number of axes.
    pub(crate) unsafe fn launch_rearranged(
        &self,
        stream: &Stream,
        grid: Grid,
        bound: &[BoundArgument<'_>],
        brief_len_max: u64,
        site: CallSite,
    ) -> Result<()> {
        self.launch_bound(stream, grid, bound, brief_len_max, site).at(site)
    }

    #[inline]
    fn launch_bound(
        &self,
        stream: &Stream,
        grid: Grid,
        bound: &[BoundArgument<'_>],
        brief_len_max: u64,
        site: CallSite,
    ) -> Result<()> {
        self.check(&grid, bound)?;
        let code = self.loaded_on(stream.device_ref())?;
        let (limits, title) = (stream.device_ref().grid_limits(), &self.inner.title);
        let queue =
            |grid| Launch { code, title, grid, bound, site, brief_len_max }.queue_on(stream);
        if code.accepts_grid(&grid, limits) {
            queue(&grid)
        } else {
            queue(&self.fitted(code, grid, limits, bound)?)
        }
    }

    /// Runs the host body on the host's copies and on the calling thread, a body of
    /// [`host_each`](Self::host_each) on all cores, for tests and for machines without a device.
    /// Downloads the bytes of `In` and `InOut` arrays that are stale on the host, as
    /// [`SmartArray::host`](crate::SmartArray::host) does. The host has the newest contents of
    /// everything that the body writes. The grid may be any that
    /// [`Device::cpu`](crate::Device::cpu) launches.
    ///
    /// ```
    /// use resident::{Grid, In, Kernel, Out, SmartArray};
    ///
    /// let total = Kernel::<(In<u32>, Out<u32>)>::new("total")
    ///     .host(|_grid, (xs, sum)| sum[0] = xs.iter().sum());
    /// let (xs, mut sum) = (SmartArray::from([1_u32, 2, 3]), SmartArray::<u32, _>::uninit(1));
    /// total.call(Grid::cover(1), (&xs, &mut sum))?;
    /// assert_eq!((sum.get(0)?, xs.traffic().to_device.count), (6, 0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on), except for `Compile` and `TooManyDevices`.
    /// [`NoKernelBody`](crate::Error::NoKernelBody) means that there is no host body,
    /// [`OutOfMemory`](crate::Error::OutOfMemory) that the host has no memory left.
    ///
    /// # Panics
    ///
    /// If the body panics. Elements that the body has already written keep their values, and the
    /// arrays that it should have written are newest on the host.
    #[track_caller]
    pub fn call<A: Arguments<S>>(&self, grid: impl IntoGrid, arguments: A) -> Result<()> {
        let (site, grid) = (call_site(), grid.into_grid());
        arguments
            .with_bound(|bound| {
                self.check(&grid, bound)?;
                let (code, body) = self.host_body()?;
                let grid = self.fitted(code, grid, &GridLimits::default(), bound)?;
                let (title, brief_len_max) = (&self.inner.title, 0);
                Launch { code, title, grid: &grid, bound, site, brief_len_max }.run_on_host(body)
            })
            .at(site)
    }

    /// Compiles and loads the kernel for a device now rather than at the first launch there. Does
    /// nothing for a body in Rust.
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
    /// - [`NoKernelBody`](crate::Error::NoKernelBody) if the kernel has no body for this device.
    /// - [`Compile`](crate::Error::Compile) with the compiler's log, or with another error in the
    ///   code.
    /// - [`Backend`](crate::Error::Backend) if the driver refuses a call.
    /// - [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn prepare(&self, device: &Device) -> Result<()> {
        self.loaded_on(device).map(drop).at(call_site())
    }

    /// The kernel's resources on a device (`cuFuncGetAttribute`): [`KernelAttributes`] lists them,
    /// and says which of them bodies on the embedded device have. Loads the kernel there if
    /// necessary. The example of [`prepare`](Self::prepare) shows its use.
    ///
    /// # Errors
    ///
    /// As [`prepare`](Self::prepare).
    #[track_caller]
    pub fn attributes(&self, device: &Device) -> Result<KernelAttributes> {
        let code = self.loaded_on(device).at(call_site())?;
        Ok(code.attributes(device.grid_limits()))
    }

    /// The declaration of a CUDA C function with this signature, to paste into a source. The
    /// parameters have the names a, b, ... for scalars and x, y, z for arrays; you may use other
    /// names.
    ///
    /// ```
    /// use resident::{In, InOut, Kernel, ndarray::Ix2};
    ///
    /// let prototype = Kernel::<(f32, In<f32>, InOut<f32, Ix2>)>::new("axpy").prototype();
    /// assert!(prototype.starts_with(r#"extern "C" __global__ void axpy"#));
    /// assert!(prototype.ends_with("(float a, const float *x, resident::View2<float> y)"));
    /// ```
    #[must_use]
    pub fn prototype(&self) -> String {
        let entry =
            self.inner.cuda.as_ref().and_then(|code| code.program().source.entry.as_deref());
        c_declaration::declaration(entry.unwrap_or(&self.inner.shown), &S::compiled())
    }

    /// Runs the [`host`](Self::host) body and the device's body, each on its own copies of the
    /// arguments, waits for both, and returns the first element at which their results differ by
    /// more than `tolerance`. The device's body is the [`cuda`](Self::cuda) body, or on AMD GPUs
    /// the [`hip`](Self::hip) body if there is one. The embedded device compiles CUDA C for the
    /// host, so a body is never compared with itself, whatever the device prefers.
    ///
    /// The tolerance is absolute for values up to 1, and relative to the larger value above 1.
    /// Elements that do not consist of floats or integers differ if any bit differs. Two NaNs are
    /// equal. The contents and the residency of the arguments do not change.
    ///
    /// If `assert_eq!(kernel.compare(..)?, None)` fails in a test, its message describes the
    /// difference.
    ///
    /// ```
    /// use resident::{Device, Error, Grid, InOut, Kernel, SmartArray};
    ///
    /// let square = Kernel::<(InOut<f32>,)>::new("square")
    ///     .require("a thread for each element", |grid, (x,)| {
    ///         grid.blocks().count() == 1 && grid.threads().count() == x.len() as u64
    ///     })
    ///     .host(|_grid, (x,)| x.iter_mut().for_each(|x| *x *= *x));
    /// let source = r#"
    ///     extern "C" __global__ void square(float *x) { x[threadIdx.x] *= x[threadIdx.x]; }
    /// "#;
    /// // SAFETY: the block has as many threads as there are elements.
    /// let square = unsafe { square.cuda(source) };
    /// let mut x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    /// match square.compare(&Device::cpu(), Grid::new(1, 3), (&mut x,), 1e-6) {
    ///     Err(Error::Compile { log, .. }) => println!("{log}"),         // no C++ compiler
    ///     compared => assert_eq!(compared?, None),
    /// }
    /// assert_eq!(x.host()?.to_vec(), [1.0, 2.0, 3.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch_on`](Self::launch_on) and [`call`](Self::call);
    /// [`NoKernelBody`](crate::Error::NoKernelBody) if the kernel has only one of the two bodies,
    /// with the method that adds the other; [`Lost`](crate::Error::Lost) if the device's body
    /// fails.
    ///
    /// # Panics
    ///
    /// If the host body or a `require` panics.
    #[track_caller]
    pub fn compare<A: Arguments<S>>(
        &self,
        device: &Device,
        grid: impl IntoGrid,
        arguments: A,
        tolerance: f64,
    ) -> Result<Option<Difference>> {
        let (site, grid) = (call_site(), grid.into_grid());
        arguments
            .with_bound(|bound| {
                self.check(&grid, bound)?;
                let (code, host_body) = self.body_in_rust()?;
                let (title, brief_len_max) = (&self.inner.title, 0);
                let host = Launch { code, title, grid: &grid, bound, site, brief_len_max };
                let code = self.compiled_on(device)?;
                let grid = &self.fitted(code, grid, device.grid_limits(), bound)?;
                let on_device = Launch { code, grid, ..host };
                let name = &self.inner.shown;
                let bodies = Bodies { name, host, host_body, on_device };
                bodies.first_difference(&device.current_stream(), &S::layouts(), tolerance)
            })
            .at(site)
    }

    /// The grid that the device will run. If it differs from the given grid, checks the
    /// requirements again.
    fn fitted(
        &self,
        code: &KernelCode,
        grid: Grid,
        limits: &GridLimits,
        bound: &[BoundArgument<'_>],
    ) -> Result<Grid> {
        match code.resolve_grid(&grid, limits) {
            Ok(None) => Ok(grid),
            Ok(Some(chosen)) => self.check(&chosen, bound).map(|()| chosen),
            Err(fault) => Err(self.bad_grid(grid, &fault)),
        }
    }

    #[inline]
    fn loaded_on(&self, device: &Device) -> Result<&KernelCode> {
        let (kind, Inner { host, cuda, .. }) = (device.body_kind(), &*self.inner);
        match host {
            Some(host) if kind == BodyKind::Host => Ok(host),
            Some(host) if kind == BodyKind::HostFromCuda && cuda.is_none() => Ok(host),
            _ => self.compiled_on(device),
        }
    }

    /// The device body, compiled for the device: for the host on the embedded device.
    fn compiled_on(&self, device: &Device) -> Result<&KernelCode> {
        let Inner { cuda, hip, .. } = &*self.inner;
        let hip = hip.as_ref().filter(|_| device.body_kind() == BodyKind::Hip);
        match hip.or(cuda.as_ref()) {
            Some(code) => code.on(device).map_err(|fault| self.not_loaded(device, fault)),
            None => Err(self.no_body(device)),
        }
    }

    fn body_in_rust(&self) -> Result<(&KernelCode, &dyn KernelBody)> {
        match &self.inner.host {
            Some(code @ KernelCode::Host(body)) => Ok((code, &**body)),
            _ => Err(self.no_body_for(String::from("the host"), "`.host(..)`")),
        }
    }

    /// The body that runs on the host: the one in Rust, or CUDA C compiled for the host.
    fn host_body(&self) -> Result<(&KernelCode, &dyn KernelBody)> {
        match (&self.inner.host, &self.inner.cuda) {
            (None, Some(_)) => match self.compiled_on(&Device::cpu())? {
                code @ KernelCode::Host(body) => Ok((code, &**body)),
                KernelCode::Loaded(_) => Err(self.no_body(&Device::cpu())),
            },
            (None, None) => Err(self.no_body(&Device::cpu())),
            _ => self.body_in_rust(),
        }
    }

    #[inline]
    fn check(&self, grid: &Grid, bound: &[BoundArgument<'_>]) -> Result<()> {
        if let Some(fault) = grid.fault() {
            return Err(self.bad_grid(*grid, fault));
        }
        for requirement in &self.inner.requirements {
            sync::assert_none_held();
            if !(requirement.holds)(*grid, S::describe(bound)) {
                return Err(self.not_met(&requirement.text, bound));
            }
        }
        if self.inner.is_each {
            each::check_shapes(&self.inner.shown, bound)?;
        }
        if bound.iter().all(BoundArgument::needs_no_axis_check) {
            return Ok(());
        }
        super::flat::check(&self.inner.shown, bound, S::layouts)
    }

    fn quoted(&self) -> String {
        quoted(&self.inner.shown)
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
            shown: Arc::clone(&self.shown),
            title: Arc::clone(&self.title),
            requirements: self.requirements.clone(),
            host: self.host.clone(),
            is_each: self.is_each,
            cuda: self.cuda.clone(),
            hip: self.hip.clone(),
        }
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
            .field("has_hip_body", &self.inner.hip.is_some())
            .finish()
    }
}
