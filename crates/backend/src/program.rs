//! Device code: the program that a kernel passes to a backend, and the loaded result.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use super::{BackendError, GpuSource, KernelAttributes};
use crate::call_site::CallSite;
use crate::grid::{Grid, GridLimits};
use resident_core::Access;

/// The bodies of kernels that a device runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyKind {
    /// Closures in this process; CUDA C, compiled for the host, if a kernel has no closure.
    Host,
    /// As `Host`, but CUDA C first.
    HostFromCuda,
    /// CUDA C, PTX or a cubin.
    Cuda,
    /// CUDA C or an AMD code object.
    Hip,
}

impl BodyKind {
    /// Whether the processors of this machine run them.
    #[must_use]
    #[inline]
    pub fn is_on_host(self) -> bool {
        matches!(self, Self::Host | Self::HostFromCuda)
    }
}

/// Device code and the parameters that the signature expects it to have.
#[derive(Debug)]
pub struct Program {
    /// The kernel's name.
    pub kernel: Arc<str>,
    pub source: GpuSource,
    pub parameters: Box<[ParameterLayout]>,
}

/// One parameter of a kernel: the words that it takes in `PackedArguments::words`, and its type in
/// device code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterLayout {
    /// A scalar, passed by value. Words: its bytes, in as many words as necessary.
    Scalar(ElementLayout),
    /// A flat array (a slice in host bodies), passed as a bare pointer. Words: the length in
    /// elements; a launch replaces it by the address.
    Flat { element: ElementLayout, access: Access },
    /// A sized array (an ndarray view in host bodies), passed by value: pointer, shape, strides.
    /// Words: the number of dimensions, which a launch replaces by the address; the shape; the
    /// strides in elements. `ndim` is `None` for `IxDyn`.
    Sized { element: ElementLayout, ndim: Option<usize>, access: Access },
    /// The length in elements of the flat array before it, passed as a `u64`. Words: the length.
    Length,
}

impl ParameterLayout {
    /// The type of the parameter's elements.
    pub fn element(&self) -> ElementLayout {
        match *self {
            Self::Scalar(element) | Self::Flat { element, .. } | Self::Sized { element, .. } => {
                element
            }
            Self::Length => ElementLayout::of::<u64>(),
        }
    }

    /// How the kernel accesses the array, if the parameter is one.
    pub fn access(&self) -> Option<Access> {
        match *self {
            Self::Scalar(_) | Self::Length => None,
            Self::Flat { access, .. } | Self::Sized { access, .. } => Some(access),
        }
    }

    /// The number of words that the parameter takes. `first` is its first word.
    pub fn words(&self, first: u64) -> usize {
        match self {
            Self::Scalar(element) => element.len_bytes.div_ceil(8),
            Self::Flat { .. } | Self::Length => 1,
            Self::Sized { .. } => 1 + 2 * first as usize,
        }
    }
}

/// The type of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementLayout {
    pub len_bytes: usize,
    pub align_bytes: usize,
    /// `f32`, `my_crate::Particle`.
    pub rust_name: &'static str,
}

impl ElementLayout {
    pub fn of<T: 'static>() -> Self {
        Self {
            len_bytes: size_of::<T>(),
            align_bytes: align_of::<T>(),
            rust_name: std::any::type_name::<T>(),
        }
    }
}

/// The host body of a kernel, with its types erased.
///
/// # Safety
///
/// An implementor interprets `words` as its own signature packed them, and accesses only bytes in
/// `PackedArguments::footprint` of its arrays.
pub unsafe trait KernelBody: Send + Sync + Debug {
    fn name(&self) -> &Arc<str>;
    /// The body of one launch, whose errors name the arrays and the launch. `None` if errors name
    /// neither.
    fn for_launch(
        &self,
        array_names: &dyn Fn() -> Vec<String>,
        site: CallSite,
    ) -> Option<Arc<dyn KernelBody>>;
    /// Whether the body itself keeps account of the elements that it leaves unwritten.
    fn tracks_contents(&self) -> bool;
    /// Whether the body is safe code of the program, which may leave elements of an output as they
    /// are. Then the device shows it no bytes of other arrays there.
    fn may_leave_out(&self) -> bool;
    /// What the body needs, and the largest block that it allows.
    fn attributes(&self) -> KernelAttributes;
    /// # Safety
    ///
    /// * `words` were packed by the same signature. `pointers` has one pointer for each array
    ///   argument, in order, to the element with index 0, 0, ...
    /// * The footprint of each array is initialised memory that outlives the call. During the call
    ///   no other thread writes the bytes that the body reads, or accesses the bytes that it
    ///   writes.
    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]);
}

/// A body in Rust: it needs nothing and allows all blocks.
struct RustBody<F> {
    name: Arc<str>,
    may_leave_out: bool,
    run: F,
}

