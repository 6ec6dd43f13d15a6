//! From a program to a loaded kernel: read, compile, load, find the function, compare its
//! parameters; each step once for all who need it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::cache::Disk;
use super::compile::{Compiled, Compiler};
use super::function::Function;
use super::kernel::CudaKernel;
use super::limits::Limits;
use super::module::Module;
use super::once::OncePerKey;
use super::source::Source;
use super::{image, ptx, signature};
use crate::backend::CudaCode;
use crate::backend::c_declaration::is_identifier;
use crate::backend::cuda::context::Context;
use crate::backend::{BackendError, CudaSource, LoadError, LoadedKernel, Program};

/// Compiled code of this process, for all devices.
static COMPILED: OncePerKey<Vec<u8>, Made> = OncePerKey::new();

/// What was compiled.
#[derive(Debug)]
struct Made {
    code: Compiled,
    /// By an earlier run.
    was_kept: bool,
}

/// One device's modules: one for each source, and one more for each name expression. They stay for
/// the device's life.
#[derive(Debug)]
pub(in crate::backend::cuda) struct Programs {
    modules: OncePerKey<Vec<u8>, Module>,
    limits: OnceLock<Limits>,
    disk: Disk,
}

impl Default for Programs {
    fn default() -> Self {
        Self { modules: OncePerKey::new(), limits: OnceLock::new(), disk: Disk::from_environment() }
    }
}

/// Compiles if need be, loads, and checks against the signature.
pub(in crate::backend::cuda) fn load(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
) -> Result<Arc<dyn LoadedKernel>, LoadError> {
    context.enter()?;
    let limits = programs.limits(context)?;
    let Found { module, function, name } = find(context, programs, program)?;
    let told =
        signature::told_by_driver(function.handle()).map_err(|refusal| module.fault(refusal))?;
    let declared = || {
        ptx::entries(&module.declarations)
            .into_iter()
            .find(|entry| entry.name == name)?
            .parameters_bytes
    };
    let compiled_bytes = told.or_else(declared);
    let parameters = signature::fitted(&name, &program.parameters, compiled_bytes.as_deref())
        .map_err(LoadError::Program)?;
    let kernel =
        CudaKernel::new(&program.kernel, function, Arc::clone(&module), parameters, limits);
    Ok(Arc::new(kernel.map_err(|refusal| module.fault(refusal))?))
}

impl From<BackendError> for LoadError {
    fn from(refusal: BackendError) -> Self {
        Self::Refused(refusal)
    }
}

impl Programs {
    fn limits(&self, context: &Context) -> Result<Limits, BackendError> {
        match self.limits.get() {
            Some(limits) => Ok(*limits),
            None => Limits::of(context).map(|limits| *self.limits.get_or_init(|| limits)),
        }
    }

    /// What the driver gets as it is: PTX or machine code.
    fn given(
        &self,
        context: &Arc<Context>,
        code: Compiled,
        maker: &str,
    ) -> Result<Arc<Module>, LoadError> {
        let key = [b"given", &*code.cubin, &*code.ptx].concat();
        self.modules.get_or_make(key, || Module::load(context, &code, maker))
    }

    /// What NVRTC compiles. What an earlier run compiled, and the driver does not take, is compiled
    /// anew.
    fn compiled(
        &self,
        context: &Arc<Context>,
        source: &Source<'_>,
    ) -> Result<Arc<Module>, LoadError> {
        self.modules.get_or_make(source.key(""), || {
            let recipe = Recipe::new(context, source).map_err(LoadError::Program)?;
            let made = recipe.made(&self.disk).map_err(LoadError::Program)?;
            match Module::load(context, &made.code, &recipe.maker()) {
                Err(LoadError::Program(_)) if made.was_kept => {
                    let anew = recipe.made_anew(&made, &self.disk).map_err(LoadError::Program)?;
                    Module::load(context, &anew.code, &recipe.maker())
                }
                outcome => outcome,
            }
        })
    }
}

/// A function of a module.
struct Found {
    module: Arc<Module>,
    function: Arc<Function>,
    /// As the code has it.
    name: String,
}

impl Found {
    fn in_module(module: Arc<Module>, name: &str) -> Result<Result<Self, Arc<Module>>, LoadError> {
        let function = module.function(name).map_err(|refusal| module.fault(refusal))?;
        Ok(match function {
            Some(function) => Ok(Self { module, function, name: name.to_owned() }),
            None => Err(module),
        })
    }
}

