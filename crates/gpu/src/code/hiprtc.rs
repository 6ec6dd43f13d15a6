//! Finds hiprtc, AMD's compiler for HIP.

use std::ffi::OsString;
use std::sync::OnceLock;

use super::compiler_library::{CompilerLibrary, Product};
use super::hip_options;
use crate::driver::hip;
use crate::driver::library::FileVariable;

impl Product {
    const HIPRTC: Self = Self {
        name: "hiprtc",
        prefix: "hiprtc",
        variable: FileVariable {
            name: "RESIDENT_HIPRTC",
            library: "hiprtc, which compiles kernels for AMD GPUs",
            expected: "the file of `libhiprtc` or, before ROCm 6, of `libamdhip64`",
        },
        missing,
        oldest: "5.0",
        // That of ROCm 5 ends the process where two threads name expressions.
        is_for_one_thread: true,
        // `__half` and its functions are there without a header. An empty text is refused.
        headers: &[(c"cuda_fp16.h", c"\n"), (c"cuda_bf16.h", hip_options::BF16)],
        architecture_option: hip_options::ARCHITECTURE,
        translated: hip_options::translated,
        refused: hip_options::refused,
        architecture: hip_options::architecture,
        without_code: |_| None,
    };
}

/// The hiprtc of this process: the file that the environment names, else `libhiprtc`, else the
/// runtime itself, of which it was a part before ROCm 6.
pub(super) fn find() -> Result<&'static CompilerLibrary, String> {
    static FOUND: OnceLock<Result<CompilerLibrary, String>> = OnceLock::new();
    FOUND.get_or_init(|| Product::HIPRTC.find(&files())).as_ref().map_err(Clone::clone)
}

fn files() -> Vec<OsString> {
    hip::files("hiprtc").into_iter().map(Into::into).chain(hip::runtime_files()).collect()
}

fn missing(files: &str) -> String {
    format!(
        "kernels for AMD GPUs are compiled by hiprtc, which was not found (looked for {files}); \
         install ROCm's package of it (`hiprtc`, or Debian's `libhiprtc-builtins5` beside \
         `libamdhip64-5`), name its file by `RESIDENT_HIPRTC`, or give the kernel \
         `GpuSource::hsaco`, which needs no compiler"
    )
}
