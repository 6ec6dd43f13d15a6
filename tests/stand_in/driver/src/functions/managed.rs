//! Managed memory.

use std::ffi::c_void;

use super::driver_functions;
use crate::interface::driver_has;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::functions::managed;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::host::HOST;

/// The version of CUDA that has functions with locations.
const LOCATIONS_SINCE: i32 = 12_020;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct MemLocation {
    kind: i32,
    id: i32,
}

impl MemLocation {
    /// The number of a device, or `HOST`.
    fn number(self) -> Outcome<i32> {
        const DEVICE: i32 = 1;
        const ON_HOST: i32 = 2;
        match self.kind {
            DEVICE => Ok(self.id),
            ON_HOST => Ok(HOST),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

driver_functions! {
    cuMemAllocManaged = managed::allocate(address: Out<u64>, len_bytes: usize, flags: u32);
    cuMemPrefetchAsync = managed::prefetch(
        address: u64, len_bytes: usize, device: i32, stream: Handle
    );

    cuMemPrefetchAsync_v2(
        address: u64,
        len_bytes: usize,
        location: MemLocation,
        flags: u32,
        stream: Handle,
    ) {
        driver_has(LOCATIONS_SINCE)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        managed::prefetch(address, len_bytes, location.number()?, stream)
    }

    cuMemAdvise = managed::advise(address: u64, len_bytes: usize, advice: u32, device: i32);

    cuMemAdvise_v2(address: u64, len_bytes: usize, advice: u32, location: MemLocation) {
        driver_has(LOCATIONS_SINCE)?;
        // CUDA ignores the location of advice that needs none.
        let place = if advice <= 2 { HOST } else { location.number()? };
        managed::advise(address, len_bytes, advice, place)
    }

    cuMemRangeGetAttribute = managed::attribute(
        value: *mut c_void,
        value_bytes: usize,
        attribute: u32,
        address: u64,
        len_bytes: usize,
    );
}
