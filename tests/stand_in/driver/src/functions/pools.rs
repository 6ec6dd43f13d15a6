//! Stream-ordered memory and its pools. Devices without pools reject all of these functions.

use std::ffi::c_void;

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::functions::pools::{self, AccessOfDevice, Location, PoolProperties};
use resident_stand_in_gpu::handle::Handle;

driver_functions! {
    cuMemAllocAsync = pools::allocate(address: Out<u64>, len_bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync = pools::allocate_from(
        address: Out<u64>, len_bytes: usize, pool: Handle, stream: Handle
    );
    cuMemFreeAsync = pools::free(address: u64, stream: Handle);
    cuDeviceGetDefaultMemPool = pools::default_pool(pool: Out<Handle>, device: i32);
    cuDeviceGetMemPool = pools::current_pool(pool: Out<Handle>, device: i32);
    cuDeviceSetMemPool = pools::set_current_pool(device: i32, pool: Handle);
    cuMemPoolCreate = pools::create(pool: Out<Handle>, properties: In<PoolProperties>);
    cuMemPoolDestroy = pools::destroy(pool: Handle);
    cuMemPoolTrimTo = pools::trim(pool: Handle, keep_bytes: usize);
    cuMemPoolSetAttribute = pools::set_attribute(pool: Handle, attribute: u32, value: *mut c_void);
    cuMemPoolGetAttribute = pools::attribute(pool: Handle, attribute: u32, value: *mut c_void);
    cuMemPoolSetAccess = pools::set_access(pool: Handle, list: In<AccessOfDevice>, count: usize);
    cuMemPoolGetAccess = pools::access(flags: Out<u32>, pool: Handle, location: In<Location>);
}
