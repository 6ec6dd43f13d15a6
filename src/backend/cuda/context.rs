//! One GPU's primary context, as two cudarc objects: one for this library, one for other code.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute};
use cudarc::driver::{CudaContext, CudaStream};

use super::call::{check, checked, driver_version};
use super::capture_mode::Relaxed;
use crate::backend::{BackendError, BackendErrorKind};

/// A primary context, with frequently used attributes.
#[derive(Debug)]
pub(super) struct Context {
    cudarc: Arc<CudaContext>,
    /// The object with cudarc's default slice tracking. It also creates the library's streams, so
    /// that it counts them: only with more than one stream does cudarc order uses of its slices by
    /// events.
    shared: Arc<CudaContext>,
    /// The first stream, until it is taken.
    first_stream: Mutex<Option<Arc<CudaStream>>>,
    ordinal: usize,
    capability: (u32, u32),
    driver_version: i32,
    /// The error that destroyed the context, if one did.
    death: OnceLock<BackendError>,
}

impl Context {
    /// Retains the primary context of a device. The caller checked that the driver is present.
    pub(super) fn open(ordinal: usize) -> Result<Self, BackendError> {
        let _relaxed = Relaxed::enter();
        let cudarc = checked(CudaContext::new(ordinal), "cuDevicePrimaryCtxRetain")?;
        // SAFETY: cudarc's tracking orders uses of cudarc's slices, and no slice is made from this
        // object: the library manages memory, order and lifetimes itself (`ordering`, `storage`),
        // and other code gets the other object (`Device::cuda_context`).
        unsafe { cudarc.disable_event_tracking() };
        let (shared, first_stream) = shared_context(ordinal)?;
        let (major, minor) = checked(cudarc.compute_capability(), "cuDeviceGetAttribute")?;
        Ok(Self {
            cudarc,
            shared,
            first_stream: Mutex::new(Some(first_stream)),
            ordinal,
            capability: (major.unsigned_abs(), minor.unsigned_abs()),
            driver_version: driver_version()?,
            death: OnceLock::new(),
        })
    }

    pub(super) fn cudarc(&self) -> &Arc<CudaContext> {
        &self.cudarc
    }

    /// The object for code other than this library.
    pub(super) fn shared(&self) -> &Arc<CudaContext> {
        &self.shared
    }

    pub(super) fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// The device's name: `cuda:0`.
    pub(super) fn name(&self) -> String {
        format!("cuda:{}", self.ordinal)
    }

    /// Compute capability: (9, 0) for sm_90.
    pub(super) fn capability(&self) -> (u32, u32) {
        self.capability
    }

    /// The driver's version: 12040 for CUDA 12.4.
    pub(super) fn driver_version(&self) -> i32 {
        self.driver_version
    }

    /// Makes the context current on this thread. Call it before each driver call, because other
    /// libraries in the process change the current context too.
    #[inline(always)]
    pub(super) fn make_current(&self) -> Result<(), BackendError> {
        if self.death.get().is_some() {
            return self.refuse();
        }
        let mut current = std::ptr::null_mut();
        // SAFETY: `open` initialised the driver, which writes one handle.
        let outcome = unsafe { sys::cuCtxGetCurrent(&raw mut current) };
        if outcome == sys::CUresult::CUDA_SUCCESS && current == self.cudarc.cu_ctx() {
            return Ok(());
        }
        self.change_current(outcome)
    }

    #[cold]
    fn refuse(&self) -> Result<(), BackendError> {
        self.death.get().cloned().map_or(Ok(()), Err)
    }

    /// Makes the context current, after the driver was asked which one is.
    #[inline(never)]
    fn change_current(&self, asked: sys::CUresult) -> Result<(), BackendError> {
        check(asked, "cuCtxGetCurrent").and_then(|()| make_current(&self.cudarc))
    }

    /// Returns the outcome of a driver call, and stores an error that destroys the context.
    #[inline]
    pub(super) fn record_loss<T>(
        &self,
        outcome: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        if let Err(refusal) = &outcome {
            self.record_death(refusal);
        }
        outcome
    }

    #[cold]
    fn record_death(&self, refusal: &BackendError) {
        if refusal.kind == BackendErrorKind::DeviceLost {
            // The first error is the cause; later ones repeat it.
            let _known = self.death.set(refusal.clone());
        }
    }

    /// The error that destroyed the context, if there is one.
    pub(super) fn death(&self) -> Option<&BackendError> {
        self.death.get()
    }

    pub(super) fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32, BackendError> {
        checked(self.cudarc.attribute(attribute), "cuDeviceGetAttribute")
    }

    /// The device's PCI address as Linux writes it: `0000:3b:00.0`.
    pub(super) fn pci_address(&self) -> Option<String> {
        use CUdevice_attribute as Attribute;
        let number = |attribute| self.attribute(attribute).ok();
        let domain = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let device = number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Some(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }

    /// A new stream, not tied to the legacy default stream.
    pub(super) fn new_stream(&self) -> Result<Arc<CudaStream>, BackendError> {
        self.make_current()?;
        let first = self.first_stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(first) = first {
            return Ok(first);
        }
        self.create_stream(|shared| checked(shared.new_stream(), "cuStreamCreate"))
    }

    /// As [`new_stream`](Self::new_stream), with a priority, which the driver clamps.
    pub(super) fn new_stream_with_priority(
        &self,
        priority: i32,
    ) -> Result<Arc<CudaStream>, BackendError> {
        self.make_current()?;
        self.create_stream(|shared| {
            checked(shared.new_stream_with_priority(priority), "cuStreamCreateWithPriority")
        })
    }

    fn create_stream(
        &self,
        create: impl FnOnce(&Arc<CudaContext>) -> Result<Arc<CudaStream>, BackendError>,
    ) -> Result<Arc<CudaStream>, BackendError> {
        // cudarc stores an error of a drop in the context, and the next call returns it. Such an
        // error is for other code than this library, so it is put back.
        let recorded = self.shared.check_err();
        let _relaxed = Relaxed::enter();
        let stream = self.record_loss(create(&self.shared));
        self.shared.record_err(recorded);
        stream
    }

    /// The numbers of the least and of the greatest priority of a stream.
    pub(super) fn stream_priorities(&self) -> Result<(i32, i32), BackendError> {
        self.make_current()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the context is current; the driver writes two numbers.
        let outcome =
            unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest) };
        self.record_loss(check(outcome, "cuCtxGetStreamPriorityRange"))?;
        Ok((least, greatest))
    }
}

/// cudarc's object for other code, and the first stream that it counts.
fn shared_context(ordinal: usize) -> Result<(Arc<CudaContext>, Arc<CudaStream>), BackendError> {
    let shared = checked(CudaContext::new(ordinal), "cuDevicePrimaryCtxRetain")?;
    // For its first stream an object that tracks slices waits for the whole context, which would
    // end captures of other code. This object has no slices yet.
    // SAFETY: nobody else has the object, so no slice is made meanwhile.
    unsafe { shared.disable_event_tracking() };
    let stream = checked(shared.new_stream(), "cuStreamCreate");
    // SAFETY: as above: all slices are made with tracking.
    unsafe { shared.enable_event_tracking() };
    Ok((shared, stream?))
}

/// Makes a context current. cudarc's own function would return an error that a drop stored in the
/// context.
pub(super) fn make_current(context: &CudaContext) -> Result<(), BackendError> {
    // SAFETY: the handle is that of a context, which `context` retains.
    check(unsafe { sys::cuCtxSetCurrent(context.cu_ctx()) }, "cuCtxSetCurrent")
}
