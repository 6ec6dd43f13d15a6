//! Device memory, host memory, and pointer attributes.

use std::ffi::c_void;

use super::hip_functions;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::handle;
use resident_stand_in_gpu::host::{self, Locked};
use resident_stand_in_gpu::ledger::Allocation;
use resident_stand_in_gpu::machine::{self, settings};
use resident_stand_in_gpu::{allocate, call};

/// `hipHostMallocPortable`, `Mapped`, `WriteCombined`, `NumaUser`, `Coherent`, `NonCoherent`.
const HOST_FLAGS: u32 = 0xE000_0007;

hip_functions! {
    hipMalloc(address: Out<u64>, len_bytes: usize) {
        address.check()?;
        let context = Context::current()?;
        if len_bytes == 0 {
            return address.set(0);
        }
        address.set(allocate::direct(&context, len_bytes as u64)?)
    }

    hipFree(address: u64) {
        if address == 0 {
            return Ok(());
        }
        if host::around(address).is_some_and(|range| range.is_managed()) {
            Context::current()?.wait_for_all()?;
            return if host::free_managed(address) { Ok(()) } else { Err(Code::INVALID_VALUE) };
        }
        // Memory of any device; HIP waits for that device.
        let context = handle::context(around(address).ok_or(Code::INVALID_VALUE)?.context)?;
        context.check()?;
        context.wait_for_all()?;
        allocate::free(&context, &context.legacy, address, |_| true)?;
        context.legacy.synchronize(&context)
    }

    hipMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let (free_bytes, total_bytes) = Context::current()?.device.ledger().info();
        free.set(free_bytes as usize)?;
        total.set(total_bytes as usize)
    }

    hipMemGetAddressRange(start: Out<u64>, len_bytes: Out<usize>, address: u64) {
        let allocation = around(address).ok_or(Code::INVALID_VALUE)?;
        start.set_if_wanted(allocation.address);
        len_bytes.set_if_wanted(allocation.len_bytes as usize);
        Ok(())
    }

    hipHostMalloc(pointer: Out<u64>, len_bytes: usize, flags: u32) {
        pointer.check()?;
        let context = Context::current()?;
        call::set_bytes(len_bytes as u64);
        if flags & !HOST_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if len_bytes == 0 {
            return pointer.set(0);
        }
        pointer.set(host::allocate(len_bytes, flags, context.handle)?)
    }

    hipHostFree(pointer: u64) {
        if pointer == 0 {
            return Ok(());
        }
        Context::current()?.wait_for_all()?;
        host::free(pointer)
    }

    hipHostRegister(pointer: u64, len_bytes: usize, flags: u32) {
        let context = Context::current()?;
        call::set_bytes(len_bytes as u64);
        if pointer == 0 || len_bytes == 0 || flags > 15 {
            return Err(Code::INVALID_VALUE);
        }
        match host::register(pointer, len_bytes as u64, flags, context.handle) {
            // HIP keeps the older registration, which the next call of `hipHostUnregister` ends.
            Err(Code::HOST_MEMORY_ALREADY_REGISTERED) => Ok(()),
            outcome => outcome,
        }
    }

    hipHostUnregister(pointer: u64) {
        let context = Context::current()?;
        if pointer == 0 {
            return Err(Code::INVALID_VALUE);
        }
        context.wait_for_all()?;
        host::unregister(pointer)
    }

    hipHostGetDevicePointer(address: Out<u64>, pointer: u64, flags: u32) {
        Context::current()?;
        if flags != 0 || host::around(pointer).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        // Both addresses are equal.
        address.set(pointer)
    }

    hipHostGetFlags(flags: Out<u32>, pointer: u64) {
        flags.set(host::around(pointer).ok_or(Code::INVALID_VALUE)?.flags)
    }

    hipPointerGetAttribute(value: *mut c_void, attribute: u32, address: u64) {
        if address == 0 || value.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        describe(value, attribute, address)
    }

    hipPointerGetAttributes(attributes: Out<Attributes>, address: u64) {
        attributes.check()?;
        if address == 0 {
            return Err(Code::INVALID_VALUE);
        }
        attributes.set(all_attributes(address)?)
    }
}

