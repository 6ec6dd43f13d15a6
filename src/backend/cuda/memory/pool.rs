//! The driver's stream-ordered memory pool. The library creates its own pool and leaves the
//! device's default pool as other code configured it.

use std::ffi::{c_int, c_uchar, c_void};

use cudarc::driver::sys::{self, CUmemPool_attribute, CUresult};

use crate::backend::BackendError;
use crate::backend::cuda::call::check;
use crate::backend::cuda::capture_mode::Relaxed;

#[derive(Debug)]
pub(super) struct MemoryPool(sys::CUmemoryPool);

// SAFETY: the handle only names a pool, and the driver's functions are thread-safe.
unsafe impl Send for MemoryPool {}
// SAFETY: as above.
unsafe impl Sync for MemoryPool {}

const LOCATION_DEVICE: c_int = 1;

/// `CUmemPoolProps`, with the layout of the driver's ABI since CUDA 11.2. The bindings name its
/// fields differently from version to version.
#[repr(C)]
struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
    security_attributes: *mut c_void,
    reserved: [c_uchar; 64],
}

const _: () =
    assert!(size_of::<PoolProperties>() == size_of::<sys::CUmemPoolProps>(), "the driver's layout");

/// `CUmemAccessDesc`, declared here because the bindings name its fields differently from version
/// to version, too.
#[repr(C)]
struct PoolAccess {
    location_type: c_int,
    location_id: c_int,
    flags: c_int,
}

const _: () =
    assert!(size_of::<PoolAccess>() == size_of::<sys::CUmemAccessDesc>(), "the driver's layout");

impl MemoryPool {
    /// Creates a pool of pinned device memory that is not shared with other processes. It keeps
    /// freed memory for later allocations until `trim`, so in a steady state no memory is taken
    /// from the system.
    pub(super) fn create(ordinal: usize) -> Result<Self, BackendError> {
        const PINNED: c_int = 1;
        let mut pool = std::ptr::null_mut();
        let properties = PoolProperties {
            allocation_type: PINNED,
            handle_types: 0,
            location_type: LOCATION_DEVICE,
            location_id: ordinal as c_int,
            security_attributes: std::ptr::null_mut(),
            reserved: [0; 64],
        };
        let _relaxed = Relaxed::enter();
        // SAFETY: the driver reads one `CUmemPoolProps`, whose layout `PoolProperties` matches, and
        // writes one handle.
        let outcome =
            unsafe { sys::cuMemPoolCreate(&raw mut pool, (&raw const properties).cast()) };
        check(outcome, "cuMemPoolCreate")?;
        let pool = Self(pool);
        pool.keep_freed_memory()?;
        Ok(pool)
    }

    fn keep_freed_memory(&self) -> Result<(), BackendError> {
        let mut threshold = u64::MAX;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        let value: *mut c_void = (&raw mut threshold).cast();
        // SAFETY: the attribute is a `cuuint64_t`, which the driver reads.
        let outcome = unsafe { sys::cuMemPoolSetAttribute(self.0, attribute, value) };
        check(outcome, "cuMemPoolSetAttribute")
    }

    /// Allocates memory in the order of `stream`, which belongs to the current context.
    pub(super) fn allocate(
        &self,
        address: &mut u64,
        len_bytes: u64,
        stream: sys::CUstream,
    ) -> CUresult {
        // SAFETY: the pool lives as long as `self`; the driver writes one address.
        unsafe { sys::cuMemAllocFromPoolAsync(address, len_bytes as usize, self.0, stream) }
    }

    /// Returns unused memory to the system.
    pub(super) fn trim(&self) -> Result<(), BackendError> {
        let _relaxed = Relaxed::enter();
        // SAFETY: the pool lives as long as `self`.
        check(unsafe { sys::cuMemPoolTrimTo(self.0, 0) }, "cuMemPoolTrimTo")
    }

    /// The bytes of device memory that the pool holds; 0 if the driver does not report them.
    pub(super) fn reserved_bytes(&self) -> u64 {
        let mut reserved: u64 = 0;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        let _relaxed = Relaxed::enter();
        // SAFETY: the attribute is a `cuuint64_t`, which the driver writes.
        let outcome =
            unsafe { sys::cuMemPoolGetAttribute(self.0, attribute, (&raw mut reserved).cast()) };
        if outcome == CUresult::CUDA_SUCCESS { reserved } else { 0 }
    }

    /// Lets another device read and write the pool's memory directly.
    pub(super) fn share_with(&self, peer: usize) -> Result<(), BackendError> {
        const READ_WRITE: c_int = 3;
        let access = PoolAccess {
            location_type: LOCATION_DEVICE,
            location_id: peer as c_int,
            flags: READ_WRITE,
        };
        let _relaxed = Relaxed::enter();
        // SAFETY: the driver reads one `CUmemAccessDesc`, whose layout `PoolAccess` matches; the
        // pool lives as long as `self`.
        let outcome = unsafe { sys::cuMemPoolSetAccess(self.0, (&raw const access).cast(), 1) };
        check(outcome, "cuMemPoolSetAccess")
    }
}
