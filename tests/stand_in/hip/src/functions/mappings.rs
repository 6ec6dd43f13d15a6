//! Reserved addresses, and memory that is mapped to them. Devices without it reject all of these
//! functions.

use super::hip_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::functions::mappings;
use resident_stand_in_gpu::functions::pools::{AccessOfDevice, PoolProperties};
use resident_stand_in_gpu::handle::Handle;

hip_functions! {
    hipMemGetAllocationGranularity = mappings::granularity(
        len_bytes: Out<usize>, properties: In<PoolProperties>, option: u32
    );

    hipMemAddressReserve(
        address: Out<u64>, len_bytes: usize, alignment: usize, _wish: u64, flags: u64
    ) {
        mappings::reserve(address, len_bytes, alignment, flags)
    }

    hipMemAddressFree = mappings::free(address: u64, len_bytes: usize);
    hipMemCreate = mappings::create(
        memory: Out<Handle>, len_bytes: usize, properties: In<PoolProperties>, flags: u64
    );
    hipMemRelease = mappings::release(memory: Handle);
    hipMemMap = mappings::map(
        address: u64, len_bytes: usize, offset: usize, memory: Handle, flags: u64
    );
    hipMemUnmap = mappings::unmap(address: u64, len_bytes: usize);
    hipMemSetAccess = mappings::set_access(
        address: u64, len_bytes: usize, list: In<AccessOfDevice>, count: usize
    );
}
