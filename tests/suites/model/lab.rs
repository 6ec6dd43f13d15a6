//! The devices that the programs run on.

use std::fmt::Debug;

use resident::{CudaSource, Device};

use super::contents::World;

/// The functions that each backend provides for the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lab {
    /// Whether each program has its own seed.
    pub(crate) is_seeded: bool,
    /// The devices of the program.
    pub(crate) devices: fn(&World) -> Vec<Device>,
    /// The hazards that were found since the last call.
    pub(crate) hazards: fn(&[Device]) -> Vec<String>,
    /// The device for which arrays are pinned.
    pub(crate) pinning_device: fn() -> Device,
    /// Device code of a kernel over views with this number of axes.
    pub(crate) code: fn(&str, usize) -> CudaSource,
}

/// A backend for the model, chosen by a type.
pub(crate) trait Choice: Debug + 'static {
    const LAB: Lab;
}
