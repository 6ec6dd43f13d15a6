//! The driver's calls for addresses without memory, and for memory that is mapped to them.
//!
//! Each page has a piece of memory of its own (a `CUmemGenericAllocationHandle`), since the driver
//! unmaps only what one call mapped.

use std::ffi::c_int;

use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{
    AllocationProperties, DeviceAccess, DeviceAttribute, Driver, DriverFunction, Status, status,
};
use resident_backend::BackendError;
use resident_backend::sync::BackendLock;

/// A piece of memory of one page: `CUmemGenericAllocationHandle`,
/// `hipMemGenericAllocationHandle_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryHandle(pub(super) u64);

/// What a device needs to map memory.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) driver: PageDriver,
    /// Held while mappings change. The devices that may access them, beside the device itself.
    pub(super) mapping: BackendLock<Vec<c_int>>,
}

impl Pages {
    /// `None` if the device maps no memory.
    pub(super) fn open(context: &Context) -> Option<Self> {
        Some(Self { driver: PageDriver::open(context)?, mapping: BackendLock::default() })
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.driver.page_bytes()
    }
}

/// The driver's functions, all of which it has or none.
#[derive(Clone, Copy, Debug)]
struct PageFunctions {
    reserve: DriverFunction<unsafe extern "C" fn(*mut u64, usize, usize, u64, u64) -> Status>,
    free: DriverFunction<unsafe extern "C" fn(u64, usize) -> Status>,
    create: DriverFunction<Create>,
    release: DriverFunction<unsafe extern "C" fn(u64) -> Status>,
    map: DriverFunction<unsafe extern "C" fn(u64, usize, usize, u64, u64) -> Status>,
    unmap: DriverFunction<unsafe extern "C" fn(u64, usize) -> Status>,
    set_access: DriverFunction<SetAccess>,
}

type Create = unsafe extern "C" fn(*mut u64, usize, *const AllocationProperties, u64) -> Status;
type SetAccess = unsafe extern "C" fn(u64, usize, *const DeviceAccess, usize) -> Status;

/// The calls for one device.
#[derive(Debug)]
pub(super) struct PageDriver {
    driver: &'static Driver,
    functions: PageFunctions,
    device: c_int,
    page_bytes: u64,
}

impl PageFunctions {
    fn of(driver: &Driver) -> Option<Self> {
        Some(Self {
            reserve: driver.reserve_addresses?,
            free: driver.free_addresses?,
            create: driver.create_memory?,
            release: driver.release_memory?,
            map: driver.map_memory?,
            unmap: driver.unmap_memory?,
            set_access: driver.set_memory_access?,
        })
    }
}

