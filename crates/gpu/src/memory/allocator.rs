//! Device memory of one GPU: its live allocations, their limit, and freed memory still in use.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::external::ExternalAllocation;
use super::managed::{ManagedMemory, expect_concurrent_access};
use super::page_driver::Pages;
use super::pool::{MemoryPool, PoolFunctions};
use super::reservations::{QueuedAt, Reservations};
use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{DeviceAttribute, Driver, StreamHandle, invalid, status};
use resident_backend::host_allocation::{ByteCount, CountedBytes};
use resident_backend::imports::{AddressRange, InUse, counted_bytes, counted_in_pinned};
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{
    Address, BackendError, BackendErrorKind, HostMemory, MappedMemory, MemoryUsage, scope,
};

/// Allocates and frees device memory.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    driver: &'static Driver,
    /// `None` on devices without pools, which allocate and free by calls that wait for the device.
    pool: Option<MemoryPool>,
    /// `None` on devices that map no memory to reserved addresses.
    pub(super) pages: Option<Pages>,
    allocations: BackendLock<Allocations>,
}

#[derive(Debug)]
pub(super) struct Allocations {
    /// The live allocations, by address.
    live: HashMap<u64, Live>,
    /// Memory of other code that was converted to arrays, by address. Memory that was handed out
    /// and came back is there again, behind the memory that owns it and is freed after it.
    external: HashMap<u64, SmallVec<[External; 1]>>,
    /// Memory that both the host and the GPU access, by its address on the GPU.
    mapped: HashMap<u64, Mapped>,
    /// The reserved addresses, and the memory of their pages.
    pub(super) reservations: Reservations,
    in_use_bytes: u64,
    /// The managed memory among the mapped, which counts as in use too.
    managed: ByteCount,
    /// Freed memory that work in flight still uses, or that the driver refused to free, by address.
    /// Only on devices without pools.
    draining: HashMap<u64, Draining>,
    limit_bytes: Option<u64>,
    /// What the driver's pool held beyond the bytes in use after the last `trim`, since it
    /// allocates in large blocks.
    untrimmed_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    len_bytes: u64,
    /// Whether other code was handed the memory, so that it may come back.
    is_lent: bool,
}

impl Live {
    fn new(len_bytes: u64) -> Self {
        Self { len_bytes, is_lent: false }
    }
}

#[derive(Debug)]
struct External {
    allocation: ExternalAllocation,
    /// 0 if the memory lies in memory that was handed out, which counts already.
    counted_bytes: u64,
    /// Whether other code was handed the memory in turn.
    is_lent: bool,
}

#[derive(Debug)]
struct Mapped {
    memory: Arc<dyn HostMemory>,
    /// For managed memory.
    _counted: Option<CountedBytes>,
    /// Whether other code was handed the memory, so that it may come back.
    is_lent: bool,
}

#[derive(Clone, Copy, Debug)]
struct Draining {
    len_bytes: u64,
    /// Whether the last use of the memory has completed.
    is_drained: bool,
}

impl DeviceMemory {
    /// Creates the pool, if the device has pools; the context is current.
    pub(crate) fn open(context: &Context) -> Result<Self, BackendError> {
        let driver = context.driver();
        // A driver without pools does not know the attribute either.
        let has_pools =
            || context.attribute(DeviceAttribute::MemoryPools).is_ok_and(|has| has != 0);
        let pool = match PoolFunctions::of(driver).filter(|_| has_pools()) {
            Some(functions) => Some(MemoryPool::create(driver, functions, context.place())?),
            None => None,
        };
        let pages = Pages::open(context);
        let reservations = Reservations::new(pages.as_ref().map_or(1, Pages::page_bytes));
        let allocations = BackendLock::new(Allocations::new(reservations));
        Ok(Self { driver, pool, pages, allocations })
    }

    /// Whether `free` queues the free on a stream. Otherwise `start_draining` marks memory as
    /// freed, and `free_all_drained` frees it once its last use has completed.
    pub(crate) fn frees_in_order(&self) -> bool {
        self.pool.is_some()
    }

