//! Memory of one GPU: a pool of this library's own, so that the device's default pool stays as
//! others set it.

use std::collections::HashMap;
use std::ffi::{c_int, c_uchar, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute, CUmemPool_attribute, CUresult};

use super::call::{check, refusal};
use super::context::Context;
use super::lent::Lent;
use crate::backend::{Address, BackendError, BackendErrorKind, MemoryUsage};

/// Where memory comes from.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    /// `None` on devices without pools, whose memory is taken and given back by calls that wait for
    /// the device.
    pool: Option<Pool>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Bytes by address.
    live: HashMap<u64, u64>,
    /// Memory of others, by address.
    lent: HashMap<u64, Lent>,
    in_use_bytes: u64,
    /// Of devices without pools: freed, and still used by work in flight, or refused by the driver
    /// when it was to be given back.
    draining: HashMap<u64, Draining>,
    limit_bytes: Option<u64>,
}

impl Held {
    fn free_below_limit(&self) -> u64 {
        self.limit_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(self.in_use_bytes))
    }
}

#[derive(Clone, Copy, Debug)]
struct Draining {
    len_bytes: u64,
    /// Its last use is over.
    is_idle: bool,
}

/// A memory pool's handle.
#[derive(Debug)]
struct Pool(sys::CUmemoryPool);

// SAFETY: the handle is a name for the driver, whose functions are thread safe.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// `CUmemPoolProps` as the driver's ABI has it since CUDA 11.2: the bindings' own field names
/// change from version to version.
#[repr(C)]
struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
    security_attributes: *mut c_void,
    reserved: [c_uchar; 64],
}

const _: () = assert!(
    size_of::<PoolProperties>() == size_of::<sys::CUmemPoolProps>(),
    "the layout that the driver reads"
);

impl PoolProperties {
    /// Page-locked allocations on one device, not to be shared with other processes.
    fn on_device(ordinal: usize) -> Self {
        const PINNED: c_int = 1;
        const ON_DEVICE: c_int = 1;
        Self {
            allocation_type: PINNED,
            handle_types: 0,
            location_type: ON_DEVICE,
            location_id: ordinal as c_int,
            security_attributes: std::ptr::null_mut(),
            reserved: [0; 64],
        }
    }
}

/// `CUmemAccessDesc`, likewise.
#[repr(C)]
struct PoolAccess {
    location_type: c_int,
    location_id: c_int,
    flags: c_int,
}

const _: () = assert!(
    size_of::<PoolAccess>() == size_of::<sys::CUmemAccessDesc>(),
    "the layout that the driver reads"
);

impl DeviceMemory {
    /// Makes the pool if the device has such; the context is current.
    pub(super) fn open(context: &Context) -> Result<Self, BackendError> {
        let has_pools =
            context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        let pool = if has_pools { Some(Pool::create(context.ordinal())?) } else { None };
        Ok(Self { pool, held: Mutex::default() })
    }

    /// Whether `free` is queued on a stream; otherwise memory is given back by `release`, when its
    /// last use is known to be over.
    pub(super) fn frees_in_order(&self) -> bool {
        self.pool.is_some()
    }

    /// Takes memory, for use on `stream`; the context is current.
    pub(super) fn allocate(
        &self,
        len_bytes: u64,
        stream: sys::CUstream,
    ) -> Result<Address, BackendError> {
        self.give_back_idle();
        self.reserve(len_bytes)?;
        let outcome = self.allocate_unlimited(len_bytes, stream);
        let mut held = self.held();
        match outcome {
            Ok(Address(address)) => drop(held.live.insert(address, len_bytes)),
            Err(_) => held.in_use_bytes -= len_bytes,
        }
        outcome
    }

    /// Whether the limit forbids so many bytes more.
    pub(super) fn is_beyond_limit(&self, len_bytes: u64) -> bool {
        self.held().free_below_limit() < len_bytes
    }

    /// Counts the bytes as in use, unless the limit forbids it.
    fn reserve(&self, len_bytes: u64) -> Result<(), BackendError> {
        let mut held = self.held();
        let free = held.free_below_limit();
        if len_bytes > free {
            let detail = format!(
                "the limit set for this library is {} bytes",
                held.limit_bytes.unwrap_or_default()
            );
            return Err(BackendError {
                kind: BackendErrorKind::OutOfMemory { requested: len_bytes, free },
                call: "allocate",
                detail,
            });
        }
        held.in_use_bytes += len_bytes;
        Ok(())
    }

