//! One GPU, and the state that its streams share.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

#[cfg(feature = "cuda")]
use cudarc::driver::CudaContext;

use super::capture_mode::Relaxed;
use super::code::Programs;
use super::context::Context;
#[cfg(feature = "cuda")]
use super::cudarc_contexts::CudarcContexts;
use super::driver::{DeviceAttribute, Place, status};
use super::memory::allocator::DeviceMemory;
use super::memory::staging::StagingPool;
use super::memory::staging_settings::StagingSettings;
use super::stream::{EventPool, WakeStreams};
use resident_backend::BackendError;
use resident_backend::host_allocation::ByteCount;
use resident_backend::sync::BackendLock;

/// One GPU. The module `backend` implements the trait `Backend` for this type.
pub struct GpuDevice(Arc<GpuDeviceState>);

/// The state that the streams of a GPU share.
pub(crate) struct GpuDeviceState {
    context: Arc<Context>,
    memory: DeviceMemory,
    events: Arc<EventPool>,
    wake_streams: Arc<WakeStreams>,
    staging: Arc<StagingPool>,
    staging_settings: StagingSettings,
    pinned: ByteCount,
    programs: Programs,
    pitch_bytes_max: u64,
    reaches_host_memory: bool,
    uses_graphs: bool,
    /// By ordinal, whether this device has access to another's memory. The first thread that asks
    /// enables it, while others wait.
    peers: BackendLock<HashMap<usize, Arc<OnceLock<bool>>>>,
}

impl GpuDevice {
    /// A GPU by its context. `coherent` is what the environment says of arrays in host memory, and
    /// `graphs` of chains.
    pub(super) fn open(
        context: Context,
        staging_settings: StagingSettings,
        coherent: Option<bool>,
        graphs: Option<bool>,
    ) -> Result<Arc<Self>, BackendError> {
        let context = Arc::new(context);
        let pitch_max = context.attribute(DeviceAttribute::PitchBytesMax)?;
        let core = GpuDeviceState {
            memory: DeviceMemory::open(&context)?,
            events: Arc::new(EventPool::new(Arc::clone(&context))),
            wake_streams: Arc::new(WakeStreams::new(Arc::clone(&context))),
            staging: Arc::new(StagingPool::new(Arc::clone(&context), staging_settings.limit_bytes)),
            staging_settings,
            pinned: ByteCount::default(),
            programs: Programs::default(),
            pitch_bytes_max: u64::from(pitch_max.unsigned_abs()),
            reaches_host_memory: reaches_host_memory(&context, coherent),
            uses_graphs: graphs != Some(false) && context.driver().has_graphs(),
            peers: BackendLock::default(),
            context,
        };
        Ok(Arc::new(Self(Arc::new(core))))
    }

    pub(super) fn core(&self) -> &Arc<GpuDeviceState> {
        &self.0
    }

    /// cudarc's context for code outside the library: the primary context, with cudarc's own
    /// tracking. `None` if this is not an NVIDIA GPU.
    #[cfg(feature = "cuda")]
    pub fn shared_context(&self) -> Option<&Arc<CudaContext>> {
        self.0.context.cudarc().map(CudarcContexts::shared)
    }

    /// Whether cudarc's context object represents this GPU's primary context.
    #[cfg(feature = "cuda")]
    pub fn has_context(&self, other: &CudaContext) -> bool {
        self.0.context.cudarc().is_some_and(|cudarc| cudarc.own().cu_ctx() == other.cu_ctx())
    }
}

impl GpuDeviceState {
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

    pub(super) fn reaches_host_memory(&self) -> bool {
        self.reaches_host_memory
    }

    /// Whether chains are graphs of the driver.
    pub(super) fn uses_graphs(&self) -> bool {
        self.uses_graphs
    }

    /// The place of another GPU, for a copy from that GPU; `None` if it is this GPU. The first such
    /// copy tries to enable peer access; without it the driver copies through the host.
    pub(super) fn place_of_peer(&self, peer: &Self) -> Option<Place> {
        if peer.context.ordinal() == self.context.ordinal() {
            return None;
        }
        // Without access the driver copies by way of the host.
        let _ = self.has_access_to(peer);
        Some(peer.context.place())
    }

    /// Whether the driver copies from a device of its kind in a way that this backend relies on.
    pub(super) fn can_copy_from(&self, peer: &Self) -> bool {
        self.context.driver().vendor.copies_without_peer_access
            || peer.context.ordinal() == self.context.ordinal()
            || self.has_access_to(peer)
    }

    /// Whether this GPU has access to the memory of another, which is enabled when it is first
    /// asked for. A refusal is remembered.
    fn has_access_to(&self, peer: &Self) -> bool {
        let access = Arc::clone(self.peers.lock().entry(peer.context.ordinal()).or_default());
        *access.get_or_init(|| self.can_access(peer) && self.enable_peer_access(peer).is_ok())
    }

    /// Whether this GPU can access the memory of another.
    fn can_access(&self, peer: &Self) -> bool {
        let own = self.context.place();
        let other = peer.context.place();
        let mut can_access = 0;
        let ask = &self.context.driver().can_access_peer;
        // SAFETY: the driver writes one `int`; both devices are open.
        let outcome = unsafe { (ask.function)(&raw mut can_access, own.device, other.device) };
        outcome == status::SUCCESS && can_access != 0
    }

    /// Enables this GPU's access to the memory of `peer`.
    fn enable_peer_access(&self, peer: &Self) -> Result<(), BackendError> {
        self.context.make_current()?;
        let driver = self.context.driver();
        let _relaxed = Relaxed::enter(driver);
        driver.enable_peer_access(peer.context.place())?;
        peer.memory.share_with(self.context.ordinal())
    }
}

/// Whether arrays use ordinary host memory in its place: where the GPU finds it by the host's page
/// tables, and the driver copies and fills it, unless the environment says otherwise. If it asks
/// for it, wherever the GPU reaches that memory. Old drivers do not know the attributes.
fn reaches_host_memory(context: &Context, coherent: Option<bool>) -> bool {
    let has = |attribute| context.attribute(attribute).is_ok_and(|value| value != 0);
    let copies = context.driver().vendor.copies_reached_memory;
    let is_wanted = coherent.unwrap_or_else(|| copies && has(DeviceAttribute::HostPageTables));
    is_wanted && has(DeviceAttribute::PageableMemoryAccess)
}

impl fmt::Debug for GpuDeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuDeviceState({})", self.context.name())
    }
}

impl fmt::Debug for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuDevice({})", self.0.context.name())
    }
}
