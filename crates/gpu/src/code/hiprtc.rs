//! Finds hiprtc, AMD's compiler for HIP.

use std::sync::OnceLock;

use super::compiler_library::{CompilerLibrary, Product};
use crate::driver::hip;
use crate::driver::library::open;

/// The environment variable that names the file of hiprtc. If it is set, no other file is tried.
const VARIABLE: &str = "RESIDENT_HIPRTC";

/// The hiprtc of this process: the file that the environment names, else `libhiprtc`, else the
/// runtime itself, of which it was a part before ROCm 6.
pub(super) fn find() -> Result<&'static CompilerLibrary, String> {
    static FOUND: OnceLock<Result<CompilerLibrary, String>> = OnceLock::new();
    FOUND.get_or_init(find_now).as_ref().map_err(Clone::clone)
}

fn find_now() -> Result<CompilerLibrary, String> {
    let usable = |library| CompilerLibrary::of(library, Product::HIPRTC);
    if let Some(file) = std::env::var_os(VARIABLE).filter(|file| !file.is_empty()) {
        return open(&file).map_err(|fault| fault.to_string()).and_then(usable).map_err(|fault| {
            format!(
                "{VARIABLE} names {} as hiprtc, which compiles kernels for AMD GPUs, and that \
                 cannot be used: {fault}; let it name the file of `libhiprtc` or, before ROCm 6, \
                 of `libamdhip64`, or unset it",
                file.display()
            )
        });
    }
    let files: Vec<_> =
        hip::files("hiprtc").into_iter().map(Into::into).chain(hip::runtime_files()).collect();
    let mut unusable = String::new();
    for file in &files {
        match open(file).ok().map(usable) {
            Some(Ok(found)) => return Ok(found),
            Some(Err(fault)) => {
                unusable += &format!("; {} is there, but {fault}", file.display());
            }
            None => {}
        }
    }
    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    Err(format!(
        "kernels for AMD GPUs are compiled by hiprtc, which was not found (looked for \
         {}{unusable}); install ROCm's package of it (`hiprtc`, or Debian's `libhiprtc-builtins5` \
         beside `libamdhip64-5`), name its file by `{VARIABLE}`, or give the kernel \
         `GpuSource::hsaco`, which needs no compiler",
        names.join(", ")
    ))
}
