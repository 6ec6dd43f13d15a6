//! Device memory, host memory, and pointer attributes.

use std::ffi::c_void;

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::call;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::copy::Place;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::ledger::Allocation;
use resident_stand_in_gpu::stream::Stream;
use resident_stand_in_gpu::{allocate, host, machine};

driver_functions! {
    cuMemAlloc_v2(address: Out<u64>, len_bytes: usize) {
        address.check()?;
        let context = Context::current()?;
        address.set(allocate::direct(&context, len_bytes as u64)?)
    }

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

    cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let (free_bytes, total_bytes) = Context::current()?.device.ledger().info();
        free.set(free_bytes as usize)?;
        total.set(total_bytes as usize)
    }

    cuMemGetAddressRange_v2(start: Out<u64>, len_bytes: Out<usize>, address: u64) {
        Context::current()?;
        let allocation = around(address).ok_or(Code::INVALID_VALUE)?;
        start.set_if_wanted(allocation.address);
        len_bytes.set_if_wanted(allocation.len_bytes as usize);
        Ok(())
    }

    cuMemHostAlloc(pointer: Out<u64>, len_bytes: usize, flags: u32) {
        // Portable, mapped, write-combined.
        if flags > 7 {
            return Err(Code::INVALID_VALUE);
        }
        allocate_on_host(pointer, len_bytes, flags)
    }

    cuMemAllocHost_v2(pointer: Out<u64>, len_bytes: usize) {
        allocate_on_host(pointer, len_bytes, 0)
    }

    cuMemFreeHost(pointer: u64) {
        let context = Context::current()?;
        // CUDA waits for the device before it frees pinned memory.
        context.wait_for_all()?;
        host::free(pointer)
    }

    cuMemHostRegister_v2(pointer: u64, len_bytes: usize, flags: u32) {
        let context = Context::current()?;
        call::set_bytes(len_bytes as u64);
        if pointer == 0 || len_bytes == 0 || flags > 15 {
            return Err(Code::INVALID_VALUE);
        }
        host::register(pointer, len_bytes as u64, flags, context.handle)
    }

    cuMemHostUnregister(pointer: u64) {
        let context = Context::current()?;
        context.wait_for_all()?;
        host::unregister(pointer)
    }

    cuMemHostGetDevicePointer_v2(address: Out<u64>, pointer: u64, flags: u32) {
        Context::current()?;
        if flags != 0 || host::around(pointer).is_none_or(|range| range.is_managed()) {
            return Err(Code::INVALID_VALUE);
        }
        // With unified addressing both addresses are equal.
        address.set(pointer)
    }

    cuMemHostGetFlags(flags: Out<u32>, pointer: u64) {
        Context::current()?;
        flags.set(host::around(pointer).ok_or(Code::INVALID_VALUE)?.flags)
    }

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

fn allocate_on_host(pointer: Out<u64>, len_bytes: usize, flags: u32) -> Outcome {
    pointer.check()?;
    let context = Context::current()?;
    call::set_bytes(len_bytes as u64);
    if len_bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    pointer.set(host::allocate(len_bytes, flags, context.handle)?)
}

fn around(address: u64) -> Option<Allocation> {
    machine::device_of_address(address)?.ledger().around(address)
}

/// Writes one attribute of a pointer. Memory that the driver neither allocated nor registered has
/// no attributes.
fn describe(value: *mut c_void, attribute: u32, address: u64) -> Outcome {
    const MEMORY_TYPE_HOST: u32 = 1;
    const MEMORY_TYPE_DEVICE: u32 = 2;
    let is_managed = host::around(address).is_some_and(|range| range.is_managed());
    let (is_host, start, len_bytes, context, pool, number) =
        match (Place::of_device(address), around(address), host::around(address)) {
            (Place::Device(_), Some(known), _) => (
                false,
                known.address,
                known.len_bytes,
                known.context,
                known.pool.unwrap_or(0),
                known.number,
            ),
            (Place::Host(_), _, Some(known)) => {
                (true, known.start, known.len_bytes, known.context, 0, known.start)
            }
            _ => return Err(Code::INVALID_VALUE),
        };
    match attribute {
        1 => Out::<Handle>::at(value).set(context),
        2 if is_managed => Out::<u32>::at(value).set(MEMORY_TYPE_DEVICE),
        2 => Out::<u32>::at(value).set(if is_host { MEMORY_TYPE_HOST } else { MEMORY_TYPE_DEVICE }),
        3 => Out::<u64>::at(value).set(address),
        4 if is_host => Out::<u64>::at(value).set(address),
        7 => Out::<u64>::at(value).set(number),
        8 => Out::<u32>::at(value).set(u32::from(is_managed)),
        9 => Out::<i32>::at(value).set(ordinal_of(context)?),
        11 => Out::<u64>::at(value).set(start),
        12 => Out::<usize>::at(value).set(len_bytes as usize),
        13 => Out::<u32>::at(value).set(1),
        17 if pool != 0 => Out::<Handle>::at(value).set(pool),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn ordinal_of(context: Handle) -> Outcome<i32> {
    Ok(resident_stand_in_gpu::handle::context(context)?.device.ordinal as i32)
}

/// Frees memory in stream order, for memory from pools.
pub(super) fn free_in_order(context: &Context, stream: &Stream, address: u64) -> Outcome {
    allocate::free(context, stream, address, |allocation| allocation.pool.is_some())
}
