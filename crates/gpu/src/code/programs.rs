//! Turns a program into a loaded kernel: reads, compiles and loads it, finds the function, and
//! compares its parameters. Each step runs once, and all kernels that need its result share it.

use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

use super::compile::{Compiled, Compiler};
use super::function::LoadedFunction;
use super::image;
use super::kernel::GpuKernel;
use super::limits::grid_limits;
use super::module::Module;
use super::source::Source;
use crate::context::Context;
use resident_backend::grid::GridLimits;
use resident_backend::{
    BackendError, DeviceKind, GpuCode, GpuSource, LoadError, LoadedKernel, Program,
};
use resident_code::c_declaration::is_identifier;
use resident_code::cache::DiskCache;
use resident_code::code_object;
use resident_code::once::OncePerKey;
use resident_code::{read_source, signature, without_byte_order_mark};

/// The modules of one device: one per source, and one more per name expression. They stay loaded as
/// long as the device lives.
#[derive(Debug)]
pub(crate) struct Programs {
    modules: OncePerKey<Vec<u8>, Module>,
    limits: OnceLock<GridLimits>,
    disk: DiskCache,
}

/// Compiles if necessary, loads, and compares the parameters with the signature.
pub(crate) fn load(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
) -> Result<Arc<dyn LoadedKernel>, LoadError> {
    context.make_current()?;
    let limits = programs.limits(context)?;
    let FoundFunction { module, function, name } = find(context, programs, program)?;
    let compiled_bytes = module.parameter_bytes(&function, &name)?;
    let parameters = signature::check(&name, &program.parameters, compiled_bytes.as_deref())?;
    let kernel = GpuKernel::new(&program.kernel, function, Arc::clone(&module), parameters, limits);
    Ok(Arc::new(kernel.map_err(|error| module.load_error(error))?))
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            modules: OncePerKey::new(),
            limits: OnceLock::new(),
            disk: DiskCache::from_environment(),
        }
    }
}

impl Programs {
    fn limits(&self, context: &Context) -> Result<GridLimits, BackendError> {
        match self.limits.get() {
            Some(limits) => Ok(*limits),
            None => grid_limits(context).map(|limits| *self.limits.get_or_init(|| limits)),
        }
    }

    /// The module of PTX or machine code from the user.
    fn given(
        &self,
        context: &Arc<Context>,
        code: Compiled,
        description: &str,
    ) -> Result<Arc<Module>, LoadError> {
        let key = [b"given", &*code.machine_code, &*code.ptx].concat();
        self.modules.get_or_make(key, || Module::load(context, &code, description))
    }

    /// The module of CUDA C. Code from the disk cache that the driver refuses is compiled again.
    fn compiled(
        &self,
        context: &Arc<Context>,
        source: &Source<'_>,
    ) -> Result<Arc<Module>, LoadError> {
        self.modules.get_or_make(source.key(""), || {
            let job = CompileJob::new(context, source)?;
            let found = job.find_or_compile(&self.disk)?;
            match Module::load(context, &found.code, &job.description()) {
                Err(LoadError::Program(_)) if found.is_from_disk => {
                    Module::load(context, &job.compile(&self.disk)?, &job.description())
                }
                outcome => outcome,
            }
        })
    }
}

/// A function of a module.
struct FoundFunction {
    module: Arc<Module>,
    function: Arc<LoadedFunction>,
    /// The function's name in the code.
    name: String,
}

impl FoundFunction {
    fn of(module: &Arc<Module>, name: &str) -> Result<Option<Self>, LoadError> {
        let function = module.function(name).map_err(|error| module.load_error(error))?;
        let found = |function| Self { module: Arc::clone(module), function, name: name.to_owned() };
        Ok(function.map(found))
    }
}

fn find(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
) -> Result<FoundFunction, LoadError> {
    let source = &program.source;
    let entry = source.entry.as_deref().unwrap_or(&program.kernel);
    let module = match &source.code {
        GpuCode::C(text) => {
            let text = without_byte_order_mark(text);
            return find_in_c(context, programs, program, entry, text, None);
        }
        GpuCode::File(path) => {
            let text = read_source(path)?;
            return find_in_c(context, programs, program, entry, &text, Some(path));
        }
        GpuCode::Ptx(_) | GpuCode::Cubin(_) if context.kind() != DeviceKind::Cuda => {
            return Err(foreign("PTX and cubins are", "NVIDIA", "`Kernel::hip`"));
        }
        GpuCode::Hsaco(_) if context.kind() != DeviceKind::Hip => {
            return Err(foreign("code objects are", "AMD", "`Kernel::cuda`"));
        }
        GpuCode::Ptx(text) if text.is_empty() => {
            return Err("this PTX is an empty text; give what a compiler wrote".to_owned().into());
        }
        GpuCode::Ptx(text) => programs.given(context, Compiled::ptx(text), "this PTX")?,
        GpuCode::Cubin(code) => {
            image::check(code)?;
            programs.given(context, Compiled::machine_code(code), "this machine code")?
        }
        GpuCode::Hsaco(code) => {
            image::check_code_object(code)?;
            let description = match code_object::architecture(code) {
                Some(target) => format!("this code object (for {target})"),
                None => {
                    let targets = code_object::bundled_targets(code).join(", ");
                    format!("this bundle of code objects (for {targets})")
                }
            };
            programs.given(context, Compiled::machine_code(code), &description)?
        }
    };
    FoundFunction::of(&module, entry)?.ok_or_else(|| no_entry(entry, source, &module).into())
}

