//! A GPU as a [`Backend`].

use std::sync::Arc;

#[cfg(feature = "cuda")]
use cudarc::driver::CudaStream;
use smallvec::SmallVec;

use super::code;
use super::copy::cost::{Allowed, Costs, DownloadPlan};
use super::device::GpuDevice;
use super::memory::allocator::free_and_total;
use super::memory::external::ExternalAllocation;
use super::memory::managed;
use super::memory::pinned::{HostMapping, PinnedMemory, device_address};
use super::memory::pinned_ranges;
use super::memory::pointer;
use super::memory::registered::{HostBytes, HostRegistration};
use super::owned_stream::OwnedStream;
use super::stream::{self, GpuStream, GpuStreamHandle};
use resident_backend::ForeignMemory;
use resident_backend::grid::GridLimits;
use resident_backend::{
    Address, AdviceChange, Backend, BackendError, BackendErrorKind, Capacity, CopyBox, DeviceKind,
    DeviceProperties, Footprint, HostMemory, KernelCode, Label, LeftOut, LoadError, ManagedRange,
    MappedMemory, MemoryAdvice, MemoryUsage, ModuleVariable, PageRange, PinnedOptions,
    PinnedRegistration, Program, RawStream, SourceDevice, StagedBytes, scope,
};
use resident_core::Access;

impl GpuDevice {
    fn handle_of(&self, stream: OwnedStream) -> Arc<dyn RawStream> {
        Arc::new(GpuStreamHandle::new(GpuStream::new(Arc::clone(self.core()), stream)))
    }

    fn register(
        &self,
        bytes: HostBytes,
        mapping: HostMapping,
    ) -> Result<HostRegistration, BackendError> {
        HostRegistration::register(self.core().context(), bytes, mapping, self.core().pinned())
    }

    fn pinned(
        &self,
        len_bytes: usize,
        options: PinnedOptions,
        mapping: HostMapping,
    ) -> Result<PinnedMemory, BackendError> {
        let (context, pinned) = (self.core().context(), self.core().pinned());
        PinnedMemory::allocate(context, len_bytes, options, mapping, pinned)
    }

    /// A stream of another library. The caller checked that it belongs to this GPU's
    /// primary context.
    #[cfg(feature = "cuda")]
    pub fn adopt(&self, stream: Arc<CudaStream>) -> Arc<dyn RawStream> {
        let stream = GpuStream::new(Arc::clone(self.core()), OwnedStream::of_cudarc(stream));
        stream.share();
        Arc::new(GpuStreamHandle::new(stream))
    }
}

impl SourceDevice for GpuDevice {}

impl Backend for GpuDevice {
    fn kind(&self) -> DeviceKind {
        self.core().context().kind()
    }

    fn properties(&self) -> DeviceProperties {
        let settings = self.core().staging_settings();
        DeviceProperties {
            body_kind: self.core().context().body_kind(),
            grid_limits: GridLimits::default(),
            poison_byte: None,
            chunk_bytes_max: settings.chunk_bytes_max,
            chunks_in_flight_max: settings.chunks_in_flight_max,
            page_bytes: self.core().memory().page_bytes(),
            emulated_bytes: None,
            reaches_host_memory: self.core().reaches_host_memory(),
            reads_between_parts: true,
            runs_by_itself: true,
            knows_left_out: false,
        }
    }

    fn reserve(&self, len_bytes: u64, _label: &Label) -> Result<Address, BackendError> {
        let context = self.core().context();
        context.make_current()?;
        context.record_death(self.core().memory().reserve_addresses(len_bytes))
    }

    fn commit(&self, pages: &PageRange, _label: &Label) -> Result<(), BackendError> {
        self.core().context().record_death(stream::commit(self.core(), pages))
    }

    fn ordinal(&self) -> usize {
        self.core().context().ordinal()
    }

    fn name(&self) -> String {
        self.core().context().name()
    }

