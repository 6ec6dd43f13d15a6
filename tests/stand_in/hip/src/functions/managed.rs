//! Managed memory.

use std::ffi::c_void;

use super::hip_functions;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::functions::managed;
use resident_stand_in_gpu::handle::Handle;

hip_functions! {
    hipMallocManaged = managed::allocate(address: Out<u64>, len_bytes: usize, flags: u32);
    hipMemPrefetchAsync = managed::prefetch(
        address: u64, len_bytes: usize, device: i32, stream: Handle
    );

    hipMemAdvise(address: u64, len_bytes: usize, advice: u32, device: i32) {
        // Coarse-grained and fine-grained memory behave alike here.
        if matches!(advice, 100 | 101) {
            return managed::with_advice(address, len_bytes, |_| Ok(()));
        }
        managed::advise(address, len_bytes, advice, device)
    }

    hipMemRangeGetAttribute = managed::attribute(
        value: *mut c_void,
        value_bytes: usize,
        attribute: u32,
        address: u64,
        len_bytes: usize,
    );
}
