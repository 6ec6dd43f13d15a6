//! CUDA C on the host: a C++ compiler turns a source into a shared library, whose kernels the
//! embedded device runs.
//!
//! | file | purpose |
//! |---|---|
//! | `compiler`, `processor`, `advice` | the C++ compiler: which one, its options, its log |
//! | `translation` | the source with the headers around it; dynamic shared memory |
//! | `declared_kernels` | the kernels that a source declares, for errors |
//! | `cuda_on_host.hpp`, `entry.hpp` | what CUDA C needs beyond C++17; how blocks run |
//! | `exports.hpp` | what is called |
//! | `headers`, `cuda_fp16.h`, `cuda_bf16.h` | headers of the CUDA toolkit for sources |
//! | `library`, `temporary_files` | a loaded library; the files of compiler and loader |
//! | `runtime`, `waiting` | the functions that the compiled code calls; how a thread waits |
//! | `output` | where the text of `printf` goes, and what the checker finds |
//! | `block`, `fiber` | runs blocks: threads one after the other, with stacks once they wait |
//! | `launch_timeout`, `faults` | ends launches that take too long, or too large a stack |
//! | `sanitizer` | checks each access of a launch |
//! | `body`, `parallel` | a kernel's body: packs the parameters; runs blocks on several cores |

mod advice;
mod block;
mod body;
pub mod compiler;
mod declared_kernels;
mod faults;
mod fiber;
mod headers;
mod launch_timeout;
pub mod library;
mod output;
pub mod parallel;
mod processor;
pub mod runtime;
mod sanitizer;
pub mod temporary_files;
pub mod translation;
mod waiting;

use std::sync::{Arc, LazyLock, OnceLock};

use self::body::CompiledBody;
use self::compiler::Compiler;
pub use self::launch_timeout::limit as launch_timeout;
use self::library::Library;
pub use self::output::{OutputListener, set_listener};
use self::translation::{Checks, Translation};
use resident_backend::{GpuCode, KernelBody, LoadError, Program};
use resident_code::cache::DiskCache;
use resident_code::once::OncePerKey;
use resident_code::{read_source, signature, without_byte_order_mark};

pub use self::sanitizer::Findings;
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

/// The code that this process has compiled or read from disk.
static IMAGES: LazyLock<OncePerKey<Vec<u8>, Vec<u8>>> = LazyLock::new(OncePerKey::new);

static DISK: LazyLock<DiskCache> = LazyLock::new(DiskCache::from_environment);

/// Compiles a program for the host if necessary, loads it, and compares the parameters with the
/// signature.
pub fn load(program: &Program, libraries: &Libraries) -> Result<Arc<dyn KernelBody>, LoadError> {
    let (text, path) = match &program.source.code {
        GpuCode::C(text) => (without_byte_order_mark(text).to_owned(), None),
        GpuCode::File(path) => (read_source(path)?, Some(&**path)),
        GpuCode::Ptx(_) | GpuCode::Cubin(_) | GpuCode::Hsaco(_) => return Err(no_text().into()),
    };
    let compiler = Compiler::find()?;
    let checks = if libraries.findings.is_some() { Checks::On } else { Checks::Off };
    let translation = Translation::new(program, &text, path, checks)?;
    if !translation.has_headers
        && let Some(fault) =
            declared_kernels::fault(&text, translation.entry(), translation.options())
    {
        return Err(fault.into());
    }
    let key = [compiler.key(), translation.key()].concat();
    let library = libraries.loaded.get_or_make(key.clone(), || {
        let stored = image(compiler, &translation, &key)?;
        // Code from the disk cache may be that of a machine with other libraries.
        Library::load(&stored, &translation)
            .or_else(|_| Library::load(&compiler.compile(&translation)?, &translation))
    })?;
    let compiled_bytes = library.parameter_bytes();
    let parameters =
        signature::check(translation.entry(), &program.parameters, Some(&compiled_bytes))?;
    let findings = libraries.findings.clone();
    let body = Arc::new(CompiledBody::new(&program.kernel, library, parameters, findings));
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

/// The code of a translation, from memory or from disk, or compiled now. What depends on other
/// files is compiled for each device.
fn image(
    compiler: &Compiler,
    translation: &Translation,
    key: &[u8],
) -> Result<Arc<Vec<u8>>, String> {
    if !translation.is_self_contained {
        return compiler.compile(translation).map(Arc::new);
    }
    IMAGES.get_or_make(key.to_vec(), || match DISK.get(key) {
        Some([image]) => Ok(image),
        None => {
            let image = compiler.compile(translation)?;
            DISK.put(key, &[&image]);
            Ok(image)
        }
    })
}

fn no_text() -> String {
    "the embedded device compiles CUDA C, and this is PTX or machine code of a GPU; give the \
     source, or a body by `.host(..)`"
        .to_owned()
}
