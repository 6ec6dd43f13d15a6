//! The embedded device as a [`Backend`].

use std::any::Any;
use std::sync::Arc;

use super::device::EmbeddedDevice;
use super::engine::DeviceCore;
use super::errors::{CODE_UNKNOWN_CAPACITY, driver_error};
use super::memory::{PinnedBlock, machine_memory};
use super::simulation::{CallDraft, CallKind};
use super::stream_handle::EmbeddedStreamHandle;
use resident_backend::ForeignMemory;
use resident_backend::host_allocation::CountedBytes;
use resident_backend::{
    Address, AdviceChange, Backend, BackendError, BackendErrorKind, Capacity, CopyBox, DeviceKind,
    DeviceProperties, Footprint, HostMemory, KernelCode, Label, LeftOut, LoadError, ManagedRange,
    MappedMemory, MemoryAdvice, MemoryUsage, ModuleVariable, PageRange, PinnedOptions,
    PinnedRegistration, Position, Program, RawStream, SourceDevice, StagedBytes,
};
use resident_core::Access;

impl EmbeddedDevice {
    /// A call to the device rather than to a stream: emulated devices log it and may refuse it.
    fn counted<T>(
        &self,
        kind: CallKind,
        call: impl FnOnce() -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        self.counted_as(CallDraft::unlabelled(kind, None), call)
    }

    /// The same, with what the log says of the call.
    fn counted_as<T>(
        &self,
        draft: CallDraft,
        call: impl FnOnce() -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        self.core.check_usable(draft.kind.name())?;
        match &self.core.instruments {
            None => call(),
            Some(instruments) => {
                instruments.counted(draft, |_| call().map(|value| (value, Position::START)))
            }
        }
    }
}

impl EmbeddedDevice {
    /// Informs the race check of memory that other code writes too.
    fn track_foreign(&self, address: Address, len_bytes: u64) {
        if let Some(instruments) = &self.core.instruments {
            instruments.tracker.add_foreign_block(self.core.ordinal, address, len_bytes);
        }
    }

    /// Informs the race check of host memory that has an address on the device.
    fn track_mapped(&self, address: Address, len_bytes: usize, start: *mut u8) {
        if let Some(instruments) = &self.core.instruments {
            let (len_bytes, host_start) = (len_bytes as u64, start.addr() as u64);
            let device = self.core.ordinal;
            instruments.tracker.add_mapped_block(device, address, len_bytes, host_start);
        }
    }
}

/// Host memory of the caller that counts as pinned, or has an address on the device, until this
/// value drops.
#[derive(Debug)]
enum Registration {
    Pinned { _counted: CountedBytes },
    Mapped { device: Arc<DeviceCore>, address: Address },
}

impl PinnedRegistration for Registration {
    fn unregister(&mut self) -> bool {
        // Queued work owns the memory that it uses.
        true
    }

    fn keep_until_unregistered(&mut self, _memory: Arc<dyn Any + Send + Sync>) {}
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Self::Mapped { device, address } = self else { return };
        unmap(device, *address);
    }
}

/// Removes the address of host memory.
fn unmap(device: &DeviceCore, address: Address) {
    // A forked child has a copy of the list of addresses, which another thread may have locked.
    if !device.is_usable() {
        return;
    }
    device.memory.unmap(address);
    if let Some(instruments) = &device.instruments {
        instruments.tracker.forget_block(device.ordinal, address);
    }
}

fn out_of_host_memory(len_bytes: usize) -> BackendError {
    BackendError {
        kind: BackendErrorKind::OutOfHostMemory { requested: len_bytes as u64 },
        call: "allocate pinned memory",
        detail: String::from("the host has no memory left"),
    }
}

impl SourceDevice for EmbeddedDevice {}

impl Backend for EmbeddedDevice {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn properties(&self) -> DeviceProperties {
        self.properties
    }

