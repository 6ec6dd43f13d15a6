//! The model's devices: GPUs of a stand-in for a driver. A process creates these devices once, with
//! one seed for all runs. Each of the two stand-ins, `super::face`, has its own copy.

use std::sync::Once;

use resident::emulation::HazardKind;
use resident::{CudaSource, Device};
use resident_programs::arrays::kernels::{AXES_MAX, NAMES};
use resident_programs::arrays::lab::Lab;
use resident_programs::arrays::{Program, World};

use super::face::{self as driver, Access, Length, Parameter, declare};

/// The process's GPUs of the stand-in, whatever the seed of a program.
const LAB: Lab = Lab { devices, hazards, pinning_device, code: Some(code) };

#[test]
fn programs_do_what_the_reference_says() {
    support::own_process!();
    crate::run(&LAB, 60);
}

/// This variable is set in a process whose devices reach the host's pageable memory.
const REACHES: &str = "RESIDENT_TEST_REACHES";

/// On devices that reach the host's memory; where it is, is not compared.
#[test]
fn programs_on_one_memory_do_what_the_reference_says() {
    support::own_process!([(REACHES, "1"), ("RESIDENT_COHERENT", "1")]);
    crate::run_made(&LAB, 60, Program::without_faults);
}

const NUMBER: Parameter = Parameter::Scalar { len_bytes: 4 };
const LENGTH: Parameter = Parameter::Scalar { len_bytes: 8 };

fn opened() -> Vec<Device> {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        // Pages so short that arrays of the programs have many.
        let settings = driver::settings().devices(3).page_bytes(64).seed(1);
        let reaches = std::env::var_os(REACHES).is_some();
        let settings = if reaches { settings.reaches_pageable() } else { settings };
        driver::load(settings).expect("the stand-in loads");
        driver::load_compiler();
        (0..=AXES_MAX).for_each(declare_kernels);
    });
    (0..3).map(|ordinal| driver::device(ordinal).expect("a device")).collect()
}

/// The devices of a run.
fn devices(world: &World) -> Vec<Device> {
    opened().into_iter().take(world.devices()).collect()
}

/// The hazards that the driver found.
fn hazards(_devices: &[Device], _pardoned: Option<HazardKind>) -> Vec<String> {
    driver::take_calls();
    [driver::take_hazards(), driver::take_notes()].concat()
}

/// The first GPU.
fn pinning_device() -> Device {
    opened().remove(0)
}

fn parameters(kernel: &str, axes: usize) -> Vec<Parameter> {
    use Access::{Read, ReadWrite, Write};
    let view = |access| Parameter::View { dimensions: axes as u32, element_bytes: 4, access };
    let flat = |access, by| Parameter::Pointer {
        access,
        length: Length::Counted { by, element_bytes: 4 },
    };
    match kernel {
        "stamp" => vec![NUMBER, view(Write)],
        "stamp_flat" => vec![NUMBER, flat(Write, 2), LENGTH],
        "mix" => vec![NUMBER, view(ReadWrite)],
        "mix_flat" => vec![NUMBER, flat(ReadWrite, 2), LENGTH],
        "copy" => vec![view(Read), view(Write)],
        "copy_flat" => vec![flat(Read, 2), flat(Write, 2), LENGTH],
        "combine" => vec![view(Read), view(Read), view(ReadWrite)],
        other => panic!("the model has no kernel {other}"),
    }
}

fn entry(kernel: &str, axes: usize) -> String {
    format!("{kernel}_{axes}")
}

/// The kernels for all numbers of dimensions.
fn code(kernel: &str, axes: usize) -> CudaSource {
    CudaSource::c(include_str!("kernels.cu")).entry(entry(kernel, axes))
}

/// Says what memory the kernels access.
fn declare_kernels(axes: usize) {
    for kernel in NAMES {
        declare(&entry(kernel, axes), &parameters(kernel, axes));
    }
}
