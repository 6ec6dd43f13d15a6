//! Device code from the user, as kernels take it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::variable::Variable;
use crate::element::Element;
use resident_backend::{GpuSource as Code, MacroValue};

/// Device code: its text or image, the function to run, and the options to compile it with. A
/// `&str` is CUDA C, which AMD GPUs run as HIP. [`CudaSource`] is another name of this type.
///
/// Kernels of clones of one source are kernels of one module: on each device they share its
/// `__device__`, `__constant__` and `__managed__` variables, which the host reads and writes by
/// [`variable`](Self::variable). Kernels of equal texts with equal options share them too, but
/// instances of templates (`entry("scale<float>")`) are in the module only if a kernel of a clone
/// names them before the module is loaded, by the first launch or `prepare`. If the source has
/// variables, others are an error: make all kernels first.
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
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GpuSource(pub(super) Code);

/// [`GpuSource`] by the name that it had when NVIDIA GPUs were the only ones.
pub type CudaSource = GpuSource;

impl GpuSource {
    /// CUDA C, compiled at first use on a device or by `prepare`: by NVRTC for NVIDIA GPUs, by
    /// hiprtc for AMD's.
    pub fn c(text: impl Into<Arc<str>>) -> Self {
        Self(Code::c(text))
    }

    /// A file of CUDA C. The file is read when the code is compiled.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Self(Code::file(path))
    }

    /// PTX text, for NVIDIA GPUs. The driver compiles it; NVRTC is not needed.
    pub fn ptx(text: impl Into<Arc<str>>) -> Self {
        Self(Code::ptx(text))
    }

    /// A cubin or fatbin: machine code for NVIDIA GPUs, as `nvcc -cubin` writes it. Neither NVRTC
    /// nor the driver's compiler is needed.
    pub fn cubin(image: impl Into<Arc<[u8]>>) -> Self {
        Self(Code::cubin(image))
    }

    /// An AMD code object, or a bundle of several, as `hipcc --genco` writes it: machine code for
    /// AMD GPUs. hiprtc is not needed.
    pub fn hsaco(image: impl Into<Arc<[u8]>>) -> Self {
        Self(Code::hsaco(image))
    }

    /// The function to run: a name, or for a template a name expression such as `scale<float>`. By
    /// default, the function with the kernel's name.
    #[must_use]
    pub fn entry(self, name: impl Into<Arc<str>>) -> Self {
        Self(self.0.entry(name))
    }

    /// Defines a macro, as `-D name=value` does. A number becomes a literal of C with the same
    /// value and type, so that `1 / HALF` is no division of integers; text stays as it is
    /// ([`MacroValue`]).
    ///
    /// ```
    /// # use resident::CudaSource;
    /// let source = CudaSource::c("..")
    ///     .define("HALF", 0.5_f32)     // 0.5f
    ///     .define("TILE", 16)          // 16
    ///     .define("ALL", u64::MAX)     // 18446744073709551615ull
    ///     .define("T", "float");       // float
    /// ```
    #[must_use]
    pub fn define(self, name: impl Into<Arc<str>>, value: impl MacroValue) -> Self {
        Self(self.0.define(name, value))
    }

    /// Passes an option to NVRTC, as in `--use_fast_math`. `--gpu-architecture` (or `-arch`)
    /// overrides the device's architecture. If an option leaves no code to load, as `-dlto` does,
    /// the first launch returns an error. hiprtc gets the option in clang's spelling, such as
    /// `-ffp-contract=off` for `--fmad=false`, and no architecture of NVIDIA's.
    #[must_use]
    pub fn option(self, option: impl Into<Arc<str>>) -> Self {
        Self(self.0.option(option))
    }

    /// Adds a folder to the search path of `#include`. The library looks for headers of CUDA in no
    /// other: for a GPU, a source that includes `cuda_fp16.h`, `cuda_bf16.h` or
    /// `cooperative_groups.h` names the folder `include` of the CUDA toolkit. Without a toolkit,
    /// `pip install nvidia-cuda-runtime nvidia-cuda-cccl` puts them into `nvidia/cu13/include` and
    /// its folder `cccl`, below Python's `site-packages`: name both. The embedded device, and for
    /// the first two hiprtc, have these headers without a folder.
    #[must_use]
    pub fn include(self, folder: impl AsRef<Path>) -> Self {
        Self(self.0.include(folder))
    }

    /// A `__device__`, `__constant__` or `__managed__` variable of the module of this source: a
    /// number, a record or an array of these. Nothing is compiled or looked up until it is used.
    ///
    /// ```
    /// use resident::{CudaSource, Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// let source = CudaSource::c(r#"
    ///     __constant__ float coef[2];
    ///     __device__ unsigned int calls;
    ///     extern "C" __global__ void line(float *x) {
    ///         if (threadIdx.x == 0) ++calls;
    ///         x[threadIdx.x] = coef[0] + coef[1] * x[threadIdx.x];
    ///     }
    /// "#);
    /// // SAFETY: launched with one block, and a thread for each element.
    /// let line = unsafe { Kernel::<(InOut<f32>,)>::new("line").cuda(source.clone()) };
    /// let _here = Device::cpu().enter();
    /// # if line.prepare(&Device::cpu()).is_err() { return Ok(()) }
    /// source.variable::<f32>("coef").write(&[1.0, 2.0])?;
    /// let mut x = SmartArray::from(vec![1.0, 2.0, 3.0]);
    /// line.launch(Grid::new(1, 3), (&mut x,))?;
    /// assert_eq!(x.to_vec()?, [3.0, 5.0, 7.0]);
    /// assert_eq!(source.variable::<u32>("calls").read()?, [1]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn variable<T: Element>(&self, name: impl Into<Arc<str>>) -> Variable<T> {
        Variable::new(self.0.clone(), name.into())
    }
}

impl fmt::Debug for GpuSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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

#[doc(hidden)]
impl From<Code> for GpuSource {
    fn from(code: Code) -> Self {
        Self(code)
    }
}
