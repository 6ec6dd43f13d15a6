//! One GPU's primary context.

use std::fmt;
use std::sync::OnceLock;

#[cfg(feature = "cuda")]
use super::cudarc_contexts::CudarcContexts;
use super::driver::{DeviceAttribute, Driver, Place, Status, status};
use resident_backend::fork::ForkMark;
use resident_backend::{BackendError, BackendErrorKind, BodyKind, DeviceKind};

/// A primary context, with frequently used attributes.
#[derive(Debug)]
pub(super) struct Context {
    driver: &'static Driver,
    place: Place,
    /// cudarc's objects of the context, on NVIDIA GPUs. They retain it.
    #[cfg(feature = "cuda")]
    cudarc: Option<CudarcContexts>,
    ordinal: usize,
    architecture: Architecture,
    /// For a driver that does not refuse calls in forked children.
    process: Option<ForkMark>,
    /// The error that destroyed the context, if one did.
    death: OnceLock<BackendError>,
}

/// What machine code is made for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Architecture {
    /// `sm_90`; or for an AMD GPU, with its features, `gfx90a:sramecc+:xnack-`.
    pub(super) name: String,
    /// The compute capability of an NVIDIA GPU: 90 for sm_90.
    pub(super) capability: Option<u32>,
}

impl Context {
    /// The context of a device, which exists.
    pub(super) fn open(driver: &'static Driver, ordinal: usize) -> Result<Self, BackendError> {
        match driver.vendor.kind {
            #[cfg(feature = "hip")]
            DeviceKind::Hip => Self::open_hip(driver, ordinal),
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => Self::open_cuda(driver, ordinal),
            _ => Err(driver.lacks(["cuDevicePrimaryCtxRetain", "hipSetDevice"])),
        }
    }

    /// Retains the primary context of an NVIDIA GPU.
    #[cfg(feature = "cuda")]
    fn open_cuda(driver: &'static Driver, ordinal: usize) -> Result<Self, BackendError> {
        let _relaxed = super::capture_mode::Relaxed::enter(driver);
        let device = driver.device_number(ordinal)?;
        let cudarc = CudarcContexts::open(ordinal)?;
        let place = Place { device, token: cudarc.own().cu_ctx().expose_provenance() as u64 };
        let capability = super::driver::cuda::capability(driver, device)?;
        let name = format!("sm_{capability}");
        Ok(Self {
            driver,
            place,
            cudarc: Some(cudarc),
            ordinal,
            architecture: Architecture { name, capability: Some(capability) },
            process: None,
            death: OnceLock::new(),
        })
    }

    /// The context of an AMD GPU. HIP has no other contexts than the devices' primary ones, which
    /// live as long as the process.
    #[cfg(feature = "hip")]
    fn open_hip(driver: &'static Driver, ordinal: usize) -> Result<Self, BackendError> {
        let device = driver.device_number(ordinal)?;
        let place = Place { device, token: u64::from(device.unsigned_abs()) };
        let name = super::driver::hip::architecture(driver, device)?;
        driver.set_current(place)?;
        Ok(Self {
            driver,
            place,
            #[cfg(feature = "cuda")]
            cudarc: None,
            ordinal,
            architecture: Architecture { name, capability: None },
            // `hipGetDevice` only reads a variable of the thread.
            process: Some(ForkMark::new()),
            death: OnceLock::new(),
        })
    }

    #[inline]
    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    #[inline]
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// cudarc's objects of the context, on NVIDIA GPUs.
    #[cfg(feature = "cuda")]
    pub(super) fn cudarc(&self) -> Option<&CudarcContexts> {
        self.cudarc.as_ref()
    }

    pub(super) fn kind(&self) -> DeviceKind {
        self.driver.vendor.kind
    }

    /// The bodies of kernels that the device runs.
    pub(super) fn body_kind(&self) -> BodyKind {
        match self.kind() {
            DeviceKind::Hip => BodyKind::Hip,
            _ => BodyKind::Cuda,
        }
    }

    pub(super) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The device's name: `cuda:0`.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.driver.vendor.prefix, self.ordinal)
    }

    pub(super) fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Makes the context current on this thread. Call it before each driver call, because other
    /// libraries in the process change the current context too.
    #[inline(always)]
    pub(super) fn make_current(&self) -> Result<(), BackendError> {
        if self.death.get().is_some() || self.is_forked() {
            return self.refuse();
        }
        let mut current = 0_u64;
        // SAFETY: `open` initialised the driver, which writes at most 64 bits.
        let outcome = unsafe { (self.driver.current.function)(&raw mut current) };
        if outcome == status::SUCCESS && current == self.place.token {
            return Ok(());
        }
        self.change_current(outcome)
    }

    /// Whether this process is a forked child in which the driver would wait for ever.
    #[inline]
    fn is_forked(&self) -> bool {
        self.process.as_ref().is_some_and(|process| !process.is_own())
    }

    #[cold]
    fn refuse(&self) -> Result<(), BackendError> {
        let forked = || self.driver.current.error(status::NOT_INITIALIZED);
        Err(self.death.get().cloned().unwrap_or_else(forked))
    }

    /// Makes the context current, after the driver was asked which one is.
    #[inline(never)]
    fn change_current(&self, asked: Status) -> Result<(), BackendError> {
        self.driver.current.check(asked).and_then(|()| self.driver.set_current(self.place))
    }

    /// Returns the outcome of a driver call, and stores an error that destroys the context.
    #[inline]
    pub(super) fn record_death<T>(
        &self,
        outcome: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        if let Err(error) = &outcome {
            self.store_death(error);
        }
        outcome
    }

    #[cold]
    fn store_death(&self, error: &BackendError) {
        if error.kind == BackendErrorKind::DeviceLost {
            // The first error is the cause; later ones repeat it.
            let _known = self.death.set(error.clone());
        }
    }

    /// The error that destroyed the context, if there is one.
    pub(super) fn death(&self) -> Option<&BackendError> {
        self.death.get()
    }

    pub(super) fn attribute(&self, attribute: DeviceAttribute) -> Result<i32, BackendError> {
        self.driver.attribute(self.place.device, attribute)
    }

    /// Whether the device registers host memory that the process may only read.
    pub(super) fn registers_read_only_memory(&self) -> bool {
        self.driver.registers_read_only_memory(self.place.device)
    }

    /// The device's PCI address as Linux writes it: `0000:3b:00.0`.
    pub(super) fn pci_address(&self) -> Option<String> {
        let number = |attribute| self.attribute(attribute).ok();
        let domain = number(DeviceAttribute::PciDomain)?;
        let bus = number(DeviceAttribute::PciBus)?;
        let device = number(DeviceAttribute::PciDevice)?;
        Some(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }

    /// The numbers of the least and of the greatest priority of a stream.
    pub(super) fn stream_priorities(&self) -> Result<(i32, i32), BackendError> {
        self.make_current()?;
        let (mut least, mut greatest) = (0, 0);
        let ask = &self.driver.stream_priority_range;
        // SAFETY: the context is current; the driver writes two numbers.
        let outcome = unsafe { (ask.function)(&raw mut least, &raw mut greatest) };
        self.record_death(ask.check(outcome))?;
        Ok((least, greatest))
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Another context than the library's own: makes it current for other code.
#[cfg(feature = "cuda")]
pub(super) fn make_current(
    driver: &Driver,
    context: &cudarc::driver::CudaContext,
) -> Result<(), BackendError> {
    let token = context.cu_ctx().expose_provenance() as u64;
    // cudarc's own function would return an error that a drop stored in the context.
    driver.set_current(Place { device: 0, token })
}