/// `hipPointerAttribute_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Attributes {
    memory_type: u32,
    device: i32,
    device_pointer: u64,
    host_pointer: u64,
    is_managed: i32,
    flags: u32,
}

/// Memory that HIP allocated or registered.
#[derive(Debug)]
enum Known {
    OfDevice(Allocation),
    OfHost(Locked),
}

pub(super) fn around(address: u64) -> Option<Allocation> {
    machine::device_of_address(address)?.ledger().around(address)
}

fn known(address: u64) -> Option<Known> {
    around(address).map(Known::OfDevice).or_else(|| host::around(address).map(Known::OfHost))
}

/// The number of a memory type: of the host, of a device, or managed. HIP 6 changed the numbers.
fn memory_type(known: &Known) -> u32 {
    let is_new = settings().version >= 60_000_000;
    match known {
        Known::OfHost(range) if range.is_managed() && is_new => 3,
        Known::OfHost(range) if range.is_managed() => 1,
        Known::OfHost(_) => u32::from(is_new),
        Known::OfDevice(_) => 1 + u32::from(is_new),
    }
}

fn ordinal_of(known: &Known) -> Outcome<i32> {
    let context = match known {
        Known::OfDevice(allocation) => allocation.context,
        Known::OfHost(range) => range.context,
    };
    Ok(handle::context(context)?.device.ordinal as i32)
}

fn all_attributes(address: u64) -> Outcome<Attributes> {
    let Some(known) = known(address) else {
        // Before HIP 6, memory of other origin is an error.
        let nothing = Attributes {
            memory_type: 0,
            device: host::NOWHERE,
            device_pointer: 0,
            host_pointer: 0,
            is_managed: 0,
            flags: 0,
        };
        let is_new = settings().version >= 60_000_000;
        return if is_new { Ok(nothing) } else { Err(Code::INVALID_VALUE) };
    };
    let range = match &known {
        Known::OfHost(range) => Some(range),
        Known::OfDevice(_) => None,
    };
    Ok(Attributes {
        memory_type: memory_type(&known),
        device: ordinal_of(&known)?,
        device_pointer: address,
        host_pointer: range.map_or(0, |_| address),
        is_managed: i32::from(range.is_some_and(Locked::is_managed)),
        flags: range.map_or(0, |range| range.flags),
    })
}

/// Writes one attribute of a pointer. Memory that HIP neither allocated nor registered has none.
/// Each has the size that HIP writes: one byte for yes or no, four for a buffer's number.
fn describe(value: *mut c_void, attribute: u32, address: u64) -> Outcome {
    if matches!(attribute, 1 | 5 | 10 | 14..=16) {
        return Err(Code::NOT_SUPPORTED);
    }
    let known = known(address).ok_or(Code::INVALID_VALUE)?;
    let (start, len_bytes, number, pool) = match &known {
        Known::OfDevice(known) => {
            (known.address, known.len_bytes, known.number, known.pool.unwrap_or(0))
        }
        Known::OfHost(range) => (range.start, range.len_bytes, range.start, 0),
    };
    let is_managed = matches!(&known, Known::OfHost(range) if range.is_managed());
    match (attribute, &known) {
        (2, _) => Out::<u32>::at(value).set(memory_type(&known)),
        (3, _) | (4, Known::OfHost(_)) => Out::<u64>::at(value).set(address),
        (6, _) => Out::<bool>::at(value).set(false),
        (7, _) => Out::<u32>::at(value).set(number as u32),
        (8, _) => Out::<bool>::at(value).set(is_managed),
        (9, _) => Out::<i32>::at(value).set(ordinal_of(&known)?),
        (11, _) => Out::<u64>::at(value).set(start),
        (12, _) => Out::<u32>::at(value).set(len_bytes as u32),
        (13, _) => Out::<bool>::at(value).set(true),
        (17, _) if pool != 0 => Out::<u64>::at(value).set(pool),
        _ => Err(Code::INVALID_VALUE),
    }
}