    /// Allocates memory for use on `stream`; the context is current.
    pub(crate) fn allocate(
        &self,
        len_bytes: u64,
        stream: StreamHandle,
    ) -> Result<Address, BackendError> {
        self.free_all_drained();
        self.count(len_bytes)?;
        let outcome = self.allocate_unlimited(len_bytes, stream);
        let mut allocations = self.allocations();
        match outcome {
            Ok(Address(address)) => drop(allocations.live.insert(address, Live::new(len_bytes))),
            Err(_) => allocations.in_use_bytes -= len_bytes,
        }
        outcome
    }

    /// Adds the bytes to those in use, unless that would exceed the limit.
    fn count(&self, len_bytes: u64) -> Result<(), BackendError> {
        let mut allocations = self.allocations();
        allocations.expect_below_limit(len_bytes)?;
        allocations.in_use_bytes += len_bytes;
        Ok(())
    }

    fn allocate_unlimited(
        &self,
        len_bytes: u64,
        stream: StreamHandle,
    ) -> Result<Address, BackendError> {
        let mut address = 0;
        let outcome = match &self.pool {
            Some(pool) => pool.allocate(&mut address, len_bytes, stream),
            None => {
                let _relaxed = Relaxed::enter(self.driver);
                let allocate = &self.driver.allocate;
                // SAFETY: the context is current; the driver writes one address.
                let outcome = unsafe { (allocate.function)(&raw mut address, len_bytes as usize) };
                allocate.check(outcome)
            }
        };
        match outcome {
            Ok(()) => Ok(Address(address)),
            Err(error) if is_out_of_memory(&error) => {
                Err(self.out_of_memory(len_bytes, error.call))
            }
            Err(error) => Err(error),
        }
    }

    /// Frees memory after the work queued on `stream`, on devices with pools.
    pub(crate) fn free(
        &self,
        Address(address): Address,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        self.check_live(address)?;
        // The entry is removed before the driver frees the memory. Afterwards the driver may give
        // the address to another thread, whose new entry must not be removed.
        let Some(pool) = &self.pool else {
            return Err(invalid("free", "the device has no pool of memory".to_owned()));
        };
        let len_bytes = self.remove_live(address);
        // SAFETY: the address came from `allocate` and is live (`check_live`). The caller ordered
        // the stream after all uses (contract in `backend`).
        unsafe { pool.free(address, stream) }.inspect_err(|_| {
            let mut allocations = self.allocations();
            allocations.live.insert(address, Live::new(len_bytes));
            allocations.in_use_bytes += len_bytes;
        })
    }

    /// Allocates memory for one copy on `stream`; the context is current. It does not count as in
    /// use, so that no array gives way to it. `None` on devices without pools, or if the limit or
    /// the device has no room.
    pub(crate) fn allocate_temporary(
        &self,
        len_bytes: u64,
        stream: StreamHandle,
    ) -> Option<Address> {
        let pool = self.pool.as_ref().filter(|_| !self.is_beyond_limit(len_bytes))?;
        let mut address = 0;
        pool.allocate(&mut address, len_bytes, stream).ok().map(|()| Address(address))
    }

    /// Frees such memory after the work queued on `stream`. If the driver refuses, it is asked once
    /// more; then the memory leaks, as staging blocks do.
    ///
    /// # Safety
    ///
    /// The address came from `allocate_temporary` and is not freed yet. The stream is ordered after
    /// all uses of the memory.
    pub(crate) unsafe fn free_temporary(&self, Address(address): Address, stream: StreamHandle) {
        let Some(pool) = &self.pool else { return };
        // SAFETY: the caller's promise is passed on; `any` ends with the first call that succeeds.
        let _leaked = !(0..2).any(|_| unsafe { pool.free(address, stream) }.is_ok());
    }

    /// Marks memory as freed, on devices without pools. The memory is "draining" until its last use
    /// has completed.
    pub(crate) fn start_draining(&self, Address(address): Address) -> Result<(), BackendError> {
        self.check_live(address)?;
        let len_bytes = self.remove_live(address);
        self.allocations().draining.insert(address, Draining { len_bytes, is_drained: false });
        Ok(())
    }

