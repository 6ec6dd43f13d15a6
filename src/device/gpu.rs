//! Opens GPUs. Each is opened once, by its primary context, and stays open for the life of the
//! process.

use super::Device;
use crate::error::{AtCall, Error, Result};
use resident_backend::DeviceKind;
use resident_backend::call_site::call_site;

impl Device {
    /// The NVIDIA GPU with this driver number (`CUDA_VISIBLE_DEVICES` renumbers GPUs). The first
    /// call opens it. The library uses the GPU's primary context, like the CUDA runtime, cuBLAS and
    /// PyTorch.
    ///
    /// Like cudarc, this library leaves that context current on the thread: code that uses another
    /// GPU through the CUDA runtime must set its device again.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// match Device::cuda(0) {
    ///     Ok(gpu) => println!("{gpu} is there"),
    ///     Err(reason) => println!("{reason}"), // what was looked for and found, and what to do
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if there is no driver or no such GPU, if the GPU cannot be used, and in
    /// builds without feature `cuda`.
    #[track_caller]
    pub fn cuda(ordinal: usize) -> Result<Self> {
        opened(DeviceKind::Cuda, ordinal)
            .map_err(|reason| Error::no_device(format!("cuda:{ordinal}"), reason))
            .at(call_site())
    }

    /// The AMD GPU with this number in HIP (`HIP_VISIBLE_DEVICES` renumbers GPUs). The first call
    /// opens it. The library uses the GPU's primary context, like the HIP runtime and PyTorch for
    /// ROCm, and leaves the device current on the thread (`hipSetDevice`).
    ///
    /// Needs the feature `hip`, and AMD's runtime when the program runs: the file that
    /// `RESIDENT_HIP` names, else `libamdhip64` from the system's library folders.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// match Device::hip(0) {
    ///     Ok(gpu) => println!("{gpu} is there"),
    ///     Err(reason) => println!("{reason}"), // what was looked for and found, and what to do
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if there is no runtime or no such GPU, if the GPU cannot be used, and in
    /// builds without feature `hip`.
    #[track_caller]
    pub fn hip(ordinal: usize) -> Result<Self> {
        opened(DeviceKind::Hip, ordinal)
            .map_err(|reason| Error::no_device(format!("hip:{ordinal}"), reason))
            .at(call_site())
    }
}

/// The kinds of GPUs, in the order in which they are listed.
const KINDS: [DeviceKind; 2] = [DeviceKind::Cuda, DeviceKind::Hip];

#[cfg(any(feature = "cuda", feature = "hip"))]
mod opening {
    use std::collections::BTreeMap;
    use std::sync::OnceLock;

    use super::{Device, DeviceKind, KINDS};
    use resident_backend::sync::{DeviceLevel, Mutex};

    /// By kind and ordinal.
    static OPENED: Mutex<BTreeMap<(usize, usize), Device>, DeviceLevel> =
        Mutex::new(BTreeMap::new());

    pub(in crate::device) fn opened(kind: DeviceKind, ordinal: usize) -> Result<Device, String> {
        let key = (kind as usize, ordinal);
        let known = OPENED.lock().get(&key).cloned();
        if let Some(device) = known {
            return Ok(device);
        }
        // Opening may take a second, so it is done without the lock. If two threads open a GPU, the
        // second device is dropped unused.
        let backend = resident_gpu::open(kind, ordinal)?;
        let device = Device::over(backend).map_err(|error| error.to_string())?;
        let opened = OPENED.lock().entry(key).or_insert_with(|| device.clone()).clone();
        if opened == device {
            device.time_if_asked();
        }
        Ok(opened)
    }

    /// All GPUs that can be used: NVIDIA's, then AMD's.
    pub(in crate::device) fn all() -> Vec<Device> {
        usable().collect()
    }

    /// The first GPU that can be used. The search is made only once.
    pub(in crate::device) fn first() -> Option<&'static Device> {
        static FIRST: OnceLock<Option<Device>> = OnceLock::new();
        FIRST.get_or_init(|| usable().next()).as_ref()
    }

    fn usable() -> impl Iterator<Item = Device> {
        let of_kind = |kind| {
            let ordinals = 0..resident_gpu::count(kind).unwrap_or(0);
            ordinals.filter_map(move |ordinal| opened(kind, ordinal).ok())
        };
        KINDS.into_iter().flat_map(of_kind)
    }
}

#[cfg(not(any(feature = "cuda", feature = "hip")))]
mod opening {
    use super::{Device, DeviceKind, KINDS};

    pub(in crate::device) fn opened(kind: DeviceKind, _ordinal: usize) -> Result<Device, String> {
        Err(kind.no_backend())
    }

    pub(in crate::device) fn all() -> Vec<Device> {
        KINDS.into_iter().filter_map(|kind| opened(kind, 0).ok()).collect()
    }

    pub(in crate::device) fn first() -> Option<&'static Device> {
        None
    }
}

pub(super) use opening::{all, first, opened};
