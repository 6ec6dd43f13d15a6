//! Turns a program into a loaded kernel: reads, compiles and loads it, finds the function, and
//! compares its parameters. Each step runs once, and all kernels that need its result share it.

use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

use super::attributes;
use super::compile::{Compiled, Compiler, name_in_code};
use super::described_code::DescribedCode;
use super::function::LoadedFunction;
use super::image;
use super::kernel::GpuKernel;
use super::limits::grid_limits;
use super::module::Module;
use super::source::Source;
use super::variable::GpuVariable;
use crate::context::Context;
use resident_backend::grid::GridLimits;
use resident_backend::{
    BackendError, DeviceKind, GpuCode, GpuSource, KernelAttributes, LoadError, LoadedKernel,
    ModuleVariable, Program,
};
use resident_code::c_declaration::is_identifier;
use resident_code::cache::DiskCache;
use resident_code::code_object;
use resident_code::late_instance::came_late;
use resident_code::once::OncePerKey;
use resident_code::words::find_in_code;
use resident_code::{parameter_types, read_source, signature, without_byte_order_mark};

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
    let entry = program.source.entry.as_deref().unwrap_or(&program.kernel);
    let types = module.described.parameters(entry);
    let bytes = compiled_bytes.as_deref();
    let parameters = signature::check(entry, &program.parameters, bytes, types)?;
    parameter_types::check(entry, &program.parameters, types)?;
    let kernel = GpuKernel::new(&program.kernel, function, Arc::clone(&module), parameters, limits);
    Ok(Arc::new(kernel.map_err(|error| module.load_error(error))?))
}