    /// The last use of freed memory has completed, so that `free_all_drained` frees it.
    pub(crate) fn mark_drained(&self, Address(address): Address) {
        if let Some(draining) = self.allocations().draining.get_mut(&address) {
            draining.is_drained = true;
        }
    }

    /// Frees the memory whose last use has completed; the context is current. What the driver
    /// refuses to free, a later call frees.
    pub(crate) fn free_all_drained(&self) {
        if self.pool.is_some() {
            return;
        }
        // The entry is removed first, so that only one thread frees the memory, and no lock is held
        // during the driver calls.
        let drained: Vec<(u64, Draining)> =
            self.allocations().draining.extract_if(|_, draining| draining.is_drained).collect();
        let _relaxed = (!drained.is_empty()).then(|| Relaxed::enter(self.driver));
        for (address, draining) in drained {
            // SAFETY: the address came from `allocate`, was freed once (`start_draining`), its last
            // use has completed, and only this thread has it now.
            if unsafe { (self.driver.free.function)(address) } != status::SUCCESS {
                self.allocations().draining.insert(address, draining);
            }
        }
    }

    /// Fails if the library has no live memory at this address.
    pub(crate) fn check_live(&self, address: u64) -> Result<(), BackendError> {
        if self.allocations().live.contains_key(&address) {
            return Ok(());
        }
        let detail = format!(
            "no live memory starts at device address {address:#x}; it was freed before or never \
             allocated here"
        );
        Err(invalid("free", detail))
    }

    /// Removes live memory from the table, and returns its bytes.
    pub(crate) fn remove_live(&self, address: u64) -> u64 {
        let mut allocations = self.allocations();
        let len_bytes = allocations.live.remove(&address).map_or(0, |live| live.len_bytes);
        allocations.in_use_bytes -= len_bytes;
        len_bytes
    }

    /// Stores an external slice whose memory an array uses from now on.
    pub(crate) fn insert_external(
        &self,
        address: u64,
        external: ExternalAllocation,
    ) -> Result<(), BackendError> {
        let mut allocations = self.allocations();
        let memory = AddressRange::new(address, external.len_bytes());
        let counted = counted_bytes(memory, allocations.in_use())
            .and_then(|own| Ok(own.min(counted_in_pinned(memory)?)));
        match counted {
            Ok(counted_bytes) => {
                let external = External { allocation: external, counted_bytes, is_lent: false };
                allocations.external.entry(address).or_default().push(external);
                Ok(())
            }
            Err(detail) => {
                // The drop of the memory calls other code, which must find no lock held.
                drop(allocations);
                drop(external);
                Err(invalid("take_over", detail))
            }
        }
    }

    /// Other code has been handed the memory at an address, and may hand it back.
    pub(crate) fn mark_lent(&self, Address(address): Address) {
        let mut allocations = self.allocations();
        if let Some(external) =
            allocations.external.get_mut(&address).and_then(|all| all.last_mut())
        {
            external.is_lent = true;
        } else if let Some(live) = allocations.live.get_mut(&address) {
            live.is_lent = true;
        } else if let Some(mapped) = allocations.mapped.get_mut(&address) {
            mapped.is_lent = true;
        } else {
            allocations.reservations.mark_lent(address);
        }
    }

    /// Removes and returns the external slice at an address, if there is one.
    pub(crate) fn take_external(&self, address: u64) -> Option<ExternalAllocation> {
        let mut allocations = self.allocations();
        let all = allocations.external.get_mut(&address)?;
        let external = all.pop()?;
        if all.is_empty() {
            allocations.external.remove(&address);
        }
        Some(external.allocation)
    }

    /// Stores memory that the host accesses too, and that an array uses from now on.
    pub(crate) fn insert_mapped(&self, Address(address): Address, memory: Arc<dyn HostMemory>) {
        self.allocations()
            .mapped
            .insert(address, Mapped { memory, _counted: None, is_lent: false });
    }

    /// Removes and returns the mapped memory at an address, if there is any.
    pub(crate) fn take_mapped(&self, Address(address): Address) -> Option<Arc<dyn HostMemory>> {
        self.allocations().mapped.remove(&address).map(|mapped| mapped.memory)
    }

