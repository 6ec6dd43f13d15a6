//! The model's devices: emulated devices, made for each run.

use resident::{CudaSource, Device, Emulation};

use super::contents::World;
use super::lab::{Choice, Lab};

/// Emulated devices, each program with its own seed.
#[derive(Debug)]
pub(crate) struct Seeded;

/// Emulated devices with worker threads.
#[derive(Debug)]
pub(crate) struct Workers;

impl Choice for Seeded {
    const LAB: Lab = Lab { is_seeded: true, devices, hazards, pinning_device: Device::cpu, code };
}

impl Choice for Workers {
    const LAB: Lab = Lab { is_seeded: false, ..Seeded::LAB };
}

/// The devices of a run, with a seed or with workers.
fn devices(world: &World) -> Vec<Device> {
    // Copies to and from the host are made whole, or in chunks of one or four elements.
    let pieces = [u64::MAX, 5, 16][(world.seed.unwrap_or(0) % 3) as usize];
    let emulation = || {
        world
            .seed
            .map_or_else(Emulation::new, |seed| Emulation::new().seed(seed))
            .poison(world.poison)
            .pieces(pieces)
    };
    (0..world.devices).map(|_| Device::emulated(emulation())).collect()
}

/// The hazards that the devices found.
fn hazards(devices: &[Device]) -> Vec<String> {
    let of = |device: &Device| device.emulation().expect("an emulated device").hazards();
    devices.iter().flat_map(of).map(|hazard| hazard.to_string()).collect()
}

/// There is no device code, since host bodies run.
fn code(_kernel: &str, _axes: usize) -> CudaSource {
    CudaSource::c("")
}
