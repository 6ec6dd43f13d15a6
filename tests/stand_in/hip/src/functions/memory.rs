//! Device memory, host memory, and pointer attributes.

use std::ffi::c_void;

use super::hip_functions;
use resident_stand_in_gpu::allocate;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::memory::{self, Kind, around};
use resident_stand_in_gpu::handle;
use resident_stand_in_gpu::host;
use resident_stand_in_gpu::machine::settings;

/// `hipHostMallocPortable`, `Mapped`, `WriteCombined`, `NumaUser`, `Coherent`, `NonCoherent`.
const HOST_FLAGS: u32 = 0xE000_0007;

hip_functions! {
    hipMalloc = memory::allocate(address: Out<u64>, len_bytes: usize);

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

    hipMemGetInfo = memory::info(free: Out<usize>, total: Out<usize>);
    hipMemGetAddressRange = memory::address_range(
        start: Out<u64>, len_bytes: Out<usize>, address: u64
    );

    hipHostMalloc(pointer: Out<u64>, len_bytes: usize, flags: u32) {
        if flags & !HOST_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        memory::allocate_on_host(pointer, len_bytes, flags)
    }

    hipHostFree(pointer: u64) {
        if pointer == 0 {
            return Ok(());
        }
        memory::free_on_host(pointer)
    }

    hipHostRegister(pointer: u64, len_bytes: usize, flags: u32) {
        match memory::register(pointer, len_bytes, flags) {
            // HIP keeps the older registration, which the next call of `hipHostUnregister` ends.
            Err(Code::HOST_MEMORY_ALREADY_REGISTERED) => Ok(()),
            outcome => outcome,
        }
    }

    hipHostUnregister(pointer: u64) {
        if pointer == 0 {
            return Err(Code::INVALID_VALUE);
        }
        memory::unregister(pointer)
    }

    hipHostGetDevicePointer(address: Out<u64>, pointer: u64, flags: u32) {
        Context::current()?;
        if flags != 0 || host::around(pointer).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        // Both addresses are equal.
        address.set(pointer)
    }

    hipHostGetFlags = memory::host_flags(flags: Out<u32>, pointer: u64);

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

/// The number of a memory type: of the host, of a device, or managed. HIP 6 changed the numbers.
fn memory_type(kind: Kind) -> u32 {
    let is_new = settings().version >= 60_000_000;
    match kind {
        Kind::Managed if is_new => 3,
        Kind::Managed => 1,
        Kind::Host => u32::from(is_new),
        Kind::Device => 1 + u32::from(is_new),
    }
}

fn all_attributes(address: u64) -> Outcome<Attributes> {
    let Some(known) = memory::known(address) else {
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
    Ok(Attributes {
        memory_type: memory_type(known.kind),
        device: known.ordinal()?,
        device_pointer: address,
        host_pointer: if known.kind == Kind::Device { 0 } else { address },
        is_managed: i32::from(known.kind == Kind::Managed),
        flags: known.flags,
    })
}

/// Writes one attribute of a pointer. Memory that HIP neither allocated nor registered has none.
/// Each has the size that HIP writes: one byte for yes or no, four for a buffer's number.
fn describe(value: *mut c_void, attribute: u32, address: u64) -> Outcome {
    if matches!(attribute, 1 | 5 | 10 | 14..=16) {
        return Err(Code::NOT_SUPPORTED);
    }
    let known = memory::known(address).ok_or(Code::INVALID_VALUE)?;
    match (attribute, known.kind) {
        (2, kind) => Out::<u32>::at(value).set(memory_type(kind)),
        (3, _) | (4, Kind::Host | Kind::Managed) => Out::<u64>::at(value).set(address),
        (6, _) => Out::<bool>::at(value).set(false),
        (7, _) => Out::<u32>::at(value).set(known.number as u32),
        (8, kind) => Out::<bool>::at(value).set(kind == Kind::Managed),
        (9, _) => Out::<i32>::at(value).set(known.ordinal()?),
        (11, _) => Out::<u64>::at(value).set(known.start),
        (12, _) => Out::<u32>::at(value).set(known.len_bytes as u32),
        (13, _) => Out::<bool>::at(value).set(true),
        (17, _) if known.pool != 0 => Out::<u64>::at(value).set(known.pool),
        _ => Err(Code::INVALID_VALUE),
    }
}