    /// Whether the host accesses the memory at an address too.
    pub(crate) fn is_mapped(&self, Address(address): Address) -> bool {
        self.allocations().mapped.contains_key(&address)
    }

    /// Allocates managed memory; the context is current. The driver would allocate more than the
    /// device has, and move pages to and fro, so this refuses what does not fit. Pages of managed
    /// memory may be on the host, where the driver's free bytes do not count them, so the bytes in
    /// use are compared with those of the device too.
    pub(crate) fn allocate_managed(
        &self,
        context: &Arc<Context>,
        len_bytes: usize,
    ) -> Result<MappedMemory, BackendError> {
        expect_concurrent_access(context)?;
        self.free_all_drained();
        let (free, total) = free_and_total(self.driver)?;
        let requested = len_bytes as u64;
        let counted = {
            let allocations = self.allocations();
            let free = free.min(total.saturating_sub(allocations.all_bytes_in_use()));
            allocations.expect_below_limit(requested)?;
            if requested > free {
                return Err(BackendError {
                    kind: BackendErrorKind::OutOfMemory { requested, free, draining: 0 },
                    call: self.driver.allocate_managed.name,
                    detail: String::from("managed memory is not asked for beyond what is free"),
                });
            }
            allocations.managed.count(len_bytes)
        };
        let memory = ManagedMemory::allocate(context, len_bytes, free)?;
        let address = memory.address();
        let memory = Arc::new(memory) as Arc<dyn HostMemory>;
        let mapped =
            Mapped { memory: Arc::clone(&memory), _counted: Some(counted), is_lent: false };
        self.allocations().mapped.insert(address.0, mapped);
        Ok((address, memory))
    }

    /// Returns unused memory to the driver.
    pub(crate) fn trim(&self) -> Result<(), BackendError> {
        self.free_all_drained();
        self.trim_pages();
        let Some(pool) = &self.pool else { return Ok(()) };
        pool.trim()?;
        let reserved_bytes = pool.reserved_bytes();
        let mut allocations = self.allocations();
        allocations.untrimmed_bytes = reserved_bytes.saturating_sub(allocations.in_use_bytes);
        Ok(())
    }

    /// Whether the library holds more than the limit, the memory that is kept for reuse included,
    /// and `trim` may return some.
    pub(crate) fn holds_too_much(&self) -> bool {
        let Some(limit_bytes) = self.limit_bytes() else { return false };
        let pooled_bytes = self.usage().pooled;
        let allocations = self.allocations();
        let unused_bytes = pooled_bytes.saturating_sub(allocations.untrimmed_bytes);
        unused_bytes > 0 && allocations.all_bytes_in_use() + unused_bytes > limit_bytes
    }

    pub(crate) fn usage(&self) -> MemoryUsage {
        let allocations = self.allocations();
        let own = allocations.in_use_bytes;
        let managed = allocations.managed.get();
        let committed = allocations.reservations.committed_bytes();
        let pooled_pages = allocations.reservations.pooled_bytes();
        let draining: u64 = allocations.draining.values().map(|draining| draining.len_bytes).sum();
        let external: u64 =
            allocations.external.values().flatten().map(|known| known.counted_bytes).sum();
        drop(allocations);
        let pooled =
            self.pool.as_ref().map_or(draining, |pool| pool.reserved_bytes().saturating_sub(own));
        MemoryUsage {
            in_use: own + external + managed + committed,
            pooled: pooled + pooled_pages,
            ..MemoryUsage::default()
        }
    }

    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.allocations().limit_bytes
    }

    /// Limits the bytes in use and those kept for reuse, or ends the limit. Memory in use stays.
    pub(crate) fn set_limit(&self, limit_bytes: Option<u64>) {
        self.allocations().limit_bytes = limit_bytes;
    }

    /// Whether `len_bytes` more bytes would exceed the limit.
    pub(crate) fn is_beyond_limit(&self, len_bytes: u64) -> bool {
        self.allocations().bytes_below_limit() < len_bytes
    }

    /// Lets another device read and write the memory of the pool and of pages directly.
    pub(crate) fn share_with(&self, peer: usize) -> Result<(), BackendError> {
        self.pool.as_ref().map_or(Ok(()), |pool| pool.share_with(peer))?;
        self.share_pages_with(peer as i32)
    }

    #[cold]
    pub(super) fn out_of_memory(&self, requested: u64, call: &'static str) -> BackendError {
        let free = free_and_total(self.driver).map_or(0, |(free, _)| free);
        let kind = BackendErrorKind::OutOfMemory { requested, free, draining: 0 };
        BackendError { kind, call, detail: String::new() }
    }

    pub(super) fn allocations(&self) -> BackendGuard<'_, Allocations> {
        self.allocations.lock()
    }
}

