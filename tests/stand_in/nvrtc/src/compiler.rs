//! Programs: their sources, options and compiled code.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::backend::code::cache::DiskCache;
use crate::backend::host_code::compiler::Compiler;
use crate::backend::host_code::translation::Translation;
use crate::backend::{self, CudaSource};
use crate::code_library::{CodeLibrary, Kernel};
use crate::{image, kernels, log};

/// The architectures that NVRTC knows: 12 and 13 have fewer old ones than the versions before.
pub(crate) fn architectures() -> &'static [i32] {
    const ALL: [i32; 21] =
        [35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 103, 120, 121];
    match version()[0] {
        ..=11 => &ALL[..17],
        12 => &ALL[2..],
        _ => &ALL[10..],
    }
}

/// The error of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    InvalidOption,
    Compilation,
}

/// A program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) expressions: Vec<String>,
    pub(crate) outcome: Option<Product>,
}

/// The result of a compilation.
#[derive(Debug, Default)]
pub(crate) struct Product {
    pub(crate) log: String,
    pub(crate) ptx: Option<String>,
    /// Whether the architecture is real (`sm_90`) rather than virtual (`compute_90`), so that there
    /// is a cubin.
    pub(crate) has_cubin: bool,
    /// Lowered names by name expression, as C strings.
    pub(crate) lowered: HashMap<String, CString>,
}

static COMPILATIONS: AtomicU64 = AtomicU64::new(0);
static VERSION: [AtomicI32; 2] = [AtomicI32::new(13), AtomicI32::new(0)];

/// Programs compiled so far.
pub(crate) fn compilations() -> u64 {
    COMPILATIONS.load(Ordering::Relaxed)
}

/// Major and minor.
pub(crate) fn version() -> [i32; 2] {
    [0, 1].map(|part| VERSION[part].load(Ordering::Relaxed))
}

/// Sets the reported version.
pub(crate) fn set_version(version: [i32; 2]) {
    [0, 1].iter().for_each(|part| VERSION[*part].store(version[*part], Ordering::Relaxed));
}

/// The parsed options.
#[derive(Debug)]
struct Options {
    architecture: i32,
    is_real: bool,
    /// Whether the output is code that a driver can load.
    has_code: bool,
    include_paths: Vec<String>,
    macros: BTreeMap<String, String>,
    /// Options that NVRTC knows, and that may concern the host.
    others: Vec<String>,
}

impl Program {
    /// Compiles the program, and stores the log and the result.
    pub(crate) fn compile(&mut self, options: &[String]) -> Result<(), Fault> {
        COMPILATIONS.fetch_add(1, Ordering::Relaxed);
        let made =
            read_options(options).map_err(|log| (Fault::InvalidOption, log)).and_then(|options| {
                let product = self.make(&options).map_err(|log| (Fault::Compilation, log))?;
                Ok(match options.has_code {
                    true => Product { has_cubin: options.is_real, ..product },
                    false => Product { ptx: Some(String::new()), ..product },
                })
            });
        match made {
            Ok(product) => {
                self.outcome = Some(product);
                Ok(())
            }
            Err((fault, log)) => {
                self.outcome = Some(Product { log, ..Product::default() });
                Err(fault)
            }
        }
    }

    fn make(&self, options: &Options) -> Result<Product, String> {
        let image = self.library(options).map_err(|log| log::of_nvrtc(&log, &self.name))?;
        let library = CodeLibrary::load(&image)?;
        let version = ptx_version(version());
        let ptx = image::ptx(version, options.architecture, &library.kernels, &image);
        let lowered = |expression: &String| {
            let named = |kernel: &&Kernel| kernel.name == *expression;
            let kernel =
                library.kernels.iter().rfind(named).ok_or("a kernel that is not listed")?;
            let symbol = CString::new(kernel.symbol.as_str()).map_err(|fault| fault.to_string())?;
            Ok((expression.clone(), symbol))
        };
        let lowered = self.expressions.iter().map(lowered).collect::<Result<_, String>>()?;
        Ok(Product { ptx: Some(ptx), lowered, ..Product::default() })
    }

    /// The library that a C++ compiler makes of the source, now or in an earlier run.
    fn library(&self, options: &Options) -> Result<Vec<u8>, String> {
        let compiler = Compiler::find()?;
        let translation = Translation::new(&self.translated(options), &self.text(), None, false)?;
        if !translation.is_self_contained {
            return compiler.compile(&translation);
        }
        let disk = disk();
        let key = [compiler.key(), translation.key()].concat();
        if let Some([library]) = disk.as_ref().and_then(|disk| disk.get(&key)) {
            return Ok(library);
        }
        let library = compiler.compile(&translation)?;
        disk.inspect(|disk| disk.put(&key, &[&library]));
        Ok(library)
    }

