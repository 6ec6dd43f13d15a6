//! NVRTC's options, and its versions.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::compiler::Fault;

static VERSION: [AtomicI32; 2] = [AtomicI32::new(13), AtomicI32::new(0)];

/// Major and minor.
pub(crate) fn version() -> [i32; 2] {
    [0, 1].map(|part| VERSION[part].load(Ordering::Relaxed))
}

/// Sets the reported version.
pub(crate) fn set_version(version: [i32; 2]) {
    [0, 1].iter().for_each(|part| VERSION[*part].store(version[*part], Ordering::Relaxed));
}

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

/// The parsed options.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) architecture: i32,
    /// Whether the architecture is real (`sm_90`) rather than virtual (`compute_90`), so that there
    /// is a cubin.
    pub(crate) is_real: bool,
    /// Whether the output is code that a driver can load.
    pub(crate) has_code: bool,
    pub(crate) include_paths: Vec<String>,
    pub(crate) macros: BTreeMap<String, String>,
    /// Options that NVRTC knows, and that may concern the host.
    pub(crate) others: Vec<String>,
}

/// Parses options in both forms, `--name=value` and `--name value`; macros and paths also as
/// `-Dname` and `-I path`. Surrounding spaces are ignored.
pub(crate) fn read(options: &[String]) -> Result<Options, (Fault, String)> {
    parse(options).map_err(|log| (Fault::InvalidOption, log))
}

fn parse(options: &[String]) -> Result<Options, String> {
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
