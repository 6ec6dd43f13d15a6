//! Device code from the user. This module exists in every build, so that a program with `.cuda`
//! bodies also compiles without the feature `cuda`.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::macro_value::MacroValue;

/// Device code: its text or image, the function to run, and the options to compile it with. A
/// `&str` is CUDA C, which AMD GPUs run as HIP. [`CudaSource`] is another name of this type.
///
/// ```
/// use resident::GpuSource;
///
/// let code = r#"extern "C" __global__ void scale(float k, float *x, long n) { }"#;
/// let source = GpuSource::c(code)
///     .entry("scale")
///     .define("BLOCK", "256")
///     .option("--use_fast_math");
/// assert!(format!("{source:?}").contains("scale"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GpuSource {
    #[doc(hidden)]
    pub code: GpuCode,
    #[doc(hidden)]
    pub entry: Option<Arc<str>>,
    #[doc(hidden)]
    pub defines: Vec<(Arc<str>, Arc<str>)>,
    #[doc(hidden)]
    pub options: Vec<Arc<str>>,
    #[doc(hidden)]
    pub includes: Vec<Arc<Path>>,
    /// Which functions kernels run, of this source and its clones.
    #[doc(hidden)]
    pub entries: Entries,
}

/// The functions that kernels of a source and of its clones run: one module has all of them. It is
/// no part of what a source says, so all are equal.
#[derive(Clone, Default)]
pub struct Entries(Arc<Mutex<BTreeSet<Arc<str>>>>);

impl Entries {
    pub fn add(&self, entry: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.into());
    }

    /// Those until now, in order.
    pub fn all(&self) -> Vec<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl PartialEq for Entries {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Entries {}

impl Hash for Entries {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.all()).finish()
    }
}

/// [`GpuSource`] by the name that it had when NVIDIA GPUs were the only ones.
pub type CudaSource = GpuSource;

/// The forms of device code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GpuCode {
    /// CUDA C, compiled at first use.
    C(Arc<str>),
    /// A file of CUDA C, read at first use.
    File(Arc<Path>),
    /// PTX, which the driver compiles.
    Ptx(Arc<str>),
    /// Machine code for one architecture of NVIDIA's.
    Cubin(Arc<[u8]>),
    /// Machine code for one architecture of AMD's.
    Hsaco(Arc<[u8]>),
}

impl GpuSource {
    /// CUDA C, compiled at first use on a device or by `prepare`: by NVRTC for NVIDIA GPUs, by
    /// hiprtc for AMD's.
    pub fn c(text: impl Into<Arc<str>>) -> Self {
        Self::of(GpuCode::C(text.into()))
    }

    /// A file of CUDA C. The file is read when the code is compiled.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Self::of(GpuCode::File(path.as_ref().into()))
    }

    /// PTX text, for NVIDIA GPUs. The driver compiles it; NVRTC is not needed.
    pub fn ptx(text: impl Into<Arc<str>>) -> Self {
        Self::of(GpuCode::Ptx(text.into()))
    }

    /// A cubin or fatbin: machine code for NVIDIA GPUs, as `nvcc -cubin` writes it. Neither NVRTC
    /// nor the driver's compiler is needed.
    pub fn cubin(image: impl Into<Arc<[u8]>>) -> Self {
        Self::of(GpuCode::Cubin(image.into()))
    }

    /// An AMD code object, or a bundle of several, as `hipcc --genco` writes it: machine code for
    /// AMD GPUs. hiprtc is not needed.
    pub fn hsaco(image: impl Into<Arc<[u8]>>) -> Self {
        Self::of(GpuCode::Hsaco(image.into()))
    }

    fn of(code: GpuCode) -> Self {
        Self {
            code,
            entry: None,
            defines: Vec::new(),
            options: Vec::new(),
            includes: Vec::new(),
            entries: Entries::default(),
        }
    }

    /// The function to run: a name, or for a template a name expression such as `scale<float>`. By
    /// default, the function with the kernel's name.
    #[must_use]
    pub fn entry(mut self, name: impl Into<Arc<str>>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// Defines a macro, as `-D name=value` does: a number as a literal of its type, text as it is
    /// ([`MacroValue`]).
    #[must_use]
    pub fn define(mut self, name: impl Into<Arc<str>>, value: impl MacroValue) -> Self {
        self.defines.push((name.into(), value.in_c().into()));
        self.entries = Entries::default();
        self
    }

    /// Passes an option to NVRTC, as in `--use_fast_math`. `--gpu-architecture` (or `-arch`)
    /// overrides the device's architecture. If an option leaves no code to load, as `-dlto` does,
    /// the first launch returns an error. hiprtc gets the option in clang's spelling, such as
    /// `-ffp-contract=off` for `--fmad=false`, and no architecture of NVIDIA's.
    #[must_use]
    pub fn option(mut self, option: impl Into<Arc<str>>) -> Self {
        self.options.push(option.into());
        self.entries = Entries::default();
        self
    }

    /// Adds a folder to the search path of `#include`.
    #[must_use]
    pub fn include(mut self, folder: impl AsRef<Path>) -> Self {
        self.includes.push(folder.as_ref().into());
        self.entries = Entries::default();
        self
    }
}

impl From<&str> for GpuSource {
    fn from(text: &str) -> Self {
        Self::c(text)
    }
}

impl From<String> for GpuSource {
    fn from(text: String) -> Self {
        Self::c(text)
    }
}