impl Allocations {
    fn new(reservations: Reservations) -> Self {
        Self {
            live: HashMap::new(),
            external: HashMap::new(),
            mapped: HashMap::new(),
            reservations,
            in_use_bytes: 0,
            managed: ByteCount::default(),
            draining: HashMap::new(),
            limit_bytes: None,
            untrimmed_bytes: 0,
        }
    }

    /// The memory that arrays use.
    fn in_use(&self) -> impl Iterator<Item = InUse> {
        let live = self.live.iter().map(|(start, live)| InUse {
            range: AddressRange::new(*start, live.len_bytes),
            is_lent: live.is_lent,
        });
        let external = self.external.iter().flat_map(|(start, all)| {
            all.iter().map(|external| InUse {
                range: AddressRange::new(*start, external.allocation.len_bytes()),
                is_lent: external.is_lent,
            })
        });
        let mapped = self.mapped.iter().map(|(start, mapped)| InUse {
            range: AddressRange::new(*start, mapped.memory.len_bytes() as u64),
            is_lent: mapped.is_lent,
        });
        live.chain(external).chain(mapped).chain(self.reservations.in_use())
    }

    fn bytes_below_limit(&self) -> u64 {
        self.limit_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(self.all_bytes_in_use()))
    }

    /// Where the decommit of pages is queued whose memory a commit of `len_bytes` has to use, since
    /// new memory would exceed the limit. `None` inside kernel bodies, where no call may wait.
    pub(super) fn leaving_to_reuse(&self, len_bytes: u64) -> Option<QueuedAt> {
        let new_bytes = len_bytes.saturating_sub(self.reservations.kept_bytes());
        let held_bytes = self.all_bytes_in_use() + self.reservations.pooled_bytes();
        let is_beyond = self.limit_bytes.is_some_and(|limit| held_bytes + new_bytes > limit);
        (new_bytes > 0 && is_beyond && !scope::is_in_body())
            .then(|| self.reservations.any_leaving())?
    }

    /// The bytes in use, those of managed memory and of pages included.
    fn all_bytes_in_use(&self) -> u64 {
        self.in_use_bytes + self.managed.get() + self.reservations.committed_bytes()
    }

    pub(super) fn expect_below_limit(&self, requested: u64) -> Result<(), BackendError> {
        let free = self.bytes_below_limit();
        if requested <= free {
            return Ok(());
        }
        let limit_bytes = self.limit_bytes.unwrap_or_default();
        Err(BackendError {
            kind: BackendErrorKind::OutOfMemory { requested, free, draining: 0 },
            call: "allocate",
            detail: format!("the limit set for this library is {limit_bytes} bytes"),
        })
    }
}

/// The free and the total bytes of the current context's device.
pub(crate) fn free_and_total(driver: &'static Driver) -> Result<(u64, u64), BackendError> {
    let (mut free, mut total) = (0_usize, 0_usize);
    let _relaxed = Relaxed::enter(driver);
    let ask = &driver.memory_info;
    // SAFETY: the driver writes two sizes.
    ask.check(unsafe { (ask.function)(&raw mut free, &raw mut total) })?;
    Ok((free as u64, total as u64))
}

pub(super) fn is_out_of_memory(error: &BackendError) -> bool {
    error.kind == BackendErrorKind::Driver { code: i64::from(status::OUT_OF_MEMORY) }
}