/// A variable of the module that kernels of a program's source share.
pub(crate) fn variable(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
    name: &str,
) -> Result<Arc<dyn ModuleVariable>, LoadError> {
    context.make_current()?;
    let module = match &program.source.code {
        GpuCode::C(text) => {
            let text = without_byte_order_mark(text);
            SourceOfProgram { program, text, path: None }.module(context, programs)?
        }
        GpuCode::File(path) => {
            let text = &read_source(path)?;
            SourceOfProgram { program, text, path: Some(path) }.module(context, programs)?
        }
        GpuCode::Ptx(text) => programs.given(context, Compiled::ptx(text), "this PTX")?,
        GpuCode::Cubin(code) | GpuCode::Hsaco(code) => {
            programs.given(context, Compiled::machine_code(code), "this machine code")?
        }
    };
    Ok(Arc::new(GpuVariable::find(module, name)?))
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
        source: &Source,
        key: Vec<u8>,
    ) -> Result<Arc<Module>, LoadError> {
        self.modules.get_or_make(key, || {
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
            return SourceOfProgram { program, text, path: None }.find(context, programs, entry);
        }
        GpuCode::File(path) => {
            let text = &read_source(path)?;
            let source = SourceOfProgram { program, text, path: Some(path) };
            return source.find(context, programs, entry);
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
    FoundFunction::of(&module, entry)?
        .ok_or_else(|| no_entry(entry, source, &module.kernel_names).into())
}

/// The error for code that another vendor's GPUs run.
#[cold]
fn foreign(what: &str, vendor: &str, method: &str) -> LoadError {
    LoadError::Program(format!(
        "{what} for {vendor} GPUs only: give the kernel CUDA C, which runs on both, or another \
         body for this GPU by {method}"
    ))
}

/// CUDA C of a program.
struct SourceOfProgram<'a> {
    program: &'a Program,
    text: &'a str,
    path: Option<&'a Path>,
}

impl SourceOfProgram<'_> {
    /// Finds a function in the module that all kernels of the source share. One that the module
    /// lacks, since nobody asked for it before it was compiled, gets a module of its own.
    fn find(
        &self,
        context: &Arc<Context>,
        programs: &Programs,
        entry: &str,
    ) -> Result<FoundFunction, LoadError> {
        let is_plain = is_identifier(entry);
        let source = &self.program.source;
        if !is_plain && source.entry.is_none() {
            return Err(LoadError::Program(format!(
                "no C function can be called {entry:?}: name the one to run by `GpuSource::entry`"
            )));
        }
        let shared = self.module(context, programs);
        let mut hint = String::new();
        if let Ok(module) = &shared {
            let name = module.name_of(entry);
            if let Some(found) = FoundFunction::of(module, name)? {
                return Ok(found);
            }
            if is_plain {
                hint = no_entry(entry, source, &module.kernel_names);
            }
            let variables = &module.described.variables;
            if !variables.is_empty() && self.names(entry) {
                return Err(came_late(entry, self.text, self.path, variables).into());
            }
        } else if is_plain && !self.is_expression(entry) {
            return Err(shared.expect_err("it failed"));
        }
        let own = Source::new(self.program, self.text, self.path, &[entry.to_owned()])?;
        let key = [&own.module_key(), entry.as_bytes()].concat();
        let module = programs.compiled(context, &own, key);
        let module = module.map_err(|error| with_hint(error, &hint))?;
        let name = module.name_of(entry);
        FoundFunction::of(&module, name)?
            .ok_or_else(|| no_entry(name, source, &module.kernel_names).into())
    }

    /// The module that all kernels of the source share.
    fn module(
        &self,
        context: &Arc<Context>,
        programs: &Programs,
    ) -> Result<Arc<Module>, LoadError> {
        let mut entries = self.program.source.entries.all();
        entries.extend(self.program.source.entry.clone());
        entries.dedup();
        let entries = entries.iter().map(|entry| (**entry).to_owned());
        let mut expressions: Vec<String> = entries.filter(|one| self.is_expression(one)).collect();
        expressions.sort();
        expressions.dedup();
        let source = Source::new(self.program, self.text, self.path, &expressions)?;
        programs.compiled(context, &source, source.module_key())
    }

    /// Whether an entry is a name expression, and the source has a function with its name.
    fn is_expression(&self, entry: &str) -> bool {
        !is_identifier(entry) && self.names(entry)
    }

    fn names(&self, entry: &str) -> bool {
        let name = entry.split('<').next().unwrap_or(entry).trim();
        let name = name.rsplit("::").next().unwrap_or(name).trim_start_matches('&').trim();
        find_in_code(self.text, &[name]).is_some() || self.text.contains("##")
    }
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
fn no_entry(entry: &str, source: &GpuSource, kernel_names: &[String]) -> String {
    let known = match kernel_names.join(", ") {
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

/// What a program is compiled to without a device: its code, its attributes, and what the compiler
/// said.
#[derive(Clone, Debug)]
pub struct CompiledProgram {
    pub code: Vec<u8>,
    pub attributes: KernelAttributes,
    pub log: String,
}

/// Compiles CUDA C for an architecture such as `sm_90` or `gfx90a` as for a GPU of it, and compares
/// the parameters with the signature.
pub fn compile_for(program: &Program, architecture: &str) -> Result<CompiledProgram, String> {
    let found = code_for(program, architecture)?;
    let code = &found.code;
    let entry = program.source.entry.as_deref().unwrap_or(&program.kernel);
    let names = code.kernel_names();
    let name = name_in_code(&code.lowered, &names, entry);
    if !names.iter().any(|known| known == name) {
        return Err(no_entry(entry, &program.source, &names));
    }
    let types = DescribedCode::of(code);
    let types = types.parameters(entry);
    let bytes: Vec<usize> = types.iter().map(|one| one.len_bytes()).collect();
    let compiled_bytes = (!bytes.is_empty()).then_some(&*bytes);
    signature::check(entry, &program.parameters, compiled_bytes, types)?;
    parameter_types::check(entry, &program.parameters, types)?;
    let attributes = attributes::of(code, name);
    let image = if code.machine_code.is_empty() { &code.ptx } else { &code.machine_code };
    Ok(CompiledProgram { code: image.clone(), attributes, log: code.log.clone() })
}

/// Whether CUDA C can be compiled for an architecture, whatever the signature. The error is the
/// compiler's log, or what else is wrong.
pub fn compiles_for(program: &Program, architecture: &str) -> Result<(), String> {
    code_for(program, architecture).map(drop)
}

fn code_for(program: &Program, architecture: &str) -> Result<Arc<CachedCode>, String> {
    let (text, path) = match &program.source.code {
        GpuCode::C(text) => (without_byte_order_mark(text).to_owned(), None),
        GpuCode::File(path) => (read_source(path)?, Some(&**path)),
        GpuCode::Ptx(_) | GpuCode::Cubin(_) | GpuCode::Hsaco(_) => {
            return Err("the body is compiled already: give CUDA C".to_owned());
        }
    };
    let entry = program.source.entry.as_deref().unwrap_or(&program.kernel);
    let source = SourceOfProgram { program, text: &text, path };
    let expressions: Vec<String> =
        Some(entry.to_owned()).filter(|entry| source.is_expression(entry)).into_iter().collect();
    let source = Source::new(program, &text, path, &expressions)?;
    let compiler = Compiler::for_architecture(architecture)?;
    let job = CompileJob::with(compiler, &source, || Ok(architecture.to_owned()), 0)?;
    job.find_or_compile(&DiskCache::from_environment())
}

/// The compilation of a source for a device.
struct CompileJob<'a> {
    source: &'a Source,
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
    fn new(context: &Context, source: &'a Source) -> Result<Self, String> {
        let compiler = Compiler::find(context.driver())?;
        let version = context.driver().version();
        Self::with(compiler, source, || compiler.target_of(context), version)
    }

    /// The compilation for a target, without a device.
    fn with(
        compiler: Compiler,
        source: &'a Source,
        target: impl FnOnce() -> Result<String, String>,
        version: i32,
    ) -> Result<Self, String> {
        if let Some(error) = source.refused(compiler.product()) {
            return Err(error);
        }
        let target = match source.architecture(compiler.product()) {
            Some(named) => named.to_owned(),
            None => target()?,
        };
        // The version of the driver too: hiprtc is a part of some, and says 9.0 in every version.
        let name = compiler.name();
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
            disk.put(&self.key, &code.parts().each_ref().map(Vec::as_slice));
        }
        Ok(code)
    }
}
