//! Stream-ordered memory and its pools. Devices without pools reject all of these functions.

use std::ffi::c_void;

use super::hip_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::functions::pools::{self, AccessOfDevice, Location, PoolProperties};
use resident_stand_in_gpu::handle::Handle;

hip_functions! {
    hipMallocAsync = pools::allocate(address: Out<u64>, len_bytes: usize, stream: Handle);
    hipMallocFromPoolAsync = pools::allocate_from(
        address: Out<u64>, len_bytes: usize, pool: Handle, stream: Handle
    );
    hipFreeAsync = pools::free(address: u64, stream: Handle);
    hipDeviceGetDefaultMemPool = pools::default_pool(pool: Out<Handle>, device: i32);
    hipDeviceGetMemPool = pools::current_pool(pool: Out<Handle>, device: i32);
    hipDeviceSetMemPool = pools::set_current_pool(device: i32, pool: Handle);
    hipMemPoolCreate = pools::create(pool: Out<Handle>, properties: In<PoolProperties>);
    hipMemPoolDestroy = pools::destroy(pool: Handle);
    hipMemPoolTrimTo = pools::trim(pool: Handle, keep_bytes: usize);
    hipMemPoolSetAttribute = pools::set_attribute(pool: Handle, attribute: u32, value: *mut c_void);
    hipMemPoolGetAttribute = pools::attribute(pool: Handle, attribute: u32, value: *mut c_void);
    hipMemPoolSetAccess = pools::set_access(pool: Handle, list: In<AccessOfDevice>, count: usize);
    hipMemPoolGetAccess = pools::access(flags: Out<u32>, pool: Handle, location: In<Location>);
}
