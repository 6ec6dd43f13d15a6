//! GPUs: opened once and kept for the life of the process, as their contexts are.

use super::Device;
use crate::error::{Error, Result};

impl Device {
    /// The NVIDIA GPU with this number, as the driver counts (`CUDA_VISIBLE_DEVICES` renumbers
    /// them). It is opened at the first call and kept; its primary context is the one that the CUDA
    /// runtime, cuBLAS and PyTorch use too.
    ///
    /// Calls of this library leave that context current on the thread, as cudarc's do: code on the
    /// CUDA runtime that works on another GPU sets its device again.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// match Device::cuda(0) {
    ///     Ok(gpu) => println!("{gpu} is there"),
    ///     Err(reason) => println!("{reason}"),      // what was looked for, what was found, what to do
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if there is no driver, no such GPU, or one that cannot be used, and in
    /// builds without feature `cuda`.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        opened(ordinal).map_err(|reason| Error::no_device(format!("cuda:{ordinal}"), reason))
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
        // Not under the lock: it may take a second. Of two threads that open one, one wins, and the
        // other's is dropped unused.
        let backend = cuda::open(ordinal)?;
        let device = Device::over(backend).map_err(|refusal| refusal.to_string())?;
        Ok(OPENED.lock().entry(ordinal).or_insert(device).clone())
    }

    /// All GPUs that can be used.
    pub(in crate::device) fn all() -> Vec<Device> {
        (0..cuda::count().unwrap_or(0)).filter_map(|ordinal| opened(ordinal).ok()).collect()
    }

    /// The first GPU that can be used, looked for once.
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
        Err("this build of resident has no CUDA backend; enable its feature `cuda`, or use Device::cpu()".to_owned())
    }

    pub(in crate::device) fn all() -> Vec<Device> {
        Vec::new()
    }

    pub(in crate::device) fn first() -> Option<&'static Device> {
        None
    }
}

pub(super) use opening::{all, first, opened};
