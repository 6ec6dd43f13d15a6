//! A GPU as a backend.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};
use cudarc::driver::{CudaContext, CudaStream};
use smallvec::SmallVec;

use super::call::{check, checked};
use super::code::{self, Programs};
use super::context::Context;
use super::event::EventStore;
use super::memory::{self, DeviceMemory};
use super::pinned::{Pinned, PinnedStore};
use super::queue::CudaQueue;
use super::registered::Registered;
use super::stream::{self, QueueCore};
use crate::backend::{
    Address, Backend, BackendError, BackendErrorKind, BodyKind, Capacity, DeviceKind, HostMemory,
    LoadError, LoadedKernel, MemoryUsage, PinnedRegistration, Program, Queue, SourceDevice, scope,
};

/// What is staged at once: long enough that a call is nothing beside it, short enough that a few of
/// them stay in the caches of the host.
const PIECE_BYTES_MAX: u64 = 4 << 20;

/// What the streams of a GPU share.
pub(super) struct DeviceCore {
    context: Arc<Context>,
    memory: DeviceMemory,
    events: Arc<EventStore>,
    pinned: Arc<PinnedStore>,
    programs: Programs,
    pitch_max_bytes: u64,
    /// Ordinals of devices whose memory this one was let at, or for which that was tried.
    peers: Mutex<HashSet<usize>>,
}

/// One GPU.
pub(crate) struct CudaDevice(Arc<DeviceCore>);

impl CudaDevice {
    /// Opens a GPU. The driver is there and knows the ordinal: `super::open` looked.
    pub(super) fn open(ordinal: usize) -> Result<Arc<Self>, BackendError> {
        let context = Arc::new(Context::open(ordinal)?);
        let pitch_max = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?;
        let core = DeviceCore {
            memory: DeviceMemory::open(&context)?,
            events: Arc::new(EventStore::new(Arc::clone(&context))),
            pinned: Arc::new(PinnedStore::new(Arc::clone(&context))),
            programs: Programs::default(),
            pitch_max_bytes: u64::from(pitch_max.unsigned_abs()),
            peers: Mutex::default(),
            context,
        };
        Ok(Arc::new(Self(Arc::new(core))))
    }

    pub(super) fn core(&self) -> &Arc<DeviceCore> {
        &self.0
    }

    pub(super) fn name_of(context: &Context) -> String {
        format!("cuda:{}", context.ordinal())
    }

    /// cudarc's context object for users: the primary context, tracking as cudarc does by default.
    pub(crate) fn shared_context(&self) -> &Arc<CudaContext> {
        self.0.context.shared()
    }

    /// Whether a context object of somebody else's is of this GPU's primary context.
    pub(crate) fn has_context(&self, other: &CudaContext) -> bool {
        self.0.context.cudarc().cu_ctx() == other.cu_ctx()
    }

    /// A stream of somebody else's as a queue. It is of this GPU's primary context: the caller
    /// looked.
    pub(crate) fn adopt(&self, stream: Arc<CudaStream>) -> Arc<dyn Queue> {
        let core = QueueCore::new(Arc::clone(&self.0), stream);
        core.share();
        Arc::new(CudaQueue::new(core))
    }
}

impl DeviceCore {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    pub(super) fn events(&self) -> &Arc<EventStore> {
        &self.events
    }

    pub(super) fn pinned(&self) -> &Arc<PinnedStore> {
        &self.pinned
    }

    pub(super) fn pitch_max_bytes(&self) -> u64 {
        self.pitch_max_bytes
    }

    /// Takes memory. Where there is no room, what is queued is waited for, frees above all, and
    /// what is kept is given back; then once more.
    pub(super) fn allocate(
        &self,
        len_bytes: u64,
        stream: sys::CUstream,
    ) -> Result<Address, BackendError> {
        self.memory.allocate(len_bytes, stream).or_else(|refusal| {
            // What the limit forbids is not found by waiting: what was freed counts as free from
            // then on.
            let is_full = matches!(refusal.kind, BackendErrorKind::OutOfMemory { .. })
                && !self.memory.is_beyond_limit(len_bytes);
            if !is_full || self.memory.usage().pooled == 0 || scope::is_in_body() {
                return Err(refusal);
            }
            self.trim()?;
            self.memory.allocate(len_bytes, stream)
        })
    }

    fn trim(&self) -> Result<(), BackendError> {
        self.context.enter()?;
        // SAFETY: the context is current.
        self.context.note(check(unsafe { sys::cuCtxSynchronize() }, "cuCtxSynchronize"))?;
        stream::look_around_on(self);
        // What was let go of there may have made another device's context current.
        self.context.enter()?;
        self.memory.trim()
    }