fn find(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
) -> Result<Found, LoadError> {
    let source = &program.source;
    let entry: &str = source.entry.as_deref().unwrap_or(&program.kernel);
    let module = match &source.code {
        CudaCode::Ptx(text) if text.is_empty() => {
            return Err(LoadError::Program(
                "this PTX is an empty text; give what a compiler wrote".to_owned(),
            ));
        }
        CudaCode::Ptx(text) => programs.given(
            context,
            Compiled { ptx: text.as_bytes().to_vec(), ..Compiled::default() },
            "this PTX",
        )?,
        CudaCode::Cubin(code) => {
            image::check(code).map_err(LoadError::Program)?;
            programs.given(
                context,
                Compiled { cubin: code.to_vec(), ..Compiled::default() },
                "this machine code",
            )?
        }
        CudaCode::C(text) => return find_in_c(context, programs, program, entry, text, None),
        CudaCode::File(path) => {
            let text = read(path).map_err(LoadError::Program)?;
            return find_in_c(context, programs, program, entry, &text, Some(path));
        }
    };
    Found::in_module(module, entry)?
        .map_err(|module| LoadError::Program(no_entry(entry, source, &module)))
}

/// An `extern "C"` function by its name, in the module that all kernels of the source share;
/// anything else by a name expression, in one of its own.
fn find_in_c(
    context: &Arc<Context>,
    programs: &Programs,
    program: &Program,
    entry: &str,
    text: &str,
    path: Option<&Path>,
) -> Result<Found, LoadError> {
    let source =
        |expression| Source::new(program, text, path, expression).map_err(LoadError::Program);
    let mut hint = String::new();
    if is_identifier(entry) {
        match Found::in_module(programs.compiled(context, &source(None)?)?, entry)? {
            Ok(found) => return Ok(found),
            Err(module) => hint = no_entry(entry, &program.source, &module),
        }
    } else if program.source.entry.is_none() {
        return Err(LoadError::Program(format!(
            "no C function can be called {entry:?}: name the one to run by `CudaSource::entry`"
        )));
    }
    let module = programs
        .compiled(context, &source(Some(entry))?)
        .map_err(|fault| with_hint(fault, &hint))?;
    let name = module.lowered_name.clone().unwrap_or_else(|| entry.to_owned());
    Found::in_module(module, &name)?
        .map_err(|module| LoadError::Program(no_entry(&name, &program.source, &module)))
}

/// A name expression that does not compile is most often a name that is not there.
fn with_hint(fault: LoadError, hint: &str) -> LoadError {
    match fault {
        LoadError::Program(log) if !hint.is_empty() => LoadError::Program(format!("{hint}; {log}")),
        other => other,
    }
}

#[cold]
fn no_entry(entry: &str, source: &CudaSource, module: &Module) -> String {
    let all: Vec<&str> =
        ptx::entries(&module.declarations).into_iter().map(|entry| entry.name).collect();
    let known =
        if all.is_empty() { String::new() } else { format!(", which has {}", all.join(", ")) };
    let how = if source.entry.is_some() {
        "as `CudaSource::entry` says"
    } else {
        "the kernel's name; another one is named by `CudaSource::entry`"
    };
    format!("there is no `__global__` function `{entry}` in the code{known} ({how})")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|fault| format!("the file {} cannot be read: {fault}", path.display()))
}

/// How a source is compiled for a device.
struct Recipe<'a> {
    source: &'a Source<'a>,
    compiler: Compiler,
    /// The source's own architecture, else the best for the device.
    target: String,
    /// Of what comes out.
    key: Vec<u8>,
}

impl<'a> Recipe<'a> {
    fn new(context: &Context, source: &'a Source<'a>) -> Result<Self, String> {
        let compiler = Compiler::find(context.driver_version())?;
        let target = match source.architecture() {
            Some(own) => own.to_owned(),
            None => compiler.target(context.capability())?.name(),
        };
        let key = source.key(&format!("{target} by {}", compiler.version()));
        Ok(Self { source, compiler, target, key })
    }

    /// For messages.
    fn maker(&self) -> String {
        format!("what NVRTC {} made for {}", self.compiler.version(), self.target)
    }

    /// Compiled now, earlier in this process, or by an earlier run.
    fn made(&self, disk: &Disk) -> Result<Arc<Made>, String> {
        COMPILED.get_or_make(self.key.clone(), || {
            let kept = if self.source.is_self_contained { disk.get(&self.key) } else { None };
            kept.map_or_else(|| self.make(disk), |code| Ok(Made { code, was_kept: true }))
        })
    }

    /// Compiled now, in the place of what an earlier run left.
    fn made_anew(&self, useless: &Arc<Made>, disk: &Disk) -> Result<Arc<Made>, String> {
        COMPILED.replace(self.key.clone(), useless, || self.make(disk))
    }

    fn make(&self, disk: &Disk) -> Result<Made, String> {
        let code = self.compiler.compile(&self.source.unit(&self.target))?;
        if self.source.is_self_contained {
            disk.put(&self.key, &code);
        }
        Ok(Made { code, was_kept: false })
    }
}