    fn translated(&self, options: &Options) -> backend::Program {
        let mut source = CudaSource::c("").entry("resident_no_kernel");
        for (name, value) in &options.macros {
            source = source.define(name.as_str(), value);
        }
        for folder in &options.include_paths {
            source = source.include(folder);
        }
        for option in &options.others {
            source = source.option(option.as_str());
        }
        backend::Program {
            kernel: Arc::from(self.name.as_str()),
            source,
            parameters: Box::default(),
        }
    }

    /// The source with all its kernels listed, line by line as it is.
    fn text(&self) -> String {
        let line = format!("#line 1 \"{}\"", self.name.replace(['"', '\\', '\n'], "_"));
        let listed = |expression: &String| {
            let function = expression.trim().trim_start_matches('&');
            format!("{line}\nRESIDENT_EXPRESSION({expression:?}, {function})\n")
        };
        let expressions: String = self.expressions.iter().map(listed).collect();
        format!(
            "#line 1 \"kernels.hpp\"\n{LIST}{line}\n{}\n{expressions}",
            kernels::with_list(&self.text)
        )
    }
}

/// What stands before each source.
const LIST: &str = include_str!("kernels.hpp");

/// The libraries of earlier runs, beside the program.
fn disk() -> Option<DiskCache> {
    let program = std::env::current_exe().ok()?;
    Some(DiskCache::at(&program.parent()?.join("stand_in_code")))
}

/// The PTX version that a CUDA version writes.
fn ptx_version([major, minor]: [i32; 2]) -> (i32, i32) {
    match (major, minor) {
        (11, _) => (7, minor),
        (12, 0..=5) => (8, minor),
        (12, _) => (8, minor - 1),
        _ => (major - 4, minor),
    }
}

/// Parses options in both forms, `--name=value` and `--name value`; macros and paths also as
/// `-Dname` and `-I path`. Surrounding spaces are ignored.
fn read_options(options: &[String]) -> Result<Options, String> {
    let mut read = Options {
        architecture: architectures()[0],
        is_real: false,
        has_code: true,
        include_paths: Vec::new(),
        macros: BTreeMap::new(),
        others: Vec::new(),
    };
    let mut rest = options.iter().map(|option| option.trim());
    while let Some(option) = rest.next() {
        let (name, value) = match option.split_once('=') {
            Some((name, value))
                if name.starts_with("--") || !name.starts_with("-D") && name.starts_with('-') =>
            {
                (name, Some(value))
            }
            _ => (option, None),
        };
        let mut follows = || value.or_else(|| rest.next()).map(str::to_owned);
        let wrong = || format!("nvrtc: error: invalid value for {option}\n");
        match name {
            "--gpu-architecture" | "-arch" => {
                (read.architecture, read.is_real) =
                    architecture(&follows().ok_or_else(wrong)?).ok_or_else(wrong)?;
            }
            // These options produce code for later linking or for OptiX, which is neither PTX nor a
            // cubin.
            "-dlto" | "--dlink-time-opt" | "-optix-ir" | "--optix-ir" => read.has_code = false,
            "--include-path" | "-I" => read.include_paths.push(follows().ok_or_else(wrong)?),
            "--define-macro" | "-D" => define(&follows().ok_or_else(wrong)?, &mut read.macros),
            _ if name.starts_with("-D") => define(&name[2..], &mut read.macros),
            _ if name.starts_with("-I") => read.include_paths.push(name[2..].to_owned()),
            _ if is_known(name) => read.others.push(option.to_owned()),
            _ => return Err(format!("nvrtc: error: unrecognized option {option} found\n")),
        }
    }
    Ok(read)
}

/// `sm_90a` or `compute_90`: the number, and whether it is a real architecture.
fn architecture(text: &str) -> Option<(i32, bool)> {
    let (number, is_real) = match text.strip_prefix("sm_") {
        Some(number) => (number, true),
        None => (text.strip_prefix("compute_")?, false),
    };
    let number = number.trim_end_matches(['a', 'f']).parse().ok()?;
    architectures().contains(&number).then_some((number, is_real))
}

fn define(text: &str, macros: &mut BTreeMap<String, String>) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    macros.insert(name.trim().to_owned(), value.to_owned());
}

/// Whether this is an option of NVRTC.
fn is_known(name: &str) -> bool {
    const KNOWN: [&str; 33] = [
        "--std",
        "-std",
        "--use_fast_math",
        "-use_fast_math",
        "--fmad",
        "-fmad",
        "--ftz",
        "-ftz",
        "--prec-sqrt",
        "--prec-div",
        "--maxrregcount",
        "-maxrregcount",
        "--generate-line-info",
        "-lineinfo",
        "--device-debug",
        "-G",
        "--dopt",
        "-dopt",
        "--extra-device-vectorization",
        "--device-as-default-execution-space",
        "-default-device",
        "--relocatable-device-code",
        "-rdc",
        "--restrict",
        "-restrict",
        "--disable-warnings",
        "-w",
        "--diag-suppress",
        "--diag-error",
        "--ptxas-options",
        "-Xptxas",
        "--no-source-include",
        "--time",
    ];
    KNOWN.contains(&name)
}
