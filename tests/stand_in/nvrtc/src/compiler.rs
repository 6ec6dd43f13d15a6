//! Programs: their sources, options and compiled code.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::names;
use crate::preprocess::{self, Inputs};
use crate::source::{self, Kernel, Source};
use crate::types::Layout;

/// The architectures of NVRTC 13.
pub(crate) const ARCHITECTURES: [i32; 11] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 120, 121];

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
    pub(crate) headers: HashMap<String, String>,
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
    pub(crate) lowered: HashMap<String, std::ffi::CString>,
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
    macros: HashMap<String, String>,
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
        let inputs = Inputs {
            headers: self.headers.clone(),
            include_paths: options.include_paths.clone(),
            macros: options.macros.clone(),
        };
        let source = source::read(&preprocess::run(&self.name, &self.text, &inputs)?)?;
        let mut ptx = head(options.architecture);
        for kernel in source.kernels.iter().filter(|kernel| kernel.template.is_empty()) {
            let (symbol, layouts) = kernel.lower(&[], &source.names)?;
            ptx.push_str(&entry(&symbol, kernel, &layouts));
        }
        let mut lowered = HashMap::new();
        for expression in &self.expressions {
            let (symbol, instance) = self.instantiate(expression, &source)?;
            if let Some(instance) = instance.filter(|_| !ptx.contains(&format!(".entry {symbol}(")))
            {
                ptx.push_str(&instance);
            }
            lowered.insert(
                expression.clone(),
                std::ffi::CString::new(symbol).map_err(|fault| fault.to_string())?,
            );
        }
        Ok(Product { ptx: Some(ptx), lowered, ..Product::default() })
    }

    /// The symbol of a name expression, and its entry if it is a template instance.
    fn instantiate(
        &self,
        expression: &str,
        source: &Source,
    ) -> Result<(String, Option<String>), String> {
        let asked = names::read(expression);
        let unknown = || {
            preprocess::complaint(
                &self.name,
                1,
                &format!("name expression \"{expression}\" names no __global__ function"),
            )
        };
        let kernel =
            source.kernels.iter().find(|kernel| asked.means(kernel)).ok_or_else(unknown)?;
        let (symbol, layouts) = kernel.lower(&asked.arguments, &source.names)?;
        let instance = (!kernel.template.is_empty()).then(|| entry(&symbol, kernel, &layouts));
        Ok((symbol, instance))
    }
}

/// The header of the PTX: version and target.
fn head(architecture: i32) -> String {
    let (major, minor) = ptx_version(version());
    format!(
        "//\n// Generated by the stand-in for NVRTC\n//\n\n.version {major}.{minor}\n.target \
         sm_{architecture}\n.address_size 64\n\n"
    )
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

fn entry(symbol: &str, kernel: &Kernel, layouts: &[Layout]) -> String {
    let parameter = |(index, layout): (usize, &Layout)| match layout.letter {
        Some(letter) => {
            format!("\t.param .{letter}{} {symbol}_param_{index}", 8 * layout.len_bytes)
        }
        None => format!(
            "\t.param .align {} .b8 {symbol}_param_{index}[{}]",
            layout.alignment, layout.len_bytes
        ),
    };
    let parameters: Vec<String> = layouts.iter().enumerate().map(parameter).collect();
    let bounds =
        kernel.max_threads.map(|threads| format!(".maxntid {threads}, 1, 1\n")).unwrap_or_default();
    format!(".visible .entry {symbol}(\n{}\n)\n{bounds}{{\n\tret;\n}}\n\n", parameters.join(",\n"))
}

/// Parses options in both forms, `--name=value` and `--name value`; macros and paths also as
/// `-Dname` and `-I path`. Surrounding spaces are ignored.
fn read_options(options: &[String]) -> Result<Options, String> {
    let (include_paths, macros) = (Vec::new(), HashMap::new());
    let mut read = Options {
        architecture: ARCHITECTURES[0],
        is_real: false,
        has_code: true,
        include_paths,
        macros,
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
            _ if is_known(name) => {}
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
    ARCHITECTURES.contains(&number).then_some((number, is_real))
}

fn define(text: &str, macros: &mut HashMap<String, String>) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    macros.insert(name.trim().to_owned(), value.to_owned());
}

/// Whether this is an option that has no effect on the stand-in.
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
