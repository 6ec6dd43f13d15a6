//! Kernels with one planted defect each, and correct ones, on a device that checks them. Every
//! defect is found as the kind that its text states, and on the line that its text states if it
//! does, but for those that [`known`] lists; nothing is found in their correct twins.
//!
//! | file | purpose |
//! |---|---|
//! | `text` | reads the texts from which the kernels are made |
//! | `launch` | launches one of them |
//! | `judge` | launches all of a file, whose kernels are one source, and judges what is found |
//! | `elsewhere` | launches one where another checker looks for its defect |
//! | `reports`, `left_out` | what findings say and do; what one launch leaves out for another |
//! | `chains` | what is found in steps of chains |
//! | the others | the texts, by what is wrong |

support::record_launches!();

mod barriers;
mod blocks;
mod bounds;
mod chains;
mod contents;
mod correct;
mod elsewhere;
mod inputs;
mod judge;
mod launch;
mod left_out;
mod memory_of_threads;
mod numbers;
mod races;
mod records;
mod reports;
mod shared_bounds;
mod shared_races;
mod sharing;
mod steps;
mod text;
mod views;
mod warps;

use resident::emulation::{Finding, FindingKind};
use resident::{Arguments, CudaSource, Device, Emulation, Grid, Kernel, Signature};

use crate::judge::check_texts;
use crate::text::texts;

/// The defects that are not found, with the reason. One that is listed must not be found.
const KNOWN: [(&str, &str); 0] = [];

/// The same where `RESIDENT_CXX` names Clang (`docs/guide/from_a_loop_to_a_gpu.md` lists them).
const KNOWN_OF_CLANG: [(&str, &str); 1] =
    [("field_that_is_not_set_int_1", "Clang warns of variables, not of their fields")];

/// Those of the compiler that the tests have.
fn known() -> &'static [(&'static str, &'static str)] {
    let named = std::env::var("RESIDENT_CXX").unwrap_or_default();
    if named.contains("clang") { &KNOWN_OF_CLANG } else { &KNOWN }
}

/// All texts.
const ALL: [&str; 16] = [
    barriers::TEXTS,
    blocks::TEXTS,
    bounds::TEXTS,
    contents::TEXTS,
    correct::TEXTS,
    inputs::TEXTS,
    memory_of_threads::TEXTS,
    numbers::TEXTS,
    races::TEXTS,
    records::TEXTS,
    shared_bounds::TEXTS,
    shared_races::TEXTS,
    sharing::TEXTS,
    steps::TEXTS,
    views::TEXTS,
    warps::TEXTS,
];

/// So many defects must be planted, and so many of them found.
const PLANTED_MIN: usize = 490;
const FOUND_MIN: usize = 488;

#[test]
fn there_are_enough_defects_and_few_that_are_not_found() {
    let all = ALL.iter().flat_map(|part| texts(part));
    let names: Vec<String> = all.flat_map(|text| text.defects()).collect();
    assert!(names.len() >= PLANTED_MIN, "{} defects", names.len());
    let mut different = names.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), names.len(), "two defects have one name");
    let found = names.len() - known().len();
    assert!(found >= FOUND_MIN, "{found} defects of {} are found", names.len());
    for (known, _) in known() {
        assert!(names.iter().any(|name| name == known), "{known} is no defect");
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
        "InvalidMask" => FindingKind::InvalidMask,
        "DivisionByZero" => FindingKind::DivisionByZero,
        "UninitialisedLocal" => FindingKind::UninitialisedLocal,
        "Unwritten" => FindingKind::Unwritten,
        "UnreadContents" => FindingKind::UnreadContents,
        other => panic!("{other} is no kind"),
    }
}

/// A device that checks kernels.
fn device() -> Device {
    Device::emulated(Emulation::new().sanitize(true))
}

/// Launches a kernel with a body in CUDA C, checked. Returns what was found, notes included.
fn check<S: Signature>(
    source: impl Into<CudaSource>,
    grid: Grid,
    arguments: impl Arguments<S>,
) -> Vec<Finding> {
    let device = device();
    // SAFETY: the device ends threads before they access what they must not.
    let kernel = unsafe { Kernel::<S>::new("kernel").cuda(source) };
    kernel.prepare(&device).unwrap_or_else(|error| panic!("{error}"));
    kernel.launch_on(&device.stream(), grid, arguments).expect("it is queued");
    let outcome = device.synchronize();
    let findings = device.emulation().expect("it is emulated").findings();
    let error = findings.iter().find(|finding| finding.kind.is_error());
    match (error, outcome) {
        (None, outcome) => outcome.unwrap_or_else(|error| panic!("{error}")),
        (Some(finding), outcome) => {
            let text = outcome.expect_err("the launch fails").to_string();
            assert!(text.contains(&finding.to_string()), "{text}");
        }
    }
    findings
}
