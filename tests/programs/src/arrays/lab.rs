//! The devices that the programs run on.

use resident::emulation::HazardKind;
use resident::{CudaSource, Device, Emulation, Fault};

use super::World;
use super::value::Large;

/// The functions that each backend provides for the programs.
#[derive(Clone, Copy, Debug)]
pub struct Lab {
    /// The devices of a program: [`World::devices`] of them.
    pub devices: fn(&World) -> Vec<Device>,
    /// The hazards that were found since the last call, except those of a kind that the program
    /// asked for.
    pub hazards: fn(&[Device], Option<HazardKind>) -> Vec<String>,
    /// The device for which arrays are pinned.
    pub pinning_device: fn() -> Device,
    /// Device code of a kernel over views with this number of axes, where host bodies do not run.
    pub code: Option<fn(&str, usize) -> CudaSource>,
}

impl Lab {
    /// Emulated devices, each program with its own seed.
    pub const SEEDED: Self =
        Self { devices: seeded, hazards, pinning_device: Device::cpu, code: None };

    /// Emulated devices with worker threads, on which no calls fail.
    pub const WORKERS: Self = Self { devices: with_workers, ..Self::SEEDED };
}

fn seeded(world: &World) -> Vec<Device> {
    let fault = |number: usize| {
        let own = world.faults().filter(move |failing| failing.device() == number);
        own.map(|failing| {
            let fault = Fault::nth(u64::from(failing.call));
            if failing.late { fault.late() } else { fault }
        })
    };
    let emulation = |number| fault(number).fold(emulation(world).seed(world.seed), Emulation::fail);
    (0..world.devices()).map(|number| Device::emulated(emulation(number))).collect()
}

fn with_workers(world: &World) -> Vec<Device> {
    (0..world.devices()).map(|_| Device::emulated(emulation(world))).collect()
}

fn emulation(world: &World) -> Emulation {
    // Copies to and from the host are made whole, or in chunks of one or four elements.
    let element = if world.large { size_of::<Large>() as u64 / 4 } else { 1 };
    let pieces = [u64::MAX, 5 * element, 16 * element][usize::from(world.pieces % 3)];
    // Most arrays have memory by pages, which begin and end within elements, or none has.
    let page_bytes = [4, 0, 7, 1][(world.seed % 4) as usize] * element;
    let emulation = Emulation::new().poison(world.poison).pieces(pieces).page_bytes(page_bytes);
    match world.limit() {
        Some(bytes) => emulation.memory(bytes),
        None => emulation,
    }
}

fn hazards(devices: &[Device], pardoned: Option<HazardKind>) -> Vec<String> {
    let of = |device: &Device| device.emulation().expect("an emulated device").hazards();
    let found = devices.iter().flat_map(of).filter(|hazard| Some(hazard.kind) != pardoned);
    found.map(|hazard| hazard.to_string()).collect()
}
