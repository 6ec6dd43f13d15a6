//! The sources that other suites have loaded on embedded devices compile for GPUs too: for two of
//! NVIDIA's architectures by the NVRTC that `RESIDENT_NVRTC` names, and for one of AMD's by the
//! hiprtc that `RESIDENT_HIPRTC` names. What does not must be listed here, with the reason.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use rayon::prelude::*;
use resident_ptx_interpreter::recorded::Source;

use crate::compile::{header_options, program};
use crate::recorded;

/// A kernel that does not compile. An entry that no source needs is a failure.
struct Known {
    /// The start of the architecture's name.
    architecture: &'static str,
    /// What its source has.
    text: &'static str,
    /// What the compiler says.
    log: &'static str,
    /// Why.
    _reason: &'static str,
}

const KNOWN: [Known; 10] = [
    Known {
        architecture: "sm_",
        text: "mma.h",
        log: "\"crt/mma.h\"",
        _reason: "Python's packages lack a file of this header; the host refuses what it declares",
    },
    Known {
        architecture: "sm_",
        text: "__builtin_memcpy",
        log: "\"__builtin_memcpy\" is undefined",
        _reason: "the declarations for AMD's compilers name what only they and the host's have",
    },
    Known {
        architecture: "sm_",
        text: "__builtin_va_list",
        log: "\"__builtin_va_list\" is undefined",
        _reason: "kernels that end a launch name builtins that only the host's compilers have",
    },
    Known {
        architecture: "sm_",
        text: "void memset(float",
        log: "cannot determine which instance of overloaded function \"memset\"",
        _reason: "the kernel has the name of one of NVRTC's functions",
    },
    Known {
        architecture: "sm_",
        text: "void all(int *x)",
        log: "cannot determine which instance of overloaded function \"all\"",
        _reason: "the kernel that is refused on the host has the name of one of NVRTC's functions",
    },
    Known {
        architecture: "gfx90a",
        text: "_sync(",
        log: "the wavefronts of this GPU have 64 lanes, and this mask names 32 of them",
        _reason: "the kernel is for warps of 32 lanes",
    },
    Known {
        architecture: "gfx90a",
        text: "cudaTextureObject_t texture",
        log: "unknown type name 'cudaTextureObject_t'",
        _reason: "the kernels that are refused on the host use textures and PTX",
    },
    Known {
        architecture: "gfx90a",
        text: "__fmul_rd",
        log: "undeclared identifier '__fmul_rd'",
        _reason: "AMD's compilers round to the nearest only",
    },
    Known {
        architecture: "gfx90a",
        text: "__dadd_##suffix",
        log: "undeclared identifier '__dadd_rd'",
        _reason: "as above",
    },
    Known {
        architecture: "gfx90a",
        text: "int n = WIDTH",
        log: "NAME_EXPRESSION_NOT_VALID",
        _reason: "hiprtc 5 finds no instance of a template with default arguments",
    },
];

#[test]
fn recorded_sources_compile_for_gpus() {
    let set = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    let variable = support::recording::VARIABLE;
    let architectures = architectures(|variable| set(variable).is_some());
    let (Some(folder), false) = (set(variable), architectures.is_empty()) else {
        eprintln!("skipped: {variable}, and RESIDENT_NVRTC or RESIDENT_HIPRTC, are not set");
        return;
    };
    let loaded = recorded(Path::new(&folder), "source");
    let sources = loaded.iter().map(|one| &one.source).filter(|source| has_its_files(source));
    let sources: HashSet<&Source> = sources.collect();
    assert!(!sources.is_empty(), "{} has recorded sources", folder.display());
    let jobs: Vec<(&Source, &str)> = sources
        .iter()
        .flat_map(|source| architectures.iter().map(move |architecture| (*source, *architecture)))
        .collect();
    let refused: Vec<_> = jobs
        .par_iter()
        .filter_map(|(source, architecture)| {
            let log = compile(source, architecture).err()?;
            Some((*source, *architecture, log))
        })
        .collect();
    let (count, of) = (sources.len(), architectures.join(", "));
    println!("{count} sources for {of}: {} of them refused", refused.len());
    let faults = faults(&refused, &architectures);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Whether the source needs no files but those that are still there: a test may remove its own.
fn has_its_files(source: &Source) -> bool {
    let files = source.includes.iter().chain(&source.file);
    files.into_iter().all(|path| Path::new(path).exists())
}

/// Those whose compiler is named.
fn architectures(is_set: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut architectures = Vec::new();
    if is_set("RESIDENT_NVRTC") {
        architectures.extend(["sm_80", "sm_90"]);
    }
    if cfg!(feature = "hip") && is_set("RESIDENT_HIPRTC") {
        architectures.push("gfx90a");
    }
    architectures
}

fn compile(source: &Source, architecture: &str) -> Result<(), String> {
    let is_nvidias = architecture.starts_with("sm_");
    let headers = if is_nvidias { header_options() } else { Vec::new() };
    let options = source.options.iter().cloned().chain(headers);
    resident_gpu::compiles_for(&program(source, &[], options), architecture)
}

/// Each refusal that is not listed, one for each kernel and log, and each entry that is not needed.
fn faults(refused: &[(&Source, &str, String)], architectures: &[&str]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut faults = BTreeMap::new();
    for (source, architecture, log) in refused {
        let covers = |known: &Known| {
            architecture.starts_with(known.architecture)
                && source.text.contains(known.text)
                && log.contains(known.log)
        };
        match KNOWN.iter().position(covers) {
            Some(index) => drop(seen.insert(index)),
            None => {
                let text = format!("{} for {architecture}: {log}", source.kernel);
                faults.entry((&source.kernel, log)).or_insert(text);
            }
        }
    }
    let unneeded = KNOWN.iter().enumerate().filter(|(index, known)| {
        let is_tried = architectures.iter().any(|one| one.starts_with(known.architecture));
        is_tried && !seen.contains(index)
    });
    let unneeded = unneeded.map(|(_, known)| {
        format!("`{}` for {} compiles: remove it from the list", known.text, known.architecture)
    });
    faults.into_values().chain(unneeded).collect()
}