    /// The context of another GPU for a copy from there; none where it is this one. At the first
    /// such copy each lets the other at its memory where the machine allows that; otherwise the
    /// driver goes by way of the host.
    pub(super) fn context_of_peer(&self, peer: &Self) -> Option<sys::CUcontext> {
        if peer.context.ordinal() == self.context.ordinal() {
            return None;
        }
        if self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(peer.context.ordinal())
        {
            self.let_at(peer);
        }
        Some(peer.context.cudarc().cu_ctx())
    }

    /// Lets this GPU at the memory of `peer`. What fails here costs speed alone.
    fn let_at(&self, peer: &Self) {
        let (own, other) = (self.context.cudarc(), peer.context.cudarc());
        let mut can = 0;
        // SAFETY: the driver writes one `int`; both devices are open.
        let asked =
            unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, own.cu_device(), other.cu_device()) };
        if asked != CUresult::CUDA_SUCCESS || can == 0 {
            return;
        }
        // SAFETY: this GPU's context is current: copies are queued by threads that entered it; the
        // other is retained by its device.
        let _slower = unsafe { sys::cuCtxEnablePeerAccess(other.cu_ctx(), 0) };
        let _slower = peer.memory.share_with(self.context.ordinal());
    }
}

impl SourceDevice for CudaDevice {}

impl Backend for CudaDevice {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cuda
    }

    fn ordinal(&self) -> usize {
        self.0.context.ordinal()
    }

    fn name(&self) -> String {
        Self::name_of(&self.0.context)
    }

    fn capacity(&self) -> Result<Capacity, BackendError> {
        self.0.context.enter()?;
        let (free, total) = self.0.context.note(memory::free_and_total())?;
        Ok(Capacity { total, free })
    }

    fn memory(&self) -> MemoryUsage {
        self.0.memory.usage()
    }

    fn default_queue(&self) -> Result<Arc<dyn Queue>, BackendError> {
        let stream = self.0.context.new_stream()?;
        Ok(Arc::new(CudaQueue::new(QueueCore::new(Arc::clone(&self.0), stream))))
    }

    fn new_queue(&self) -> Result<Arc<dyn Queue>, BackendError> {
        self.default_queue()
    }

    fn reap(&self) {
        stream::look_around_on(&self.0);
    }

    fn trim(&self) -> Result<(), BackendError> {
        if scope::is_in_body() {
            return Err(BackendError {
                kind: BackendErrorKind::InsideKernel,
                call: "trim",
                detail: String::new(),
            });
        }
        self.0.trim()?;
        self.0.pinned.trim()
    }

    fn set_memory_limit(&self, len_bytes: u64) {
        self.0.memory.set_limit(len_bytes);
    }

    fn memory_limit(&self) -> Option<u64> {
        self.0.memory.limit_bytes()
    }

    fn model(&self) -> String {
        checked(self.0.context.cudarc().name(), "cuDeviceGetName")
            .unwrap_or_else(|_| "a GPU that does not tell its name".to_owned())
    }

    fn poison_byte(&self) -> Option<u8> {
        None
    }

    fn can_access_peer(&self, peer: &dyn Backend) -> bool {
        peer.downcast_ref::<Self>().is_some()
    }

    fn allocate_staging(&self, len_bytes: u64) -> Option<Arc<dyn HostMemory>> {
        if !self.0.pinned.keeps(len_bytes) {
            // What is over gives some back: locking more pages takes far longer than to look.
            stream::look_around_on(&self.0);
        }
        self.0.pinned.take(len_bytes).map(|pinned| Arc::new(pinned) as Arc<dyn HostMemory>)
    }

    fn prepare_downloads(&self, lens_bytes: &[u64]) {
        let blocks: SmallVec<[Pinned; 4]> =
            lens_bytes.iter().map_while(|len_bytes| self.0.pinned.take(*len_bytes)).collect();
        // Given back at once, to be taken when they are needed.
        drop(blocks);
    }

    fn chunk_bytes_max(&self) -> u64 {
        PIECE_BYTES_MAX
    }

    fn pin_host_memory(
        &self,
        start: *mut u8,
        len_bytes: usize,
    ) -> Result<Box<dyn PinnedRegistration>, BackendError> {
        Registered::lock(&self.0.context, start, len_bytes)
            .map(|registered| Box::new(registered) as Box<dyn PinnedRegistration>)
    }

    fn body_kind(&self) -> BodyKind {
        BodyKind::Cuda
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn LoadedKernel>, LoadError> {
        code::load(&self.0.context, &self.0.programs, program)
    }
}

impl fmt::Debug for DeviceCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceCore({})", CudaDevice::name_of(&self.context))
    }
}

impl fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaDevice({})", self.name())
    }
}
