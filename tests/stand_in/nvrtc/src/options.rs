//! NVRTC's options, and its versions.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicI32, Ordering};

use crate::{image, log};
use resident_stand_in_code::library::Kernel;
use resident_stand_in_compiler::compiler::Fault;
use resident_stand_in_compiler::options::{Code, HostOptions, Options};

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
pub(crate) struct NvrtcOptions {
    pub(crate) architecture: i32,
    /// Whether the architecture is real (`sm_90`) rather than virtual (`compute_90`), so that there
    /// is a cubin.
    pub(crate) is_real: bool,
    /// Whether the output is code that a driver can load.
    pub(crate) has_code: bool,
    for_host: HostOptions,
}

impl Options for NvrtcOptions {
    fn read(options: &[String]) -> Result<Self, (Fault, String)> {
        parse(options).map_err(|log| (Fault::InvalidOption, log))
    }

    fn for_host(&self) -> &HostOptions {
        &self.for_host
    }

    fn log(&self, of_compiler: &str, name: &str) -> String {
        log::of_compiler(of_compiler, name)
    }

    fn code(&self, kernels: &[Kernel], library: &[u8]) -> Result<Code, String> {
        Ok(image::code(self, kernels, library))
    }
}

/// Parses options in both forms, `--name=value` and `--name value`; macros and paths also as
/// `-Dname` and `-I path`. Surrounding spaces are ignored.
fn parse(options: &[String]) -> Result<NvrtcOptions, String> {
    let mut read = NvrtcOptions {
        architecture: architectures()[0],
        is_real: false,
        has_code: true,
        for_host: HostOptions::default(),
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
            "--include-path" | "-I" => {
                read.for_host.include_paths.push(follows().ok_or_else(wrong)?);
            }
            "--define-macro" | "-D" => read.for_host.define(&follows().ok_or_else(wrong)?),
            _ if name.starts_with("-D") => read.for_host.define(&name[2..]),
            _ if name.starts_with("-I") => read.for_host.include_paths.push(name[2..].to_owned()),
            _ if is_known(name) => read.for_host.others.push(option.to_owned()),
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

/// Whether this is an option of NVRTC.
fn is_known(name: &str) -> bool {
    const KNOWN: &str = "
        --std -std --use_fast_math -use_fast_math --fmad -fmad --ftz -ftz --prec-sqrt --prec-div
        --maxrregcount -maxrregcount --generate-line-info -lineinfo --device-debug -G --dopt -dopt
        --extra-device-vectorization --device-as-default-execution-space -default-device
        --relocatable-device-code -rdc --restrict -restrict --disable-warnings -w --diag-suppress
        --diag-error --ptxas-options -Xptxas --no-source-include --time
    ";
    KNOWN.split_whitespace().any(|known| known == name)
}
