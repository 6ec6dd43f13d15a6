//! Device code: what a kernel hands to a backend to be compiled and loaded, and what comes back.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::{BackendError, Body};
use crate::grid::Grid;

/// Which bodies of a kernel a device runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyKind {
    /// Closures of this process.
    Host,
    /// CUDA C, PTX or cubins.
    Cuda,
}

/// An element's type as device code sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ElementLayout {
    pub(crate) len_bytes: usize,
    pub(crate) align_bytes: usize,
    /// `f32`, `my_crate::Particle`.
    pub(crate) rust_name: &'static str,
}

/// One parameter of a signature, as it lies in `Arguments::words` and as device code gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParameterLayout {
    /// By value. In words: its bytes, in as many words as they need.
    Scalar(ElementLayout),
    /// A bare pointer. In words: the length in elements, where the pointer is put.
    Flat { element: ElementLayout, is_read_only: bool },
    /// A view by value: pointer, shape, strides. In words: the number of dimensions, where the
    /// pointer is put; shape; strides in elements. `ndim` is unknown for dynamic dimensions.
    Sized { element: ElementLayout, ndim: Option<usize>, is_read_only: bool },
}

impl ElementLayout {
    pub(crate) fn of<T: 'static>() -> Self {
        Self {
            len_bytes: size_of::<T>(),
            align_bytes: align_of::<T>(),
            rust_name: std::any::type_name::<T>(),
        }
    }
}

impl ParameterLayout {
    /// The type of its elements.
    pub(crate) fn element(&self) -> ElementLayout {
        match *self {
            Self::Scalar(element) | Self::Flat { element, .. } | Self::Sized { element, .. } => {
                element
            }
        }
    }

    /// How many words it takes, where `first` is the first of them.
    pub(crate) fn words(&self, first: u64) -> usize {
        match self {
            Self::Scalar(element) => element.len_bytes.div_ceil(8),
            Self::Flat { .. } => 1,
            Self::Sized { .. } => 1 + 2 * first as usize,
        }
    }
}

/// Device code with what the signature expects of it.
#[derive(Debug)]
pub(crate) struct Program {
    /// The kernel's name.
    pub(crate) kernel: Arc<str>,
    pub(crate) source: CudaSource,
    pub(crate) parameters: Box<[ParameterLayout]>,
}

/// What a loaded kernel needs of a device. A host body needs nothing: all zero, and no limit to its
/// blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// Registers of one thread.
    pub registers: u32,
    /// Static shared memory of one block, in bytes.
    pub shared_bytes: u32,
    /// Memory of one thread that found no place in registers, in bytes.
    pub local_bytes: u32,
    /// The most threads that a block may have.
    pub block_threads_max: u32,
}

/// Why device code could not be loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LoadError {
    /// The code itself: the compiler's log, a missing entry point, parameters that do not fit the
    /// signature, a file that cannot be read.
    Program(String),
    /// A call that was refused.
    Refused(BackendError),
}

/// A kernel compiled and loaded on one device, ready to be launched there.
pub(crate) trait Loaded: Debug + Send + Sync + 'static {
    /// The kernel's name.
    fn name(&self) -> &Arc<str>;
    fn attributes(&self) -> KernelAttributes;
    /// The grid that the device chooses in place of an automatic one, none where it takes the one
    /// given; or what of it the device cannot do.
    fn fit(&self, grid: &Grid) -> Result<Option<Grid>, String>;
    fn as_any(&self) -> &dyn Any;
}

/// What a launch runs.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Host(Arc<dyn Body>),
    Loaded(Arc<dyn Loaded>),
}

