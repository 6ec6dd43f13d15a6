//! CUDA device code from the user. This module exists in every build, so that a program with
//! `.cuda` bodies also compiles without the feature `cuda`.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

/// CUDA device code: its text or image, the function to run, and the options to compile it with. A
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
    pub(crate) includes: Vec<Arc<Path>>,
}

/// The forms of device code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum CudaCode {
    /// CUDA C, compiled at first use.
    C(Arc<str>),
    /// A file of CUDA C, read at first use.
    File(Arc<Path>),
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

    /// A file of CUDA C. The file is read when the code is compiled.
    pub fn file(path: impl AsRef<Path>) -> Self {
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

    /// The function to run: a name, or for a template a name expression such as `scale<float>`. By
    /// default, the function with the kernel's name.
    #[must_use]
    pub fn entry(mut self, name: impl Into<Arc<str>>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// Defines a macro, as `-D name=value` does.
    #[must_use]
    pub fn define(mut self, name: impl Into<Arc<str>>, value: impl Display) -> Self {
        self.defines.push((name.into(), value.to_string().into()));
        self
    }

    /// Passes an option to NVRTC, as in `--use_fast_math`. `--gpu-architecture` (or `-arch`)
    /// overrides the device's architecture. If an option leaves no code to load, as `-dlto` does,
    /// the first launch returns an error.
    #[must_use]
    pub fn option(mut self, option: impl Into<Arc<str>>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Adds a folder to the search path of `#include`.
    #[must_use]
    pub fn include(mut self, folder: impl AsRef<Path>) -> Self {
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
