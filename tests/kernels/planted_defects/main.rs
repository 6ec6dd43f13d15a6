//! Kernels with one planted defect each, beside their correct twins, on a device that checks them.
//! Every defect is found as the kind that its text states, but for those that [`KNOWN`] lists, and
//! nothing is found in a twin. Without a C++ compiler these tests say so and do nothing.
//!
//! | file | purpose |
//! |---|---|
//! | `text` | reads the texts from which the kernels are made |
//! | `launch` | launches one of them |
//! | the others | the texts, by what is wrong |

mod barriers;
mod blocks;
mod bounds;
mod contents;
mod inputs;
mod launch;
mod numbers;
mod records;
mod shared_bounds;
mod shared_races;
mod steps;
mod text;
mod views;
mod warps;

use resident::emulation::{Finding, FindingKind};
use resident::{CudaSource, Device, Emulation, Error};

use crate::text::{Text, texts};

/// The defects that are not found, with the reason. One that is listed must not be found.
const KNOWN: [(&str, &str); 2] = [
    ("pair_at_an_odd_place_float_1", "the compiler reads the parts of a vector one by one"),
    ("half_pair_half_1", "the compiler reads the parts of a vector one by one"),
];

/// All texts.
const ALL: [&str; 11] = [
    barriers::TEXTS,
    blocks::TEXTS,
    bounds::TEXTS,
    contents::TEXTS,
    inputs::TEXTS,
    numbers::TEXTS,
    records::TEXTS,
    shared_bounds::TEXTS,
    shared_races::TEXTS,
    steps::TEXTS,
    views::TEXTS,
];

/// So many defects must be planted, and so many of them found.
const PLANTED_MIN: usize = 250;
const FOUND_MIN: usize = 245;

#[test]
fn there_are_enough_defects_and_few_that_are_not_found() {
    let all = ALL.iter().chain([&warps::TEXTS]).flat_map(|part| texts(part));
    let names: Vec<String> = all.flat_map(|text| text.defects()).collect();
    assert!(names.len() >= PLANTED_MIN, "{} defects", names.len());
    let mut different = names.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), names.len(), "two defects have one name");
    let found = names.len() - KNOWN.len();
    assert!(found >= FOUND_MIN, "{found} defects of {} are found", names.len());
    for (known, _) in KNOWN {
        assert!(names.iter().any(|name| name == known), "{known} is no defect");
    }
}

/// Checks all kernels of some texts, which become one source.
fn check(part: &str) {
    let texts = texts(part);
    let source = CudaSource::c(text::source(&texts));
    let device = Device::emulated(Emulation::new().sanitize(true));
    let mut wrong = Vec::new();
    for text in &texts {
        for (type_name, variant) in text.variants() {
            match found_in(&device, &source, text, type_name, variant) {
                Ok(Some(found)) => wrong.extend(judge(text, type_name, variant, &found)),
                Ok(None) => return,
                Err(fault) => wrong.push(fault),
            }
        }
    }
    assert!(wrong.is_empty(), "{} kernels:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a launch finds. `None`, with a message, if there is no C++ compiler.
fn found_in(
    device: &Device,
    source: &CudaSource,
    text: &Text,
    type_name: &str,
    variant: usize,
) -> Result<Option<Vec<Finding>>, String> {
    let name = text.kernel_name(type_name, variant);
    let log = device.emulation().expect("it is emulated");
    let before = log.findings().len();
    let outcome = launch::launch(device, source, text, type_name, &name);
    let found = log.findings().split_off(before);
    match outcome {
        Err(Error::Compile { log, .. }) if log.contains("there is no C++ compiler") => {
            eprintln!("skipped: {log}");
            Ok(None)
        }
        Err(error) if !found.iter().any(|one| one.kind.is_error()) => {
            Err(format!("{name}: {error}"))
        }
        _ => Ok(Some(found)),
    }
}

/// What is wrong with that.
fn judge(text: &Text, type_name: &str, variant: usize, found: &[Finding]) -> Option<String> {
    let name = text.kernel_name(type_name, variant);
    let first = found.iter().find(|one| one.kind.is_error()).or(found.first());
    let Some(kind) = text.kind(variant) else {
        return first.map(|finding| format!("{name} is correct: {finding}"));
    };
    let is_known = KNOWN.iter().any(|(known, _)| *known == name);
    let is_found = first.is_some_and(|finding| finding.kind == kind);
    match (is_found, is_known) {
        (true, true) => Some(format!("{name} is found: remove it from the list")),
        (false, false) => Some(match first {
            None => format!("{name}: nothing is found instead of {kind:?}"),
            Some(finding) => format!("{name}: {:?} instead of {kind:?}: {finding}", finding.kind),
        }),
        _ => None,
    }
}

/// The kind with a name.
fn kind(name: &str) -> FindingKind {
    match name {
        "OutOfBounds" => FindingKind::OutOfBounds,
        "Misaligned" => FindingKind::Misaligned,
        "Uninitialised" => FindingKind::Uninitialised,
        "WriteToInput" => FindingKind::WriteToInput,
        "Race" => FindingKind::Race,
        "MissedBarrier" => FindingKind::MissedBarrier,
        "DivisionByZero" => FindingKind::DivisionByZero,
        "Unwritten" => FindingKind::Unwritten,
        "UnreadContents" => FindingKind::UnreadContents,
        other => panic!("{other} is no kind"),
    }
}
