//! Device memory, host memory, and pointer attributes.

use std::ffi::c_void;

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::memory::{self, Kind};
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::{allocate, host};

driver_functions! {
    cuMemAlloc_v2 = memory::allocate(address: Out<u64>, len_bytes: usize);

    cuMemFree_v2(address: u64) {
        let context = Context::current()?;
        if address == 0 {
            return Ok(());
        }
        // CUDA waits for the device before it frees memory.
        context.wait_for_all()?;
        if host::free_managed(address) {
            return Ok(());
        }
        allocate::free(&context, &context.legacy, address, |_| true)?;
        context.legacy.synchronize(&context)
    }

    cuMemGetInfo_v2 = memory::info(free: Out<usize>, total: Out<usize>);
    cuMemGetAddressRange_v2 = memory::address_range(
        start: Out<u64>, len_bytes: Out<usize>, address: u64
    );

    cuMemHostAlloc(pointer: Out<u64>, len_bytes: usize, flags: u32) {
        // Portable, mapped, write-combined.
        if flags > 7 {
            return Err(Code::INVALID_VALUE);
        }
        memory::allocate_on_host(pointer, len_bytes, flags)
    }

    cuMemAllocHost_v2(pointer: Out<u64>, len_bytes: usize) {
        memory::allocate_on_host(pointer, len_bytes, 0)
    }

    cuMemFreeHost = memory::free_on_host(pointer: u64);
    cuMemHostRegister_v2 = memory::register(pointer: u64, len_bytes: usize, flags: u32);
    cuMemHostUnregister = memory::unregister(pointer: u64);

    cuMemHostGetDevicePointer_v2(address: Out<u64>, pointer: u64, flags: u32) {
        Context::current()?;
        if flags != 0 || host::around(pointer).is_none_or(|range| range.is_managed()) {
            return Err(Code::INVALID_VALUE);
        }
        // With unified addressing both addresses are equal.
        address.set(pointer)
    }

    cuMemHostGetFlags = memory::host_flags(flags: Out<u32>, pointer: u64);

    cuPointerGetAttribute(value: *mut c_void, attribute: u32, address: u64) {
        Context::current()?;
        describe(value, attribute, address)
    }

    cuPointerGetAttributes(
        count: u32,
        attributes: In<u32>,
        values: In<*mut c_void>,
        address: u64,
    ) {
        Context::current()?;
        for index in 0..count as usize {
            let value = values.nth(index)?;
            // If an attribute does not apply, this function writes 0 instead of returning an error.
            match describe(value, attributes.nth(index)?, address) {
                Err(code) if code == Code::INVALID_VALUE => Out::<u32>::at(value).set(0)?,
                outcome => outcome?,
            }
        }
        Ok(())
    }
}

/// Writes one attribute of a pointer. Memory that the driver neither allocated nor registered has
/// no attributes.
fn describe(value: *mut c_void, attribute: u32, address: u64) -> Outcome {
    const MEMORY_TYPE_HOST: u32 = 1;
    const MEMORY_TYPE_DEVICE: u32 = 2;
    let known = memory::known(address).ok_or(Code::INVALID_VALUE)?;
    match (attribute, known.kind) {
        (1, _) => Out::<Handle>::at(value).set(known.context),
        (2, Kind::Host) => Out::<u32>::at(value).set(MEMORY_TYPE_HOST),
        (2, _) => Out::<u32>::at(value).set(MEMORY_TYPE_DEVICE),
        (3, _) | (4, Kind::Host | Kind::Managed) => Out::<u64>::at(value).set(address),
        (7, _) => Out::<u64>::at(value).set(known.number),
        (8, kind) => Out::<u32>::at(value).set(u32::from(kind == Kind::Managed)),
        (9, _) => Out::<i32>::at(value).set(known.ordinal()?),
        (11, _) => Out::<u64>::at(value).set(known.start),
        (12, _) => Out::<usize>::at(value).set(known.len_bytes as usize),
        (13, _) => Out::<u32>::at(value).set(1),
        (17, _) if known.pool != 0 => Out::<Handle>::at(value).set(known.pool),
        _ => Err(Code::INVALID_VALUE),
    }
}