/// The error for code that another vendor's GPUs run.
#[cold]
fn foreign(what: &str, vendor: &str, method: &str) -> LoadError {
    LoadError::Program(format!(
        "{what} for {vendor} GPUs only: give the kernel CUDA C, which runs on both, or another \
         body for this GPU by {method}"
    ))
}

/// Finds an `extern "C"` function by its name, in the module that all kernels of the source share.
/// Finds any other function by a name expression, in a module of its own.
fn find_in_c(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
    entry: &str,
    text: &str,
    path: Option<&Path>,
) -> Result<FoundFunction, LoadError> {
    let module =
        |expression| programs.compiled(context, &Source::new(program, text, path, expression)?);
    let mut hint = String::new();
    if is_identifier(entry) {
        let module = module(None)?;
        match FoundFunction::of(&module, entry)? {
            Some(found) => return Ok(found),
            None => hint = no_entry(entry, &program.source, &module),
        }
    } else if program.source.entry.is_none() {
        return Err(LoadError::Program(format!(
            "no C function can be called {entry:?}: name the one to run by `GpuSource::entry`"
        )));
    }
    let module = module(Some(entry)).map_err(|error| with_hint(error, &hint))?;
    let name = module.lowered_name.as_deref().unwrap_or(entry);
    FoundFunction::of(&module, name)?.ok_or_else(|| no_entry(name, &program.source, &module).into())
}

/// Adds a hint: if a name expression does not compile, often the source has no function with that
/// name.
fn with_hint(error: LoadError, hint: &str) -> LoadError {
    match error {
        LoadError::Program(log) if !hint.is_empty() => LoadError::Program(format!("{hint}; {log}")),
        other => other,
    }
}

#[cold]
fn no_entry(entry: &str, source: &GpuSource, module: &Module) -> String {
    let known = match module.kernel_names.join(", ") {
        none if none.is_empty() => none,
        names => format!(", which has {names}"),
    };
    let origin = if source.entry.is_some() {
        "as `GpuSource::entry` says"
    } else {
        "the kernel's name; another one is named by `GpuSource::entry`"
    };
    format!("there is no `__global__` function `{entry}` in the code{known} ({origin})")
}

/// The compilation of a source for a device.
struct CompileJob<'a> {
    source: &'a Source<'a>,
    compiler: Compiler,
    /// The architecture that the source's options name, else the best one for the device.
    target: String,
    /// The key of the compiled code.
    key: Vec<u8>,
}

/// Code that this process has compiled or read from disk, for all devices.
static COMPILED: LazyLock<OncePerKey<Vec<u8>, CachedCode>> = LazyLock::new(OncePerKey::new);

#[derive(Debug)]
struct CachedCode {
    code: Compiled,
    is_from_disk: bool,
}

impl<'a> CompileJob<'a> {
    fn new(context: &Context, source: &'a Source<'a>) -> Result<Self, String> {
        let compiler = Compiler::find(context.driver())?;
        if let Some(error) = source.refused(compiler.product()) {
            return Err(error);
        }
        let target = match source.architecture(compiler.product()) {
            Some(named) => named.to_owned(),
            None => compiler.target_of(context)?,
        };
        // The version of the driver too: hiprtc is a part of some, and says 9.0 in every version.
        let name = compiler.name();
        let version = context.driver().version();
        let file = compiler.file();
        let key = source.key(&format!("{target} by {name} in {file} beside {version}"));
        Ok(Self { source, compiler, target, key })
    }

    /// The code's name in error messages.
    fn description(&self) -> String {
        format!("what {} made for {}", self.compiler.name(), self.target)
    }

    /// Returns the code from this process's memory or from disk, or compiles it now.
    fn find_or_compile(&self, disk: &DiskCache) -> Result<Arc<CachedCode>, String> {
        COMPILED.get_or_make(self.key.clone(), || {
            let kept = if self.source.is_self_contained { disk.get(&self.key) } else { None };
            let kept = kept.and_then(Compiled::from_parts);
            let is_from_disk = kept.is_some();
            let code = kept.map_or_else(|| self.compile(disk), Ok)?;
            Ok(CachedCode { code, is_from_disk })
        })
    }

    fn compile(&self, disk: &DiskCache) -> Result<Compiled, String> {
        let code =
            self.compiler.compile(&self.source.input(&self.target, self.compiler.product()))?;
        if self.source.is_self_contained {
            disk.put(&self.key, &code.parts());
        }
        Ok(code)
    }
}
