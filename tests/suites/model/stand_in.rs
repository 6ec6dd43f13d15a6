//! The model's devices: GPUs of a stand-in for a driver. A process creates these devices once, with
//! one seed for all runs. Each of the two stand-ins, `super::face`, has its own copy.

use std::sync::Once;

use proptest_state_machine::prop_state_machine;
use resident::{CudaSource, Device};

use super::face::{self as driver, Access, Length, Parameter, declare};
use crate::config;
use crate::contents::World;
use crate::kernels::AXES_MAX;
use crate::lab::{Choice, Lab};
use crate::system::Machine;

#[test]
fn programs_do_what_the_reference_says() {
    type OnDriver = Machine<StandIn>;
    support::own_process!();
    if !driver::compiles() {
        return;
    }
    prop_state_machine! {
        #![proptest_config(config(60))]

        fn programs(sequential 1..100 => OnDriver);
    }
    programs();
}

/// The process's GPUs of the stand-in, whatever the seed of a program.
#[derive(Debug)]
pub(crate) struct StandIn;

impl Choice for StandIn {
    const LAB: Lab = Lab { is_seeded: false, devices, hazards, pinning_device, code };
}

const NUMBER: Parameter = Parameter::Scalar { len_bytes: 4 };
const LENGTH: Parameter = Parameter::Scalar { len_bytes: 8 };

fn opened() -> Vec<Device> {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        driver::load(driver::settings().devices(3).seed(1)).expect("the stand-in loads");
        driver::load_compiler();
        (0..=AXES_MAX).for_each(declare_kernels);
    });
    (0..3).map(|ordinal| driver::device(ordinal).expect("a device")).collect()
}

/// The devices of a run.
fn devices(world: &World) -> Vec<Device> {
    opened().into_iter().take(world.devices).collect()
}

/// The hazards that the driver found.
fn hazards(_devices: &[Device]) -> Vec<String> {
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
    for kernel in ["stamp", "stamp_flat", "mix", "mix_flat", "copy", "copy_flat", "combine"] {
        declare(&entry(kernel, axes), &parameters(kernel, axes));
    }
}