    fn allocate_unlimited(
        &self,
        len_bytes: u64,
        stream: sys::CUstream,
    ) -> Result<Address, BackendError> {
        let mut address = 0;
        let call = if self.pool.is_some() { "cuMemAllocFromPoolAsync" } else { "cuMemAlloc" };
        let outcome = match &self.pool {
            Some(Pool(pool)) => {
                // SAFETY: pool and stream are of the current context; the driver writes one
                // address.
                unsafe {
                    sys::cuMemAllocFromPoolAsync(
                        &raw mut address,
                        len_bytes as usize,
                        *pool,
                        stream,
                    )
                }
            }
            // SAFETY: the driver writes one address.
            None => unsafe { sys::cuMemAlloc_v2(&raw mut address, len_bytes as usize) },
        };
        match outcome {
            CUresult::CUDA_SUCCESS => Ok(Address(address)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(out_of_memory(len_bytes, call)),
            other => Err(refusal(other, call)),
        }
    }

    /// Gives memory back behind what is queued on `stream`; of devices with pools.
    pub(super) fn free(
        &self,
        Address(address): Address,
        stream: sys::CUstream,
    ) -> Result<(), BackendError> {
        self.known(address)?;
        // Before the driver has it: it may give the address out again at once, to another thread,
        // whose entry this must not be.
        let len_bytes = self.forget(address);
        // SAFETY: the address came from `allocate` and was not freed since (`known`); whoever frees
        // it ordered the stream behind all uses.
        check(unsafe { sys::cuMemFreeAsync(address, stream) }, "cuMemFreeAsync").inspect_err(|_| {
            let mut held = self.held();
            held.live.insert(address, len_bytes);
            held.in_use_bytes += len_bytes;
        })
    }

    /// Memory is freed, and drains until its last use is over: `release`. Of devices without pools.
    pub(super) fn drain(&self, Address(address): Address) -> Result<(), BackendError> {
        self.known(address)?;
        let len_bytes = self.forget(address);
        self.held().draining.insert(address, Draining { len_bytes, is_idle: false });
        Ok(())
    }

    /// The last use of draining memory is over: it is given back; later if the context is not
    /// current, or the driver refuses.
    pub(super) fn release(&self, Address(address): Address, is_current: bool) {
        if let Some(draining) = self.held().draining.get_mut(&address) {
            draining.is_idle = true;
        }
        if is_current {
            self.give_back_idle();
        }
    }

    fn give_back_idle(&self) {
        if self.pool.is_some() {
            return;
        }
        // Taken out first: two threads must not give the same memory back, and the lock is not held
        // while the driver works.
        let idle: Vec<(u64, Draining)> =
            self.held().draining.extract_if(|_, draining| draining.is_idle).collect();
        for (address, draining) in idle {
            // SAFETY: the address came from `allocate`, was freed once (`drain`), and its last use
            // is over; nobody else has it now.
            if check(unsafe { sys::cuMemFree_v2(address) }, "cuMemFree").is_err() {
                self.held().draining.insert(address, draining);
            }
        }
    }

    /// Fails if the address is not that of live memory.
    pub(super) fn known(&self, address: u64) -> Result<(), BackendError> {
        if self.held().live.contains_key(&address) {
            return Ok(());
        }
        let detail = format!(
            "no live memory starts at device address {address:#x}; it was freed before or never allocated here"
        );
        Err(super::call::invalid("free", detail))
    }

    /// It is in nobody's hands here any more. Returns its bytes.
    pub(super) fn forget(&self, address: u64) -> u64 {
        let mut held = self.held();
        let len_bytes = held.live.remove(&address).unwrap_or_default();
        held.in_use_bytes -= len_bytes;
        len_bytes
    }

    /// Gives back what the pool keeps.
    pub(super) fn trim(&self) -> Result<(), BackendError> {
        self.give_back_idle();
        let Some(Pool(pool)) = &self.pool else { return Ok(()) };
        // SAFETY: the pool lives as long as `self`.
        check(unsafe { sys::cuMemPoolTrimTo(*pool, 0) }, "cuMemPoolTrimTo")
    }

    /// Keeps memory of somebody else's, in which an array lives from now on.
    pub(super) fn keep(&self, address: u64, lent: Lent) -> Result<(), BackendError> {
        let mut held = self.held();
        if held.live.contains_key(&address) || held.lent.contains_key(&address) {
            return Err(super::call::invalid(
                "take_over",
                format!("an array lives at device address {address:#x} already"),
            ));
        }
        held.lent.insert(address, lent);
        Ok(())
    }

    /// The memory of somebody else's at an address, if it is such. It is not kept any more.
    pub(super) fn defer_drop(&self, address: u64) -> Option<Lent> {
        self.held().lent.remove(&address)
    }

    pub(super) fn usage(&self) -> MemoryUsage {
        let held = self.held();
        let (own, draining) =
            (held.in_use_bytes, held.draining.values().map(|draining| draining.len_bytes).sum());
        let lent: u64 = held.lent.values().map(|lent| lent.len_bytes).sum();
        drop(held);
        let pooled =
            self.pool.as_ref().map_or(draining, |pool| pool.reserved_bytes().saturating_sub(own));
        MemoryUsage { in_use: own + lent, pooled }
    }

    pub(super) fn limit_bytes(&self) -> Option<u64> {
        self.held().limit_bytes
    }

    /// From now on no more than so much may be in use. What is, stays.
    pub(super) fn set_limit(&self, limit_bytes: u64) {
        self.held().limit_bytes = Some(limit_bytes);
    }

    /// Lets another device read and write the pool's memory directly.
    pub(super) fn share_with(&self, peer: usize) -> Result<(), BackendError> {
        const READ_WRITE: c_int = 3;
        let Some(Pool(pool)) = &self.pool else { return Ok(()) };
        let access = PoolAccess { location_type: 1, location_id: peer as c_int, flags: READ_WRITE };
        // SAFETY: the driver reads one `CUmemAccessDesc`, whose layout `PoolAccess` has; the pool
        // lives.
        check(
            unsafe { sys::cuMemPoolSetAccess(*pool, (&raw const access).cast(), 1) },
            "cuMemPoolSetAccess",
        )
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn create(ordinal: usize) -> Result<Self, BackendError> {
        let mut pool = std::ptr::null_mut();
        let properties = PoolProperties::on_device(ordinal);
        // SAFETY: the driver reads one `CUmemPoolProps`, whose layout `PoolProperties` has, and
        // writes one handle.
        check(
            unsafe { sys::cuMemPoolCreate(&raw mut pool, (&raw const properties).cast()) },
            "cuMemPoolCreate",
        )?;
        let pool = Self(pool);
        pool.keep_everything()?;
        Ok(pool)
    }

    /// Memory that was given back is kept for the next allocation until somebody trims: steady
    /// state then takes none from the system.
    fn keep_everything(&self) -> Result<(), BackendError> {
        let mut threshold = u64::MAX;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let value: *mut c_void = (&raw mut threshold).cast();
        // SAFETY: the attribute is a `cuuint64_t`, which the driver reads.
        check(
            unsafe { sys::cuMemPoolSetAttribute(self.0, attribute, value) },
            "cuMemPoolSetAttribute",
        )
    }

    /// What the pool holds of the device's memory; 0 where the driver does not tell.
    fn reserved_bytes(&self) -> u64 {
        let mut reserved: u64 = 0;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the attribute is a `cuuint64_t`, which the driver writes.
        let outcome =
            unsafe { sys::cuMemPoolGetAttribute(self.0, attribute, (&raw mut reserved).cast()) };
        if outcome == CUresult::CUDA_SUCCESS { reserved } else { 0 }
    }
}

/// Free and all bytes of the current context's device.
pub(super) fn free_and_total() -> Result<(u64, u64), BackendError> {
    let (mut free, mut total) = (0_usize, 0_usize);
    // SAFETY: the driver writes two sizes.
    check(unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) }, "cuMemGetInfo")?;
    Ok((free as u64, total as u64))
}

fn out_of_memory(requested: u64, call: &'static str) -> BackendError {
    let free = free_and_total().map_or(0, |(free, _)| free);
    BackendError {
        kind: BackendErrorKind::OutOfMemory { requested, free },
        call,
        detail: String::new(),
    }
}
