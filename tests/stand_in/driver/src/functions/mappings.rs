//! Reserved addresses, and memory that is mapped to them. Devices without it reject all of these
//! functions.

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::functions::mappings;
use resident_stand_in_gpu::functions::pools::{AccessOfDevice, PoolProperties};
use resident_stand_in_gpu::handle::Handle;

driver_functions! {
    cuMemGetAllocationGranularity = mappings::granularity(
        len_bytes: Out<usize>, properties: In<PoolProperties>, option: u32
    );

    cuMemAddressReserve(
        address: Out<u64>, len_bytes: usize, alignment: usize, _wish: u64, flags: u64
    ) {
        mappings::reserve(address, len_bytes, alignment, flags)
    }

    cuMemAddressFree = mappings::free(address: u64, len_bytes: usize);
    cuMemCreate = mappings::create(
        memory: Out<Handle>, len_bytes: usize, properties: In<PoolProperties>, flags: u64
    );
    cuMemRelease = mappings::release(memory: Handle);
    cuMemMap = mappings::map(
        address: u64, len_bytes: usize, offset: usize, memory: Handle, flags: u64
    );
    cuMemUnmap = mappings::unmap(address: u64, len_bytes: usize);
    cuMemSetAccess = mappings::set_access(
        address: u64, len_bytes: usize, list: In<AccessOfDevice>, count: usize
    );
}