    fn capacity(&self) -> Result<Capacity, BackendError> {
        let context = self.core().context();
        context.make_current()?;
        let (free, total) = context.record_death(free_and_total(context.driver()))?;
        Ok(Capacity { total, free })
    }

    fn memory(&self) -> MemoryUsage {
        MemoryUsage { pinned: self.core().pinned().get(), ..self.core().memory().usage() }
    }

    fn default_stream(&self) -> Result<Arc<dyn RawStream>, BackendError> {
        self.new_stream(None)
    }

    fn new_stream(&self, priority: Option<i32>) -> Result<Arc<dyn RawStream>, BackendError> {
        let stream = OwnedStream::new(self.core().context(), priority);
        stream.map(|stream| self.handle_of(stream))
    }

    fn priorities(&self) -> Result<(i32, i32), BackendError> {
        self.core().context().stream_priorities()
    }

    fn reap(&self) {
        stream::reap_all(self.core());
    }

    fn trim(&self) -> Result<(), BackendError> {
        if scope::is_in_body() {
            return Err(BackendError {
                kind: BackendErrorKind::InsideKernel,
                call: "trim",
                detail: String::new(),
            });
        }
        stream::trim(self.core())?;
        self.core().staging().trim()
    }

    fn set_memory_limit(&self, len_bytes: Option<u64>) {
        self.core().memory().set_limit(len_bytes);
    }

    fn memory_limit(&self) -> Option<u64> {
        self.core().memory().limit_bytes()
    }

    fn model(&self) -> String {
        let context = self.core().context();
        match context.driver().name_of(context.place().device) {
            Ok(name) if !name.is_empty() => name,
            _ => "a GPU whose name the driver does not give".to_owned(),
        }
    }

    fn can_access_peer(&self, peer: &dyn Backend) -> bool {
        let peer = peer.downcast_ref::<Self>().filter(|peer| peer.kind() == self.kind());
        peer.is_some_and(|peer| self.core().can_copy_from(peer.core()))
    }

    fn allocate_staging(&self, stream: &dyn RawStream, len_bytes: u64) -> Option<StagedBytes> {
        let staging = self.core().staging();
        // Work that is completed here returns its staging blocks. Reusing one takes far less time
        // than pinning a new block; but asking all streams takes longer than staging a few bytes,
        // whose blocks are pinned several at a time.
        if !staging.has_unused(len_bytes) {
            stream.downcast_ref::<GpuStreamHandle>().into_iter().for_each(stream::reap_oldest);
            if !staging.has_unused(len_bytes) && !staging.is_ready_for(len_bytes) {
                stream::reap_all(self.core());
            }
        }
        staging.take(len_bytes)
    }

    fn prepare_downloads(&self, lens_bytes: &[u64]) {
        let staging = self.core().staging();
        if let [len_bytes] = lens_bytes
            && staging.has_unused(*len_bytes)
        {
            return;
        }
        let blocks: SmallVec<[StagedBytes; 4]> =
            lens_bytes.iter().map_while(|len_bytes| staging.take(*len_bytes)).collect();
        // The blocks return to the pool, from which downloads take them.
        drop(blocks);
    }

    fn staged_bytes(&self, parts: &[CopyBox]) -> u64 {
        let pack = self.core().memory().frees_in_order();
        let allowed = Allowed { read_between: true, pack };
        let way = Costs::current().fastest(parts, self.core().pitch_bytes_max(), allowed);
        DownloadPlan::of_way(way, parts).len_bytes
    }

    fn pin_host_memory(
        &self,
        start: *mut u8,
        len_bytes: usize,
        access: Access,
    ) -> Result<Box<dyn PinnedRegistration>, BackendError> {
        let bytes = HostBytes { start, len_bytes, access };
        let registration = self.register(bytes, HostMapping::Unmapped)?;
        Ok(Box::new(registration))
    }

    fn is_pinned(&self, start: *const u8, len_bytes: usize) -> bool {
        pinned_ranges::covers(self.kind(), start, len_bytes)
    }