impl Code {
    /// The kernel's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        match self {
            Self::Host(body) => body.name(),
            Self::Loaded(loaded) => loaded.name(),
        }
    }

    /// As [`Loaded::fit`]. A host body runs all of any grid at once.
    #[inline]
    pub(crate) fn fit(&self, grid: &Grid) -> Result<Option<Grid>, String> {
        match self {
            Self::Host(_) => Ok(None),
            Self::Loaded(loaded) => loaded.fit(grid),
        }
    }

    /// What it needs of a device. A host body needs nothing, and its blocks may have any number of
    /// threads.
    pub(crate) fn attributes(&self) -> KernelAttributes {
        match self {
            Self::Host(_) => KernelAttributes {
                registers: 0,
                shared_bytes: 0,
                local_bytes: 0,
                block_threads_max: u32::MAX,
            },
            Self::Loaded(loaded) => loaded.attributes(),
        }
    }
}

/// CUDA device code: where it comes from, which of its functions to run, and how to compile it. A
/// `&str` is CUDA C.
///
/// ```
/// use resident::CudaSource;
///
/// let source = CudaSource::c("extern \"C\" __global__ void scale(float k, float *x, long n) { }")
///     .entry("scale")
///     .define("BLOCK", "256")
///     .option("--use_fast_math");
/// assert!(format!("{source:?}").contains("scale"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CudaSource {
    pub(crate) code: CudaCode,
    pub(crate) entry: Option<Arc<str>>,
    pub(crate) defines: Vec<(Arc<str>, Arc<str>)>,
    pub(crate) options: Vec<Arc<str>>,
    pub(crate) includes: Vec<Arc<std::path::Path>>,
}

/// The forms in which device code comes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum CudaCode {
    /// CUDA C, compiled at first use.
    C(Arc<str>),
    /// A file of CUDA C, read at first use.
    File(Arc<std::path::Path>),
    /// PTX, which the driver compiles.
    Ptx(Arc<str>),
    /// Machine code for one architecture.
    Cubin(Arc<[u8]>),
}

impl CudaSource {
    /// CUDA C, compiled by NVRTC at first use on a device or by `prepare`.
    pub fn c(text: impl Into<Arc<str>>) -> Self {
        Self::of(CudaCode::C(text.into()))
    }

    /// A file of CUDA C. It is read when it is compiled.
    pub fn file(path: impl AsRef<std::path::Path>) -> Self {
        Self::of(CudaCode::File(path.as_ref().into()))
    }

    /// PTX text. The driver compiles it; NVRTC is not needed.
    pub fn ptx(text: impl Into<Arc<str>>) -> Self {
        Self::of(CudaCode::Ptx(text.into()))
    }

    /// A cubin or fatbin: machine code, as `nvcc -cubin` writes it. Neither NVRTC nor the driver's
    /// compiler is needed.
    pub fn cubin(image: impl Into<Arc<[u8]>>) -> Self {
        Self::of(CudaCode::Cubin(image.into()))
    }

    fn of(code: CudaCode) -> Self {
        Self { code, entry: None, defines: Vec::new(), options: Vec::new(), includes: Vec::new() }
    }

    /// The function to run, where it is not called after the kernel: a name, or for templates a
    /// name expression such as `scale<float>`.
    #[must_use]
    pub fn entry(mut self, name: impl Into<Arc<str>>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// Defines a macro, as `-D name=value` does.
    #[must_use]
    pub fn define(mut self, name: impl Into<Arc<str>>, value: impl std::fmt::Display) -> Self {
        self.defines.push((name.into(), value.to_string().into()));
        self
    }

    /// Passes an option to NVRTC, as in `--use_fast_math`. `--gpu-architecture` (or `-arch`) takes
    /// the place of the device's own architecture; options that leave nothing to load, as `-dlto`
    /// does, are an error of the first launch.
    #[must_use]
    pub fn option(mut self, option: impl Into<Arc<str>>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Adds a folder in which `#include` looks.
    #[must_use]
    pub fn include(mut self, folder: impl AsRef<std::path::Path>) -> Self {
        self.includes.push(folder.as_ref().into());
        self
    }
}

impl From<&str> for CudaSource {
    fn from(text: &str) -> Self {
        Self::c(text)
    }
}

impl From<String> for CudaSource {
    fn from(text: String) -> Self {
        Self::c(text)
    }
}
