//! One GPU, and the state that its streams share.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::CudaContext;
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

use super::capture_mode::Relaxed;
use super::code::Programs;
use super::context::Context;
use super::memory::allocator::DeviceMemory;
use super::memory::staging::StagingPool;
use super::memory::staging_settings::StagingSettings;
use super::stream::{EventPool, WakeStreams};
use crate::backend::BackendError;
use crate::backend::host_allocation::ByteCount;

/// One GPU. The module `backend` implements the trait `Backend` for this type.
pub(crate) struct CudaDevice(Arc<DeviceCore>);

/// The state that the streams of a GPU share.
pub(crate) struct DeviceCore {
    context: Arc<Context>,
    memory: DeviceMemory,
    events: Arc<EventPool>,
    wake_streams: Arc<WakeStreams>,
    staging: Arc<StagingPool>,
    staging_settings: StagingSettings,
    pinned: ByteCount,
    programs: Programs,
    pitch_bytes_max: u64,
    /// The ordinals of the devices for which peer access was tried.
    peers: Mutex<HashSet<usize>>,
}

impl CudaDevice {
    /// Opens a GPU. `super::open` checked that the driver is present and that the ordinal exists.
    pub(super) fn open(
        ordinal: usize,
        staging_settings: StagingSettings,
    ) -> Result<Arc<Self>, BackendError> {
        let context = Arc::new(Context::open(ordinal)?);
        let pitch_max = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?;
        let core = DeviceCore {
            memory: DeviceMemory::open(&context)?,
            events: Arc::new(EventPool::new(Arc::clone(&context))),
            wake_streams: Arc::new(WakeStreams::new(Arc::clone(&context))),
            staging: Arc::new(StagingPool::new(Arc::clone(&context), staging_settings.limit_bytes)),
            staging_settings,
            pinned: ByteCount::default(),
            programs: Programs::default(),
            pitch_bytes_max: u64::from(pitch_max.unsigned_abs()),
            peers: Mutex::default(),
            context,
        };
        Ok(Arc::new(Self(Arc::new(core))))
    }

    pub(super) fn core(&self) -> &Arc<DeviceCore> {
        &self.0
    }

    /// cudarc's context for code outside the library: the primary context, with cudarc's own
    /// tracking.
    pub(crate) fn shared_context(&self) -> &Arc<CudaContext> {
        self.0.context.shared()
    }

    /// Whether cudarc's context object represents this GPU's primary context.
    pub(crate) fn has_context(&self, other: &CudaContext) -> bool {
        self.0.context.cudarc().cu_ctx() == other.cu_ctx()
    }
}

impl DeviceCore {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    pub(super) fn events(&self) -> &Arc<EventPool> {
        &self.events
    }

    pub(super) fn wake_streams(&self) -> &Arc<WakeStreams> {
        &self.wake_streams
    }

    pub(super) fn staging(&self) -> &Arc<StagingPool> {
        &self.staging
    }

    pub(super) fn staging_settings(&self) -> &StagingSettings {
        &self.staging_settings
    }

    /// The host memory that is pinned for arrays.
    pub(super) fn pinned(&self) -> &ByteCount {
        &self.pinned
    }

    pub(super) fn programs(&self) -> &Programs {
        &self.programs
    }

    pub(super) fn pitch_bytes_max(&self) -> u64 {
        self.pitch_bytes_max
    }

    /// The context of another GPU, for a copy from that GPU; `None` if it is this GPU. The first
    /// such copy tries to enable peer access; without it the driver copies through the host.
    pub(super) fn context_of_peer(&self, peer: &Self) -> Option<sys::CUcontext> {
        if peer.context.ordinal() == self.context.ordinal() {
            return None;
        }
        if self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(peer.context.ordinal())
        {
            self.enable_peer_access(peer);
        }
        Some(peer.context.cudarc().cu_ctx())
    }

    /// Enables this GPU's access to the memory of `peer`. A failure only makes copies slower.
    fn enable_peer_access(&self, peer: &Self) {
        let (own, other) = (self.context.cudarc(), peer.context.cudarc());
        let mut can_access = 0;
        // SAFETY: the driver writes one `int`; both devices are open.
        let outcome = unsafe {
            sys::cuDeviceCanAccessPeer(&raw mut can_access, own.cu_device(), other.cu_device())
        };
        if outcome != CUresult::CUDA_SUCCESS || can_access == 0 {
            return;
        }
        let _relaxed = Relaxed::enter();
        // SAFETY: this GPU's context is current, because the calling thread is queueing a copy on
        // it; `peer` retains the other context.
        let _slower = unsafe { sys::cuCtxEnablePeerAccess(other.cu_ctx(), 0) };
        let _slower = peer.memory.share_with(self.context.ordinal());
    }
}

impl fmt::Debug for DeviceCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceCore({})", self.context.name())
    }
}

impl fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaDevice({})", self.0.context.name())
    }
}
