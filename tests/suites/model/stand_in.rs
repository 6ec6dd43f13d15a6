//! The model's devices: GPUs of the stand-in driver. A process creates these devices once, with one
//! seed for all runs.

use std::sync::Once;

use resident::{CudaSource, Device};
use resident_stand_in::{self as driver, Access, Length, Parameter, Settings, View, register};

use super::contents::World;
use super::kernels::{AXES_MAX, combined, mixed};
use super::lab::{Choice, Lab};

/// The process's GPUs of the stand-in driver, whatever the seed of a program.
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
        driver::load(Settings::new().devices(3).seed(1)).expect("the stand-in driver loads");
        (0..=AXES_MAX).for_each(register_sized);
        register_flat();
    });
    (0..3).map(|ordinal| Device::cuda(ordinal).expect("a device")).collect()
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

/// A kernel as PTX: its parameters, without code.
fn code(kernel: &str, axes: usize) -> CudaSource {
    let slot = |(index, parameter): (usize, &Parameter)| match parameter {
        Parameter::View { dimensions, .. } => {
            format!(".param .align 8 .b8 p{index}[{}]", 8 + 16 * dimensions)
        }
        Parameter::Scalar { len_bytes: 4 } => format!(".param .u32 p{index}"),
        _ => format!(".param .u64 p{index}"),
    };
    let slots: Vec<String> = parameters(kernel, axes).iter().enumerate().map(slot).collect();
    let (head, entry) = (".version 7.0\n.target sm_50\n.address_size 64\n", entry(kernel, axes));
    CudaSource::ptx(format!(
        "{head}.visible .entry {entry}(\n{}\n)\n{{\nret;\n}}\n",
        slots.join(",\n")
    ))
    .entry(entry)
}

/// Changes the elements in index order.
fn change(view: &View, new: impl Fn(usize, u32) -> u32) {
    (0..view.len()).for_each(|index| view.set(index, new(index, view.get(index))));
}

fn register_sized(axes: usize) {
    let named = |kernel: &str| (entry(kernel, axes), parameters(kernel, axes));
    let (name, parameters) = named("stamp");
    register(&name, &parameters, |launch| {
        let value: u32 = launch.scalar(0);
        change(&launch.view(1), |index, _| value + index as u32);
        Ok(())
    });
    let (name, parameters) = named("mix");
    register(&name, &parameters, |launch| {
        let value: u32 = launch.scalar(0);
        change(&launch.view(1), |_, x| mixed(x, value));
        Ok(())
    });
    let (name, parameters) = named("copy");
    register(&name, &parameters, |launch| {
        let from = launch.view(0);
        change(&launch.view(1), |index, _| from.get(index));
        Ok(())
    });
    let (name, parameters) = named("combine");
    register(&name, &parameters, |launch| {
        let (x, y) = (launch.view(0), launch.view(1));
        change(&launch.view(2), |index, z| combined(x.get(index), y.get(index), z));
        Ok(())
    });
}

fn register_flat() {
    for axes in 0..=AXES_MAX {
        register(&entry("stamp_flat", axes), &parameters("stamp_flat", axes), |launch| {
            let value: u32 = launch.scalar(0);
            // SAFETY: the registration declares that the kernel writes the memory, and the driver's
            // hazard check finds other accesses.
            unsafe { launch.slice_mut::<u32>(1) }
                .iter_mut()
                .zip(value..)
                .for_each(|(x, value)| *x = value);
            Ok(())
        });
        register(&entry("mix_flat", axes), &parameters("mix_flat", axes), |launch| {
            let value: u32 = launch.scalar(0);
            // SAFETY: as above.
            unsafe { launch.slice_mut::<u32>(1) }.iter_mut().for_each(|x| *x = mixed(*x, value));
            Ok(())
        });
        register(&entry("copy_flat", axes), &parameters("copy_flat", axes), |launch| {
            // SAFETY: as above, but the kernel reads the memory.
            let from = unsafe { launch.slice::<u32>(0) };
            // SAFETY: as above.
            unsafe { launch.slice_mut::<u32>(1) }.copy_from_slice(from);
            Ok(())
        });
    }
}
