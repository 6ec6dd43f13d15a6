//! hiprtc's options, which are clang's.

#![forbid(unsafe_code)]

use crate::{image, log};
use resident_stand_in_code::library::Kernel;
use resident_stand_in_compiler::compiler::Fault;
use resident_stand_in_compiler::options::{Code, HostOptions, Options};

/// The parsed options.
#[derive(Debug)]
pub(crate) struct HiprtcOptions {
    /// The target: `gfx90a:xnack-`.
    target: String,
    for_host: HostOptions,
}

impl Options for HiprtcOptions {
    /// A wrong option is an error of the compilation, with a log like clang's.
    fn read(options: &[String]) -> Result<Self, (Fault, String)> {
        parse(options).map_err(|log| (Fault::Compilation, log))
    }

    fn for_host(&self) -> &HostOptions {
        &self.for_host
    }

    fn log(&self, of_compiler: &str, _name: &str) -> String {
        log::of_compiler(of_compiler, &self.target)
    }

    fn code(&self, kernels: &[Kernel], library: &[u8]) -> Result<Code, String> {
        Ok(Code { bytes: image::code(&self.target, kernels, library)?, is_real: true })
    }
}

fn parse(options: &[String]) -> Result<HiprtcOptions, String> {
    const TARGETS: [&str; 2] = ["--offload-arch=", "--gpu-architecture="];
    let target = |option: &String| {
        TARGETS.iter().find_map(|prefix| Some(option.strip_prefix(prefix)?.to_owned()))
    };
    let targets: Vec<String> = options.iter().filter_map(target).collect();
    let target = match &targets[..] {
        [] => {
            let log = "Error: Please provide architecture for which code is to be generated.\n";
            return Err(log.to_owned());
        }
        [target] => target.clone(),
        [.., last] => {
            let log = "error: cannot specify -o when generating multiple output files\n";
            return Err(log.to_owned() + &log::ending(1, last));
        }
    };
    check(&target)?;
    let mut read = HiprtcOptions { target, for_host: HostOptions::default() };
    let mut rest = options.iter().map(String::as_str);
    while let Some(option) = rest.next() {
        read.add(option, &mut rest)?;
    }
    Ok(read)
}

/// Rejects an unknown target as clang does.
fn check(target: &str) -> Result<(), String> {
    image::code(target, &[], &[]).map(drop).map_err(|_| {
        format!(
            "error: invalid target ID '{target}'; format is a processor name followed by an \
             optional colon-delimited list of features followed by an enable/disable sign (e.g., \
             'gfx908:sramecc+:xnack-')\n"
        )
    })
}

impl HiprtcOptions {
    /// Adds an option, which may take its value from the next one.
    fn add<'a>(
        &mut self,
        option: &str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut value = |attached: &str| match attached {
            "" => rest.next().map(str::to_owned).ok_or_else(|| {
                format!("error: argument to '{option}' is missing (expected 1 value)\n")
            }),
            attached => Ok(attached.to_owned()),
        };
        if let Some(attached) = option.strip_prefix("-D") {
            self.for_host.define(&value(attached)?);
        } else if let Some(attached) = option.strip_prefix("-I") {
            self.for_host.include_paths.push(value(attached)?);
        } else if option == "-include" {
            self.for_host.others.extend([option.to_owned(), value("")?]);
        } else if option.starts_with("-U") || option.starts_with("-std=") {
            self.for_host.others.push(option.to_owned());
        } else if option == "-ffp-contract=fast" || option == "-ffast-math" {
            self.for_host.others.push("--fmad=true".to_owned());
        } else if !is_known(option) {
            return Err(unknown(option) + &log::ending(1, &self.target));
        }
        Ok(())
    }
}

/// Options that do not concern code for the host.
fn is_known(option: &str) -> bool {
    const WHOLE: &str = "
        -w -g -v -fgpu-rdc -ffp-contract=off -ffp-contract=on -munsafe-fp-atomics
        -fgpu-flush-denormals-to-zero -fno-gpu-flush-denormals-to-zero --hiprtc-no-builtin-header
    ";
    // `-l` is for a linker, which there is none of.
    const STARTS: &str = "
        --offload-arch= --gpu-architecture= --std= -O -W -l -fno- -mcumode -mwavefrontsize64 -mno-
    ";
    WHOLE.split_whitespace().any(|known| known == option)
        || STARTS.split_whitespace().any(|start| option.starts_with(start))
}

/// Clang's words for an option that it does not know.
fn unknown(option: &str) -> String {
    if option.starts_with("--") {
        format!("error: unsupported option '{option}'\n")
    } else {
        format!("error: unknown argument: '{option}'\n")
    }
}