/// A closure as a body. It gets what [`KernelBody::run`] gets, and may rely on the same promises.
///
/// # Safety
///
/// The closure keeps to the contract of [`KernelBody`].
pub unsafe fn rust_body(
    name: Arc<str>,
    run: impl Fn(Grid, &[u64], &[*mut u8]) + Send + Sync + 'static,
) -> Arc<dyn KernelBody> {
    Arc::new(RustBody { name, may_leave_out: false, run })
}

/// As [`rust_body`], for a closure that may leave elements of its outputs as they are.
///
/// # Safety
///
/// As [`rust_body`].
pub unsafe fn rust_body_that_may_leave_out(
    name: Arc<str>,
    run: impl Fn(Grid, &[u64], &[*mut u8]) + Send + Sync + 'static,
) -> Arc<dyn KernelBody> {
    Arc::new(RustBody { name, may_leave_out: true, run })
}

// SAFETY: the closure keeps to the contract (`rust_body`, `rust_body_that_may_leave_out`).
unsafe impl<F: Fn(Grid, &[u64], &[*mut u8]) + Send + Sync> KernelBody for RustBody<F> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn for_launch(
        &self,
        _array_names: &dyn Fn() -> Vec<String>,
        _site: CallSite,
    ) -> Option<Arc<dyn KernelBody>> {
        None
    }

    fn tracks_contents(&self) -> bool {
        false
    }

    fn may_leave_out(&self) -> bool {
        self.may_leave_out
    }

    fn attributes(&self) -> KernelAttributes {
        KernelAttributes::of_rust()
    }

    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) {
        (self.run)(grid, words, pointers);
    }
}

impl<F> Debug for RustBody<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RustBody({})", self.name)
    }
}

/// The reason why device code could not be loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// The error is in the code. The text is the compiler's log, or names a missing entry point,
    /// parameters that differ from the signature, or an unreadable file.
    Program(String),
    /// The driver refused a call.
    Refused(BackendError),
}

impl From<String> for LoadError {
    fn from(reason: String) -> Self {
        Self::Program(reason)
    }
}

impl From<BackendError> for LoadError {
    fn from(refusal: BackendError) -> Self {
        Self::Refused(refusal)
    }
}

/// A kernel that is compiled and loaded on one device.
pub trait LoadedKernel: Any + Debug + Send + Sync {
    /// The kernel's name.
    fn name(&self) -> &Arc<str>;
    fn attributes(&self) -> KernelAttributes;
    /// Whether the grid can be launched as it is. If not, `resolve_grid` chooses another grid, or
    /// says why there is none; it may also allow the grid.
    fn accepts_grid(&self, grid: &Grid) -> bool;
    /// The grid to launch instead of the given one, if that is automatic; `None` to launch the
    /// given grid. The error names the device limit that the grid exceeds.
    fn resolve_grid(&self, grid: &Grid) -> Result<Option<Grid>, String>;
}

impl dyn LoadedKernel {
    /// This kernel as a `T`, if that is its type.
    pub fn downcast_ref<T: LoadedKernel>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// A `__device__`, `__constant__` or `__managed__` variable of a source's module on one device.
pub trait ModuleVariable: Debug + Send + Sync {
    fn len_bytes(&self) -> usize;
    /// Writes the whole variable. All work of the device has completed that was queued before.
    fn write(&self, bytes: &[u8]) -> Result<(), BackendError>;
    /// Reads the whole variable, as `write` writes it.
    fn read(&self, bytes: &mut [u8]) -> Result<(), BackendError>;
}

/// The code that a launch runs.
#[derive(Clone, Debug)]
pub enum KernelCode {
    Host(Arc<dyn KernelBody>),
    Loaded(Arc<dyn LoadedKernel>),
}

impl KernelCode {
    /// The kernel's name.
    #[inline]
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Host(body) => body.name(),
            Self::Loaded(loaded) => loaded.name(),
        }
    }

    /// As [`LoadedKernel::accepts_grid`]. A host body accepts what `limits` allow, those of the
    /// device that runs it.
    #[inline]
    pub fn accepts_grid(&self, grid: &Grid, limits: &GridLimits) -> bool {
        match self {
            Self::Host(body) => limits.allows(grid) && body.attributes().allow(grid, limits),
            Self::Loaded(loaded) => loaded.accepts_grid(grid),
        }
    }

    /// As [`LoadedKernel::resolve_grid`], with limits as for `accepts_grid`.
    #[inline]
    pub fn resolve_grid(&self, grid: &Grid, limits: &GridLimits) -> Result<Option<Grid>, String> {
        match self {
            Self::Host(_) if self.accepts_grid(grid, limits) => Ok(None),
            Self::Host(body) => body.attributes().fit(grid, limits).map(Some),
            Self::Loaded(loaded) => loaded.resolve_grid(grid),
        }
    }

    pub fn attributes(&self, limits: &GridLimits) -> KernelAttributes {
        match self {
            Self::Host(body) => body.attributes().within(limits),
            Self::Loaded(loaded) => loaded.attributes(),
        }
    }
}