    fn foreign_fault(&self, address: u64, len_bytes: u64) -> Result<Option<String>, BackendError> {
        let context = self.core().context();
        context.make_current()?;
        Ok(pointer::foreign_fault(context.driver(), address, len_bytes, self.ordinal()))
    }

    unsafe fn take_over(&self, memory: ForeignMemory) -> Result<Address, BackendError> {
        let address = memory.start.addr() as u64;
        let external = ExternalAllocation::of_object(memory.len_bytes, memory.owner);
        self.core().memory().insert_external(address, external)?;
        Ok(Address(address))
    }

    fn hand_out(&self, address: Address) -> *mut u8 {
        self.core().memory().mark_lent(address);
        std::ptr::without_provenance_mut(address.0 as usize)
    }

    fn left_out(&self, _address: Address, _parts: &[Footprint]) -> Option<LeftOut> {
        None
    }

    fn external_address(&self, address: Address) -> u64 {
        address.0
    }

    fn may_have_leftovers(&self, _address: Address) -> bool {
        // The driver's pool does not say. All that runs on a GPU is `unsafe`, and should write all.
        false
    }

    fn allocate_pinned(
        &self,
        len_bytes: usize,
        options: PinnedOptions,
    ) -> Result<Arc<dyn HostMemory>, BackendError> {
        Ok(Arc::new(self.pinned(len_bytes, options, HostMapping::Unmapped)?))
    }

    fn allocate_mapped(
        &self,
        len_bytes: usize,
        options: PinnedOptions,
    ) -> Result<MappedMemory, BackendError> {
        let context = self.core().context();
        let memory = self.pinned(len_bytes, options, HostMapping::Mapped)?;
        let address = context.record_death(device_address(context.driver(), memory.base()))?;
        let memory: Arc<dyn HostMemory> = Arc::new(memory);
        self.core().memory().insert_mapped(address, Arc::clone(&memory));
        Ok((address, memory))
    }

    fn allocate_managed(&self, len_bytes: usize) -> Result<MappedMemory, BackendError> {
        let context = self.core().context();
        context.make_current()?;
        context.record_death(self.core().memory().allocate_managed(context, len_bytes))
    }

    unsafe fn map_host_memory(
        &self,
        start: *mut u8,
        len_bytes: usize,
    ) -> Result<(Address, Box<dyn PinnedRegistration>), BackendError> {
        let context = self.core().context();
        let bytes = HostBytes { start, len_bytes, access: Access::ReadWrite };
        let registration = self.register(bytes, HostMapping::Mapped)?;
        context.make_current()?;
        let address = context.record_death(device_address(context.driver(), start))?;
        Ok((address, Box::new(registration)))
    }

    fn share(&self, memory: Arc<dyn HostMemory>) -> Result<Address, BackendError> {
        let address = Address(memory.base().expose_provenance() as u64);
        self.core().memory().insert_mapped(address, memory);
        Ok(address)
    }

    fn unshare(&self, address: Address) -> bool {
        let is_alive = self.core().context().make_current().is_ok();
        if is_alive {
            drop(self.core().memory().take_mapped(address));
        }
        is_alive
    }

    fn advise(
        &self,
        range: ManagedRange,
        advice: MemoryAdvice,
        change: AdviceChange,
    ) -> Result<(), BackendError> {
        let context = self.core().context();
        context.make_current()?;
        context.record_death(managed::advise(context, range, advice, change))
    }

    fn load(&self, program: &Program) -> Result<KernelCode, LoadError> {
        let loaded = code::load(self.core().context(), self.core().programs(), program);
        loaded.map(KernelCode::Loaded)
    }

    fn variable(
        &self,
        program: &Program,
        name: &str,
    ) -> Result<Arc<dyn ModuleVariable>, LoadError> {
        code::variable(self.core().context(), self.core().programs(), program, name)
    }
}
