//! One GPU's primary context, as two cudarc objects: one that is this library's alone, and one that
//! users share.

use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute};
use cudarc::driver::{CudaContext, CudaStream};

use super::call::{check, checked, driver_version};
use crate::backend::{BackendError, BackendErrorKind};

/// A context with what is asked of it again and again.
#[derive(Debug)]
pub(super) struct Context {
    cudarc: Arc<CudaContext>,
    /// Tracks slices as cudarc does by default. Our streams are made by it, so that it knows of
    /// them: with more streams than one it orders uses of its slices by events.
    shared: Arc<CudaContext>,
    ordinal: usize,
    capability: (u32, u32),
    driver_version: i32,
    /// What killed it, once something has.
    death: OnceLock<BackendError>,
}

impl Context {
    /// Retains the primary context of a device. The driver library is there.
    pub(super) fn open(ordinal: usize) -> Result<Self, BackendError> {
        let cudarc = checked(CudaContext::new(ordinal), "cuDevicePrimaryCtxRetain")?;
        // SAFETY: cudarc's tracking orders uses of its own slices. This context object makes none:
        // memory, order and lifetimes are this library's (`order`, `storage`), and users get
        // another object (`Device::cuda_context`).
        unsafe { cudarc.disable_event_tracking() };
        let shared = checked(CudaContext::new(ordinal), "cuDevicePrimaryCtxRetain")?;
        let capability = checked(cudarc.compute_capability(), "cuDeviceGetAttribute")?;
        let capability = (capability.0.unsigned_abs(), capability.1.unsigned_abs());
        Ok(Self {
            cudarc,
            shared,
            ordinal,
            capability,
            driver_version: driver_version()?,
            death: OnceLock::new(),
        })
    }

    pub(super) fn cudarc(&self) -> &Arc<CudaContext> {
        &self.cudarc
    }

    /// The object for users.
    pub(super) fn shared(&self) -> &Arc<CudaContext> {
        &self.shared
    }

    pub(super) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Compute capability: (9, 0) for sm_90.
    pub(super) fn capability(&self) -> (u32, u32) {
        self.capability
    }

    /// 12040 for CUDA 12.4.
    pub(super) fn driver_version(&self) -> i32 {
        self.driver_version
    }

    /// Makes it current on this thread: before every call, since other libraries in the process do
    /// the same with theirs.
    #[inline]
    pub(super) fn enter(&self) -> Result<(), BackendError> {
        if let Some(death) = self.death.get() {
            return Err(death.clone());
        }
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver is initialised since `open`, and writes one handle.
        check(unsafe { sys::cuCtxGetCurrent(&raw mut current) }, "cuCtxGetCurrent")?;
        if current == self.cudarc.cu_ctx() {
            return Ok(());
        }
        // SAFETY: the handle is that of a retained primary context, which `cudarc` keeps.
        check(unsafe { sys::cuCtxSetCurrent(self.cudarc.cu_ctx()) }, "cuCtxSetCurrent")
    }

    /// Notes an error that the context does not survive. Returns it as it is.
    pub(super) fn note<T>(&self, outcome: Result<T, BackendError>) -> Result<T, BackendError> {
        if let Err(refusal) = &outcome
            && refusal.kind == BackendErrorKind::DeviceLost
        {
            // The first one is the cause; what comes later repeats it.
            let _known = self.death.set(refusal.clone());
        }
        outcome
    }

    /// What killed it.
    pub(super) fn death(&self) -> Option<&BackendError> {
        self.death.get()
    }

    pub(super) fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32, BackendError> {
        checked(self.cudarc.attribute(attribute), "cuDeviceGetAttribute")
    }

    /// Where it is attached, as Linux writes it: `0000:3b:00.0`.
    pub(super) fn pci_address(&self) -> Option<String> {
        use CUdevice_attribute as Attribute;
        let ask = |attribute| self.attribute(attribute).ok();
        let domain = ask(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = ask(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let device = ask(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Some(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }

    /// A stream of its own, not tied to the legacy default stream.
    pub(super) fn new_stream(&self) -> Result<Arc<CudaStream>, BackendError> {
        self.enter()?;
        // What a drop of the user's left to be told is not for this call to tell.
        let untold = self.shared.check_err();
        let made = self.note(checked(self.shared.new_stream(), "cuStreamCreate"));
        self.shared.record_err(untold);
        made
    }
}
