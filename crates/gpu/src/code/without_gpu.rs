//! Compiling without a GPU, for tests of sources.

use resident_backend::Program;

use super::compile::Compiler;
use super::source::Source;

/// The names of the kernels in the text of a program, as NVRTC compiles it for `sm_90`. The error
/// is that of the search for NVRTC, or the compiler's log.
pub fn kernel_names_by_nvrtc(program: &Program, text: &str) -> Result<Vec<String>, String> {
    let compiler = Compiler::find_nvrtc(13_000)?;
    let source = Source::new(program, text, None, &[])?;
    let compiled = compiler.compile(&source.input("sm_90", compiler.product()))?;
    Ok(compiled.kernel_names())
}