    fn reserve(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError> {
        let (memory, name) = (&self.core.memory, label.text.to_text());
        let draft = CallDraft::of_memory(CallKind::Reserve, &name, len_bytes, None);
        self.counted_as(draft, || {
            let address = memory.reserve(len_bytes)?;
            if let Some(instruments) = &self.core.instruments {
                instruments.tracker.add_block(self.core.ordinal, address, len_bytes, &name);
            }
            Ok(address)
        })
    }

    fn commit(&self, pages: &PageRange, label: &Label) -> Result<(), BackendError> {
        let (memory, name) = (&self.core.memory, label.text.to_text());
        let draft = CallDraft::of_memory(CallKind::Commit, &name, pages.len_bytes(), None);
        self.counted_as(draft, || {
            memory.commit(pages).or_else(|error| {
                if !memory.may_commit_later(pages) {
                    return Err(error);
                }
                self.streams.wait_for_frees("commit")?;
                memory.commit(pages)
            })
        })
    }

    fn ordinal(&self) -> usize {
        self.core.ordinal
    }

    fn name(&self) -> String {
        format!("cpu:{}", self.core.ordinal)
    }

    fn capacity(&self) -> Result<Capacity, BackendError> {
        self.core.memory.capacity().or_else(machine_memory).ok_or_else(|| {
            let detail = "this machine has no /proc/meminfo to read its memory from";
            driver_error(CODE_UNKNOWN_CAPACITY, "capacity", detail)
        })
    }

    fn memory(&self) -> MemoryUsage {
        MemoryUsage { pinned: self.pinned.get(), ..self.core.memory.usage() }
    }

    fn default_stream(&self) -> Result<Arc<dyn RawStream>, BackendError> {
        Ok(Arc::new(EmbeddedStreamHandle::new(&self.core, &self.streams)))
    }

    fn priorities(&self) -> Result<(i32, i32), BackendError> {
        Ok((0, 0))
    }

    fn new_stream(&self, _priority: Option<i32>) -> Result<Arc<dyn RawStream>, BackendError> {
        self.counted(CallKind::NewStream, || self.default_stream())
    }

    fn trim(&self) -> Result<(), BackendError> {
        self.counted(CallKind::Trim, || {
            self.streams.wait_for_frees("trim")?;
            self.core.memory.trim();
            self.staging.trim();
            Ok(())
        })
    }

    fn set_memory_limit(&self, len_bytes: Option<u64>) {
        self.core.memory.set_limit(len_bytes);
    }

    fn memory_limit(&self) -> Option<u64> {
        self.core.memory.limit_bytes()
    }

    fn model(&self) -> String {
        "embedded device".to_owned()
    }

    fn can_access_peer(&self, peer: &dyn Backend) -> bool {
        peer.downcast_ref::<Self>().is_some()
    }

    fn allocate_staging(&self, _stream: &dyn RawStream, len_bytes: u64) -> Option<StagedBytes> {
        if self.core.is_usable() { self.staging.take(len_bytes) } else { None }
    }

    fn reap(&self) {}

    fn prepare_downloads(&self, _lens_bytes: &[u64]) {}

    fn staged_bytes(&self, parts: &[CopyBox]) -> u64 {
        parts.iter().map(CopyBox::len_bytes).sum()
    }

    fn pin_host_memory(
        &self,
        _start: *mut u8,
        len_bytes: usize,
        _access: Access,
    ) -> Result<Box<dyn PinnedRegistration>, BackendError> {
        self.counted(CallKind::PageLock, || {
            let registration = Registration::Pinned { _counted: self.pinned.count(len_bytes) };
            Ok(Box::new(registration) as Box<dyn PinnedRegistration>)
        })
    }

    fn is_pinned(&self, _start: *const u8, _len_bytes: usize) -> bool {
        false
    }

    fn foreign_fault(&self, _: u64, _: u64) -> Result<Option<String>, BackendError> {
        Ok(None)
    }

    unsafe fn take_over(&self, memory: ForeignMemory) -> Result<Address, BackendError> {
        self.core.check_usable("take_over")?;
        let len_bytes = memory.len_bytes;
        // SAFETY: the caller's promise is passed on.
        let address = unsafe { self.core.memory.take_over(memory) }?;
        self.track_foreign(address, len_bytes);
        Ok(address)
    }

    fn hand_out(&self, address: Address) -> *mut u8 {
        self.core.memory.hand_out(address)
    }

    fn left_out(&self, address: Address, parts: &[Footprint]) -> Option<LeftOut> {
        let memory = self.core.memory.locate(address)?;
        let start = memory.bounded().start;
        parts.iter().find_map(|part| self.core.memory.first_left_out(address, start, part))
    }

    fn external_address(&self, address: Address) -> u64 {
        // An emulated device checks all accesses to its memory, so it gives no pointer to it.
        if self.core.instruments.is_some() {
            return address.0;
        }
        // A forked child has a copy of the list of addresses, which another thread may have locked.
        if !self.core.is_usable() {
            return 0;
        }
        let pointer = self.core.memory.lock_addresses().expose(address);
        pointer.map_or(0, |pointer| pointer.expose_provenance() as u64)
    }

    fn may_have_leftovers(&self, address: Address) -> bool {
        // A forked child has a copy of the list of addresses, which another thread may have locked.
        self.core.is_usable() && self.core.memory.lock_addresses().may_have_leftovers(address)
    }

    fn allocate_pinned(
        &self,
        len_bytes: usize,
        _options: PinnedOptions,
    ) -> Result<Arc<dyn HostMemory>, BackendError> {
        self.counted(CallKind::AllocatePinned, || {
            let memory = PinnedBlock::zeroed(len_bytes, &self.pinned);
            let memory = memory.ok_or_else(|| out_of_host_memory(len_bytes))?;
            Ok(Arc::new(memory) as Arc<dyn HostMemory>)
        })
    }

    fn allocate_mapped(
        &self,
        len_bytes: usize,
        _options: PinnedOptions,
    ) -> Result<MappedMemory, BackendError> {
        self.counted(CallKind::AllocatePinned, || {
            let mapped = self.core.memory.allocate_mapped(len_bytes, &self.pinned);
            let mapped = mapped.ok_or_else(|| out_of_host_memory(len_bytes))?;
            self.track_mapped(mapped.0, len_bytes, mapped.1.base());
            Ok(mapped)
        })
    }

    fn allocate_managed(&self, len_bytes: usize) -> Result<MappedMemory, BackendError> {
        self.counted(CallKind::AllocateManaged, || {
            let managed = self.core.memory.allocate_managed(len_bytes as u64)?;
            self.track_mapped(managed.0, len_bytes, managed.1.base());
            Ok(managed)
        })
    }

    unsafe fn map_host_memory(
        &self,
        start: *mut u8,
        len_bytes: usize,
    ) -> Result<(Address, Box<dyn PinnedRegistration>), BackendError> {
        self.counted(CallKind::PageLock, || {
            // SAFETY: the caller keeps the memory until the registration has dropped, which unmaps
            // it, after all work that uses the memory.
            let mapped = unsafe { self.core.memory.map(start, len_bytes, &self.pinned) };
            let address = mapped.ok_or_else(|| out_of_host_memory(len_bytes))?;
            self.track_mapped(address, len_bytes, start);
            let registration = Registration::Mapped { device: Arc::clone(&self.core), address };
            Ok((address, Box::new(registration) as Box<dyn PinnedRegistration>))
        })
    }

    fn share(&self, memory: Arc<dyn HostMemory>) -> Result<Address, BackendError> {
        self.core.check_usable("share")?;
        let (start, len_bytes) = (memory.base(), memory.len_bytes());
        let address = self.core.memory.share(memory);
        let address = address.ok_or_else(|| out_of_host_memory(len_bytes))?;
        self.track_mapped(address, len_bytes, start);
        Ok(address)
    }

    fn unshare(&self, address: Address) -> bool {
        unmap(&self.core, address);
        self.core.is_usable()
    }

    fn advise(
        &self,
        _managed: ManagedRange,
        _advice: MemoryAdvice,
        _change: AdviceChange,
    ) -> Result<(), BackendError> {
        self.counted(CallKind::Advise, || Ok(()))
    }

    fn load(&self, program: &Program) -> Result<KernelCode, LoadError> {
        self.core.check_usable("load")?;
        resident_host_code::load(program, &self.libraries).map(KernelCode::Host)
    }

    fn variable(
        &self,
        program: &Program,
        name: &str,
    ) -> Result<Arc<dyn ModuleVariable>, LoadError> {
        self.core.check_usable("variable")?;
        resident_host_code::variable(program, name, &self.libraries)
    }
}
