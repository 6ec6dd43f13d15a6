//! CUDA C on the host: a C++ compiler turns a source into a shared library, whose kernels the
//! embedded device runs.
//!
//! | file | purpose |
//! |---|---|
//! | `compiler`, `processor`, `advice` | the C++ compiler: which one, its options, its log |
//! | `limited` | how long it may take, and how much memory |
//! | `checked_code`, `clang_code` | how it compiles code that announces each access |
//! | `precompiled`, `kept_code` | the headers, precompiled; what was compiled before |
//! | `translation` | the source with the headers around it; dynamic shared memory |
//! | `declared_kernels` | the kernels that a source declares, for errors |
//! | `declarations.hpp`, `functions_of_c.hpp` | what NVRTC declares of C and C++; no header does |
//! | `names` | that a source has the names that NVRTC declares, and no others |
//! | `cuda_on_host.hpp`, `integers.hpp`, `packed_integers.hpp` | what CUDA C has beyond C++17 |
//! | `mathematics.hpp` | its mathematics |
//! | `special_functions.hpp`, `printing.hpp` | functions that no C library has; `printf` |
//! | `entry.hpp` | how blocks run |
//! | `kernels.hpp`, `kernel_list`, `launch_bounds` | the kernels of a library, and their bounds |
//! | `static_shared` | the static shared memory that a kernel uses |
//! | `exports.hpp` | what is called |
//! | `variables`, `library_variable`, `symbols` | the variables of a library; their names |
//! | `refusals`, `outline.hpp` | what is not there, or what NVRTC refuses |
//! | `headers`, `cuda_fp16.h`, `cuda_bf16.h`, `cooperative_groups.h` | headers of CUDA's |
//! | `library`, `temporary_files` | a loaded library; the files of compiler and loader |
//! | `runtime`, `waiting` | the functions that the compiled code calls; how a thread waits |
//! | `heap` | what kernels allocate by `malloc` |
//! | `output` | where the text of `printf` goes, and what the checker finds |
//! | `block`, `fiber` | runs blocks: threads one after the other, with stacks once they wait |
//! | `work`, `thread_memory` | which blocks have not begun; what blocks keep that take turns |
//! | `meetings`, `turns` | which threads can go on; when one lets the others run |
//! | `waiting_loops` | the loops of a source that may wait for memory |
//! | `gpu_values`, `contraction` | a GPU's values where C leaves them open, or a compiler errs |
//! | `launch_timeout`, `faults` | ends launches that take too long, or too large a stack |
//! | `sanitizer` | checks each access of a launch |
//! | `body`, `parallel` | a kernel's body: packs the parameters; runs blocks on several cores |

mod advice;
mod block;
mod body;
mod checked_code;
mod clang_code;
mod compilation;
pub mod compiler;
mod contraction;
mod declared_kernels;
mod expanded;
mod faults;
mod fiber;
mod gpu_values;
mod headers;
mod heap;
mod kept_code;
mod kernel_list;
mod launch_bounds;
mod launch_timeout;
pub mod library;
mod library_variable;
mod limited;
mod meetings;
#[cfg(test)]
mod names;
mod output;
pub mod parallel;
mod precompiled;
mod processor;
mod refusals;
pub mod runtime;
mod sanitizer;
mod static_shared;
mod symbols;
pub mod temporary_files;
mod thread_memory;
pub mod translation;
mod turns;
pub mod variables;
mod waiting;
mod waiting_loops;
mod work;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use self::body::CompiledBody;
use self::compiler::Compiler;
pub use self::launch_timeout::limit as launch_timeout;
use self::library::Library;
use self::library_variable::VariableOfLibrary;
pub use self::output::{OutputListener, set_listener};
use self::translation::{Checks, Translation};
use resident_backend::{GpuCode, GpuSource, KernelBody, LoadError, ModuleVariable, Program};
use resident_code::late_instance::came_late;
use resident_code::once::OncePerKey;
use resident_code::variable_names::name_in_source;
use resident_code::{parameter_types, read_source, signature, without_byte_order_mark};

pub use self::sanitizer::Findings;
pub use self::sanitizer::left_out::LeftOut;
pub use self::sanitizer::totals::{CheckedTotals, KernelTotals, checked_totals};
pub use self::sanitizer::{Checked, Finding, FindingKind, OtherThread, SourceLine};
pub use self::waiting::can_run_blocks;

/// The libraries of one device, whose kernels have `__device__` variables of their own.
#[derive(Debug)]
pub struct Libraries {
    loaded: OncePerKey<Vec<u8>, Library>,
    /// If the device checks kernels, its findings.
    findings: Option<Arc<Findings>>,
}

impl Libraries {
    /// The libraries of a device that checks its kernels if it has somewhere to put the findings.
    pub fn new(findings: Option<Arc<Findings>>) -> Self {
        if findings.is_some() {
            sanitizer::totals::begin();
        }
        Self { loaded: OncePerKey::new(), findings }
    }
}

