//! What a kernel can do for GPUs that need not be there.

use super::compile_for::{Compiled, compile_for};
use super::kernel::Kernel;
use super::signature::Signature;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::call_site;

impl<S: Signature> Kernel<S> {
    /// Compiles the kernel for a GPU that need not be there: by NVRTC for an architecture such as
    /// `"sm_90"` (or `"compute_90"`, which gives PTX), by hiprtc for one such as `"gfx90a"`, with
    /// the options that it gets on a GPU. The compiler is looked for as on a machine with a GPU
    /// (`RESIDENT_NVRTC`, `RESIDENT_HIPRTC`), and needs none, nor a driver. The parameters are
    /// compared with the signature. Compiled code is cached, in the process and on disk.
    ///
    /// With the environment variable `RESIDENT_COMPILE_FOR`, such as `sm_80,gfx90a`, each CUDA C
    /// body that the embedded device loads is compiled for these architectures first, so that what
    /// runs in tests is what GPUs accept.
    ///
    /// ```
    /// use resident::{Error, InOut, Kernel};
    ///
    /// let source = r#"extern "C" __global__ void set(float *x) { x[threadIdx.x] = 1; }"#;
    /// // SAFETY: it does not run.
    /// let set = unsafe { Kernel::<(InOut<f32>,)>::new("set").cuda(source) };
    /// match set.compile_for("sm_90") {
    ///     Ok(compiled) => assert!(compiled.code.starts_with(b"\x7FELF")),
    ///     Err(Error::Compile { log, .. }) => println!("{log}"),     // NVRTC is not installed
    ///     Err(other) => return Err(other),
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`NoKernelBody`](crate::Error::NoKernelBody) if the kernel has no body for GPUs.
    /// - [`Compile`](crate::Error::Compile) with the compiler's log, if the parameters are not
    ///   those of the signature, if there is no compiler, or if the body is compiled already.
    #[track_caller]
    pub fn compile_for(&self, architecture: &str) -> Result<Compiled> {
        let (call, device) = (CalledAt::UNKNOWN, String::from(architecture));
        let (kernel, code) = self.code_for(architecture);
        let Some(code) = code else {
            let method = String::from("`.cuda(..)`");
            return Err(Error::NoKernelBody { call, kernel, device, method }).at(call_site());
        };
        compile_for(code.program(), architecture)
            .map_err(|log| Error::Compile { call, kernel, device, log })
            .at(call_site())
    }
}
