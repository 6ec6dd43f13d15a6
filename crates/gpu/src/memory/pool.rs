//! The driver's stream-ordered memory pool. The library creates its own pool and leaves the
//! device's default pool as other code configured it.

use std::ffi::{c_int, c_uchar, c_void};

use crate::capture_mode::Relaxed;
use crate::driver::{
    DeviceAccess, Driver, DriverFunction, Place, PoolHandle, Status, StreamHandle, status,
};
use resident_backend::BackendError;

#[derive(Debug)]
pub(super) struct MemoryPool {
    handle: PoolHandle,
    driver: &'static Driver,
    functions: PoolFunctions,
}

// SAFETY: the handle only names a pool, and the driver's functions are thread-safe.
unsafe impl Send for MemoryPool {}
// SAFETY: as above.
unsafe impl Sync for MemoryPool {}

type PoolAttribute = unsafe extern "C" fn(PoolHandle, c_int, *mut c_void) -> Status;

/// The driver's functions for pools, all of which it has or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolFunctions {
    create: DriverFunction<unsafe extern "C" fn(*mut PoolHandle, *const c_void) -> Status>,
    set_attribute: DriverFunction<PoolAttribute>,
    attribute: DriverFunction<PoolAttribute>,
    set_access:
        DriverFunction<unsafe extern "C" fn(PoolHandle, *const DeviceAccess, usize) -> Status>,
    trim: DriverFunction<unsafe extern "C" fn(PoolHandle, usize) -> Status>,
    allocate:
        DriverFunction<unsafe extern "C" fn(*mut u64, usize, PoolHandle, StreamHandle) -> Status>,
    free: DriverFunction<unsafe extern "C" fn(u64, StreamHandle) -> Status>,
}

impl PoolFunctions {
    /// The functions, if the driver has them.
    pub(super) fn of(driver: &Driver) -> Option<Self> {
        Some(Self {
            create: driver.create_pool?,
            set_attribute: driver.set_pool_attribute?,
            attribute: driver.pool_attribute?,
            set_access: driver.set_pool_access?,
            trim: driver.trim_pool?,
            allocate: driver.allocate_from_pool?,
            free: driver.free_in_order?,
        })
    }
}

const LOCATION_DEVICE: c_int = 1;

/// `CUmemPoolProps`, with the layout of the driver's ABI since CUDA 11.2, and `hipMemPoolProps`.
/// The bindings name its fields differently from version to version.
#[repr(C)]
struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
    security_attributes: *mut c_void,
    reserved: [c_uchar; 64],
}

#[cfg(feature = "cuda")]
const _: () = {
    use cudarc::driver::sys;
    assert!(size_of::<PoolProperties>() == size_of::<sys::CUmemPoolProps>(), "the driver's layout");
};

impl MemoryPool {
    /// Creates a pool of pinned device memory that is not shared with other processes. It keeps
    /// freed memory for later allocations until `trim`, so in a steady state no memory is taken
    /// from the system.
    pub(super) fn create(
        driver: &'static Driver,
        functions: PoolFunctions,
        place: Place,
    ) -> Result<Self, BackendError> {
        const PINNED: c_int = 1;
        let mut handle = std::ptr::null_mut();
        let properties = PoolProperties {
            allocation_type: PINNED,
            handle_types: 0,
            location_type: LOCATION_DEVICE,
            location_id: place.device,
            security_attributes: std::ptr::null_mut(),
            reserved: [0; 64],
        };
        let _relaxed = Relaxed::enter(driver);
        let create = &functions.create;
        // SAFETY: the driver reads one struct, whose layout `PoolProperties` matches, and writes
        // one handle.
        let outcome = unsafe { (create.function)(&raw mut handle, (&raw const properties).cast()) };
        create.check(outcome)?;
        let pool = Self { handle, driver, functions };
        pool.keep_freed_memory()?;
        Ok(pool)
    }

    fn keep_freed_memory(&self) -> Result<(), BackendError> {
        const RELEASE_THRESHOLD: c_int = 4;
        let mut threshold = u64::MAX;
        let value: *mut c_void = (&raw mut threshold).cast();
        let set = &self.functions.set_attribute;
        // SAFETY: the attribute has 64 bits, which the driver reads.
        set.check(unsafe { (set.function)(self.handle, RELEASE_THRESHOLD, value) })
    }

    /// Allocates memory in the order of `stream`, which belongs to the current context.
    pub(super) fn allocate(
        &self,
        address: &mut u64,
        len_bytes: u64,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        let allocate = &self.functions.allocate;
        // SAFETY: the pool lives as long as `self`; the driver writes one address.
        let outcome =
            unsafe { (allocate.function)(address, len_bytes as usize, self.handle, stream) };
        allocate.check(outcome)
    }

    /// Frees memory after the work queued on `stream`.
    ///
    /// # Safety
    ///
    /// The address came from `allocate` and is not freed yet. The stream is ordered after all uses
    /// of the memory.
    pub(super) unsafe fn free(
        &self,
        address: u64,
        stream: StreamHandle,
    ) -> Result<(), BackendError> {
        let free = &self.functions.free;
        // SAFETY: the caller's promise is passed on.
        free.check(unsafe { (free.function)(address, stream) })
    }

    /// Returns unused memory to the system.
    pub(super) fn trim(&self) -> Result<(), BackendError> {
        let _relaxed = Relaxed::enter(self.driver);
        let trim = &self.functions.trim;
        // SAFETY: the pool lives as long as `self`.
        trim.check(unsafe { (trim.function)(self.handle, 0) })
    }

    /// The bytes of device memory that the pool holds; 0 if the driver does not report them.
    pub(super) fn reserved_bytes(&self) -> u64 {
        const RESERVED_CURRENT: c_int = 5;
        let mut reserved: u64 = 0;
        let value: *mut c_void = (&raw mut reserved).cast();
        let _relaxed = Relaxed::enter(self.driver);
        // SAFETY: the attribute has 64 bits, which the driver writes.
        let outcome =
            unsafe { (self.functions.attribute.function)(self.handle, RESERVED_CURRENT, value) };
        if outcome == status::SUCCESS { reserved } else { 0 }
    }

    /// Lets another device read and write the pool's memory directly.
    pub(super) fn share_with(&self, peer: usize) -> Result<(), BackendError> {
        let access = DeviceAccess::read_write(peer as c_int);
        let _relaxed = Relaxed::enter(self.driver);
        let set = &self.functions.set_access;
        // SAFETY: the driver reads one struct, whose layout `DeviceAccess` matches; the pool lives
        // as long as `self`.
        set.check(unsafe { (set.function)(self.handle, &raw const access, 1) })
    }
}
