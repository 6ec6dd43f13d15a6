//! Compiles kernels for GPUs that need not be there.

use std::sync::LazyLock;

use resident_backend::{GpuCode, KernelAttributes, LoadError, Program, environment};

/// The environment variable with the architectures for which CUDA C that the embedded device loads
/// is compiled first.
const VARIABLE: &str = "RESIDENT_COMPILE_FOR";

/// A kernel as a compiler for GPUs made it: what
/// [`Kernel::compile_for`](crate::Kernel::compile_for) returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// Machine code, a cubin or an AMD code object; PTX for an architecture such as `compute_90`.
    /// It has all kernels of the source.
    pub code: Vec<u8>,
    /// What the kernel needs, as the code says it. PTX does not tell.
    pub attributes: KernelAttributes,
    /// What the compiler said: warnings, or nothing.
    pub log: String,
}

/// Compiles a program for an architecture. The error is the compiler's log, or what else is wrong.
pub(super) fn compile_for(program: &Program, architecture: &str) -> Result<Compiled, String> {
    #[cfg(any(feature = "cuda", feature = "hip"))]
    {
        let compiled = resident_gpu::compile_for(program, architecture)?;
        let resident_gpu::CompiledProgram { code, attributes, log } = compiled;
        Ok(Compiled { code, attributes, log })
    }
    #[cfg(not(any(feature = "cuda", feature = "hip")))]
    {
        Err(format!(
            "kernel \"{}\" is not compiled for {architecture}: this build has neither the feature \
             `cuda` nor `hip`",
            program.kernel
        ))
    }
}

/// Compiles CUDA C for the architectures that the environment names, if it names any.
pub(super) fn check_if_asked(program: &Program) -> Result<(), LoadError> {
    static ASKED: LazyLock<Result<Vec<String>, String>> = LazyLock::new(|| {
        Ok(environment::read(VARIABLE, EXPECTED, architectures)?.unwrap_or_default())
    });
    let is_text = matches!(program.source.code, GpuCode::C(_) | GpuCode::File(_));
    let asked = ASKED.as_ref().map_err(Clone::clone)?;
    for architecture in asked.iter().filter(|_| is_text) {
        compile_for(program, architecture)
            .map_err(|log| format!("for {architecture}, which {VARIABLE} names: {log}"))?;
    }
    Ok(())
}

const EXPECTED: &str = "architectures with commas between them, such as sm_80,gfx90a";

fn architectures(text: &str) -> Option<Vec<String>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let is_known =
        |name: &&str| ["sm_", "compute_", "gfx"].iter().any(|prefix| name.starts_with(prefix));
    names.map(|name| Some(name).filter(is_known).map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::architectures;

    #[test]
    fn architectures_are_named_in_a_list() {
        let two = vec!["sm_80".to_owned(), "gfx90a".to_owned()];
        assert_eq!(architectures("sm_80, gfx90a,"), Some(two));
        assert_eq!(architectures("sm_80,volta"), None);
    }
}
