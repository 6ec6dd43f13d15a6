//! Opens GPUs. Each is opened once, by its primary context, and stays open for the life of the
//! process.

use super::Device;
use crate::call_site::call_site;
use crate::error::{AtCall, Error, Result};

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
        opened(ordinal)
            .map_err(|reason| Error::no_device(format!("cuda:{ordinal}"), reason))
            .at(call_site())
    }
}

#[cfg(feature = "cuda")]
mod opening {
    use std::collections::BTreeMap;
    use std::sync::OnceLock;

    use super::Device;
    use crate::backend::cuda;
    use crate::sync::{DeviceLevel, Mutex};

    static OPENED: Mutex<BTreeMap<usize, Device>, DeviceLevel> = Mutex::new(BTreeMap::new());

    pub(in crate::device) fn opened(ordinal: usize) -> Result<Device, String> {
        let known = OPENED.lock().get(&ordinal).cloned();
        if let Some(device) = known {
            return Ok(device);
        }
        // Opening may take a second, so it is done without the lock. If two threads open a GPU, the
        // second device is dropped unused.
        let backend = cuda::open(ordinal)?;
        let device = Device::over(backend).map_err(|refusal| refusal.to_string())?;
        Ok(OPENED.lock().entry(ordinal).or_insert(device).clone())
    }

    /// All GPUs that can be used.
    pub(in crate::device) fn all() -> Vec<Device> {
        (0..cuda::count().unwrap_or(0)).filter_map(|ordinal| opened(ordinal).ok()).collect()
    }

    /// The first GPU that can be used. The search is made only once.
    pub(in crate::device) fn first() -> Option<&'static Device> {
        static FIRST: OnceLock<Option<Device>> = OnceLock::new();
        FIRST
            .get_or_init(|| {
                (0..cuda::count().unwrap_or(0)).find_map(|ordinal| opened(ordinal).ok())
            })
            .as_ref()
    }
}

#[cfg(not(feature = "cuda"))]
mod opening {
    use super::Device;

    pub(in crate::device) fn opened(_ordinal: usize) -> Result<Device, String> {
        Err("this build of resident has no CUDA backend; enable its feature `cuda`, or use \
             Device::cpu()"
            .to_owned())
    }

    pub(in crate::device) fn all() -> Vec<Device> {
        Vec::new()
    }

    pub(in crate::device) fn first() -> Option<&'static Device> {
        None
    }
}

pub(super) use opening::{all, first, opened};
