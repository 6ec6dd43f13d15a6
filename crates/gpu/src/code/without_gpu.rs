//! Compiling without a GPU, for tests of sources.

use std::path::Path;

use resident_backend::Program;
use resident_code::c_declaration::is_identifier;

use super::compile::{Compiled, Compiler, name_in_code};
use super::source::Source;

/// The names of the kernels in the text of a program, as NVRTC compiles it for `sm_90`. The error
/// is that of the search for NVRTC, or the compiler's log.
pub fn kernel_names_by_nvrtc(program: &Program, text: &str) -> Result<Vec<String>, String> {
    let compiler = Compiler::find_nvrtc(13_000)?;
    let source = Source::new(program, text, None, &[])?;
    let compiled = compiler.compile(&source.input("sm_90", compiler.product()))?;
    Ok(compiled.kernel_names())
}

/// The PTX that NVRTC makes of the text of a program for `compute_90`, and the name in it of the
/// function to run. `path` is the file that has the text. The error is that of the search for
/// NVRTC, or the compiler's log.
pub fn ptx_by_nvrtc(
    program: &Program,
    text: &str,
    path: Option<&Path>,
) -> Result<(String, String), String> {
    let compiler = Compiler::find_nvrtc(13_000)?;
    let compile = |expressions: &[String]| {
        let source = Source::new(program, text, path, expressions)?;
        compiler.compile(&source.input("compute_90", compiler.product()))
    };
    let entry = program.source.entry.as_deref().unwrap_or(&program.kernel);
    let found = |compiled: &Compiled| {
        let names = compiled.kernel_names();
        let name = name_in_code(&compiled.lowered, &names, entry).to_owned();
        names.contains(&name).then_some(name)
    };
    let with_name =
        |compiled: &Compiled, name| (String::from_utf8_lossy(&compiled.ptx).into_owned(), name);
    if is_identifier(entry) {
        let compiled = compile(&[])?;
        if let Some(name) = found(&compiled) {
            return Ok(with_name(&compiled, name));
        }
    }
    let compiled = compile(&[entry.to_owned()])?;
    let name = found(&compiled).unwrap_or_else(|| entry.to_owned());
    Ok(with_name(&compiled, name))
}