/// Compiles a program for the host if necessary, loads it, and compares the parameters with the
/// signature.
pub fn load(program: &Program, libraries: &Libraries) -> Result<Arc<dyn KernelBody>, LoadError> {
    let (text, path) = text_of(&program.source)?;
    let module = Module { program, text: &text, path, libraries };
    let entry = program.source.entry.as_deref().unwrap_or(&program.kernel);
    let library = module.library_with(entry)?;
    let kernel = library.kernel(entry).ok_or_else(|| not_listed(entry))?;
    static_shared::check(entry, kernel.shared_bytes)?;
    let (bytes, types) = (Some(&*kernel.parameter_bytes), &*kernel.types);
    let parameters = signature::check(entry, &program.parameters, bytes, types)?;
    parameter_types::check(entry, &program.parameters, types)?;
    let (kernel, findings) = (kernel.clone(), libraries.findings.clone());
    let body = Arc::new(CompiledBody::new(&program.kernel, library, kernel, parameters, findings));
    Ok(match WRAPPER.get() {
        Some(wrap) => wrap(program, body),
        None => body,
    })
}

/// From a program and the body that was made of it to the body that is launched.
pub type Wrapper = fn(&Program, Arc<dyn KernelBody>) -> Arc<dyn KernelBody>;

static WRAPPER: OnceLock<Wrapper> = OnceLock::new();

/// Wraps the bodies that this process loads from now on: tests record launches so. The first
/// wrapper stays.
pub fn set_wrapper(wrapper: Wrapper) {
    WRAPPER.get_or_init(|| wrapper);
}

/// A variable of the library that kernels of a program's source share.
pub fn variable(
    program: &Program,
    name: &str,
    libraries: &Libraries,
) -> Result<Arc<dyn ModuleVariable>, LoadError> {
    let (text, path) = text_of(&program.source)?;
    let library = Module { program, text: &text, path, libraries }.shared()?;
    Ok(Arc::new(VariableOfLibrary::find(library, name)?))
}

#[cold]
fn not_listed(entry: &str) -> LoadError {
    LoadError::Program(format!("the compiled source lists no kernel `{entry}`; check its name"))
}

/// A source for the libraries of a device.
struct Module<'a> {
    program: &'a Program,
    text: &'a str,
    path: Option<&'a Path>,
    libraries: &'a Libraries,
}

impl Module<'_> {
    /// The library that all kernels of the source share.
    fn shared(&self) -> Result<Arc<Library>, String> {
        let translation = self.translation(&self.program.source.entries.all())?;
        let compiler = Compiler::find_and_keep()?;
        self.library(compiler, &translation, [compiler.key(), translation.module_key()].concat())
    }

    /// The library that all kernels of the source share, if it has this kernel. A kernel that it
    /// lacks, since nobody asked for it before it was compiled, gets one of its own.
    fn library_with(&self, entry: &str) -> Result<Arc<Library>, LoadError> {
        let mut entries = self.program.source.entries.all();
        if !entries.iter().any(|known| **known == *entry) {
            entries.push(entry.into());
        }
        let compiler = Compiler::find_and_keep()?;
        let translation = self.translation(&entries)?;
        if let Some(reason) = translation.left_out(entry) {
            return Err(LoadError::Program(reason.to_owned()));
        }
        if !translation.has_headers
            && let Some(fault) = declared_kernels::fault(self.text, entry, translation.options())
        {
            return Err(fault.into());
        }
        let key = [compiler.key(), translation.module_key()].concat();
        let library = self.library(compiler, &translation, key.clone())?;
        if library.kernel(entry).is_some() {
            return Ok(library);
        }
        if !library.variables.is_empty() {
            let variables: Vec<_> = library.variables.symbols().map(name_in_source).collect();
            return Err(came_late(entry, self.text, self.path, &variables).into());
        }
        let own = self.translation(&[entry.into()])?;
        Ok(self.library(compiler, &own, [&key, entry.as_bytes()].concat())?)
    }

    fn translation(&self, entries: &[Arc<str>]) -> Result<Translation, String> {
        let Self { program, text, path, libraries } = self;
        let checks = if libraries.findings.is_some() { Checks::On } else { Checks::Off };
        Translation::new(program, text, *path, checks, Some(entries))
    }

    fn library(
        &self,
        compiler: &'static Compiler,
        translation: &Translation,
        key: Vec<u8>,
    ) -> Result<Arc<Library>, String> {
        let code_key = [compiler.key(), translation.key()].concat();
        self.libraries.loaded.get_or_make(key, || {
            let stored = image(compiler, translation, &code_key)?;
            // Code from the disk cache may be that of a machine with other libraries.
            Library::load(&stored, translation)
                .or_else(|_| Library::load(&compiler.compile(translation)?, translation))
        })
    }
}

/// The code of a translation. What depends on other files is compiled for each device.
fn image(
    compiler: &Compiler,
    translation: &Translation,
    key: &[u8],
) -> Result<Arc<Vec<u8>>, String> {
    if !translation.is_self_contained {
        return compiler.compile(translation).map(Arc::new);
    }
    kept_code::get_or_compile(key.to_vec(), || compiler.compile(translation))
}

/// The text of a source, and the file that it is in.
fn text_of(source: &GpuSource) -> Result<(String, Option<&Path>), String> {
    match &source.code {
        GpuCode::C(text) => Ok((without_byte_order_mark(text).to_owned(), None)),
        GpuCode::File(path) => Ok((read_source(path)?, Some(&**path))),
        GpuCode::Ptx(_) | GpuCode::Cubin(_) | GpuCode::Hsaco(_) => Err(no_text()),
    }
}

fn no_text() -> String {
    "the embedded device compiles CUDA C, and this is PTX or machine code of a GPU; give the \
     source, or a body by `.host(..)`"
        .to_owned()
}