impl PageDriver {
    /// `None` if the driver lacks a function, or the device does not support them.
    pub(super) fn open(context: &Context) -> Option<Self> {
        let (driver, device) = (context.driver(), context.place().device);
        let functions = PageFunctions::of(driver)?;
        // A driver without the functions does not know the attribute either.
        let has = context.attribute(DeviceAttribute::AddressManagement);
        let page_bytes = has.is_ok_and(|has| has != 0).then(|| page_bytes(driver, device))??;
        Some(Self { driver, functions, device, page_bytes })
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The number of the device.
    pub(super) fn device(&self) -> c_int {
        self.device
    }

    /// Relaxed mode for several calls.
    pub(super) fn relaxed(&self) -> Relaxed {
        Relaxed::enter(self.driver)
    }

    /// Reserves addresses: a multiple of the page's length.
    pub(super) fn reserve(&self, len_bytes: u64) -> Result<u64, BackendError> {
        let mut address = 0;
        let reserve = &self.functions.reserve;
        let len_bytes = len_bytes as usize;
        // SAFETY: the driver writes one address.
        let outcome = unsafe { (reserve.function)(&raw mut address, len_bytes, 0, 0, 0) };
        reserve.check(outcome).map(|()| address)
    }

    /// Frees all addresses of a reservation.
    ///
    /// # Safety
    ///
    /// `reserve` returned the address for this length; no memory is mapped there.
    pub(super) unsafe fn free(&self, address: u64, len_bytes: u64) -> Result<(), BackendError> {
        let free = &self.functions.free;
        // SAFETY: the caller's promise is passed on.
        free.check(unsafe { (free.function)(address, len_bytes as usize) })
    }

    /// Creates the memory of a page.
    pub(super) fn create(&self) -> Result<MemoryHandle, BackendError> {
        let mut handle = 0;
        let properties = AllocationProperties::of_device(self.device);
        let (create, len_bytes) = (&self.functions.create, self.page_bytes as usize);
        // SAFETY: the driver reads one struct, whose layout `AllocationProperties` matches, and
        // writes one handle.
        let outcome =
            unsafe { (create.function)(&raw mut handle, len_bytes, &raw const properties, 0) };
        create.check(outcome).map(|()| MemoryHandle(handle))
    }

    /// Releases the memory of a page.
    ///
    /// # Safety
    ///
    /// The handle came from `create`, and is released once. Its memory is mapped nowhere.
    pub(super) unsafe fn release(&self, handle: MemoryHandle) -> Result<(), BackendError> {
        let release = &self.functions.release;
        // SAFETY: the caller's promise is passed on.
        release.check(unsafe { (release.function)(handle.0) })
    }

    /// Maps memory to a page of reserved addresses.
    ///
    /// # Safety
    ///
    /// The address is that of a page of a reservation to which no memory is mapped; the memory is
    /// mapped nowhere.
    pub(super) unsafe fn map(
        &self,
        address: u64,
        handle: MemoryHandle,
    ) -> Result<(), BackendError> {
        let map = &self.functions.map;
        // SAFETY: the caller's promise is passed on.
        map.check(unsafe { (map.function)(address, self.page_bytes as usize, 0, handle.0, 0) })
    }

    /// Unmaps the memory of a page.
    ///
    /// # Safety
    ///
    /// Memory is mapped to the page at this address, and no work uses it any more.
    pub(super) unsafe fn unmap(&self, address: u64) -> Result<(), BackendError> {
        let unmap = &self.functions.unmap;
        // SAFETY: the caller's promise is passed on.
        unmap.check(unsafe { (unmap.function)(address, self.page_bytes as usize) })
    }

    /// Lets a device read and write memory that is mapped to these pages.
    ///
    /// # Safety
    ///
    /// Memory is mapped to all of the pages.
    pub(super) unsafe fn allow(
        &self,
        address: u64,
        len_bytes: u64,
        device: c_int,
    ) -> Result<(), BackendError> {
        let access = DeviceAccess::read_write(device);
        let set = &self.functions.set_access;
        let is_one_call = self.driver.vendor.sets_access_of_several;
        let call_bytes = if is_one_call { len_bytes } else { self.page_bytes } as usize;
        (address..address + len_bytes).step_by(call_bytes).try_for_each(|start| {
            // SAFETY: the driver reads one struct, whose layout `DeviceAccess` matches; the pages
            // are mapped, as the caller promises.
            set.check(unsafe { (set.function)(start, call_bytes, &raw const access, 1) })
        })
    }
}

/// The smallest piece of a device's memory that can be mapped.
fn page_bytes(driver: &'static Driver, device: c_int) -> Option<u64> {
    const MINIMUM: c_int = 0;
    let ask = driver.memory_granularity.as_ref()?;
    let properties = AllocationProperties::of_device(device);
    let mut granularity = 0;
    let _relaxed = Relaxed::enter(driver);
    // SAFETY: the driver reads one struct, whose layout `AllocationProperties` matches, and writes
    // one number.
    let outcome = unsafe { (ask.function)(&raw mut granularity, &raw const properties, MINIMUM) };
    (outcome == status::SUCCESS && granularity > 0).then_some(granularity as u64)
}
