//! Device memory and host memory.

use crate::arguments::Out;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::functions::check_current;
use crate::handle::{self, Handle};
use crate::host::Locked;
use crate::ledger::Allocation;
use crate::{allocate, call, host, machine};

/// Allocates device memory outside any pool.
pub fn allocate(address: Out<u64>, len_bytes: usize) -> Outcome {
    address.check()?;
    let context = Context::current()?;
    address.set(allocate::direct(&context, len_bytes as u64)?)
}

/// Writes the free and the total memory of the current device.
pub fn info(free: Out<usize>, total: Out<usize>) -> Outcome {
    let (free_bytes, total_bytes) = Context::current()?.device.ledger().info();
    free.set(free_bytes as usize)?;
    total.set(total_bytes as usize)
}

/// Writes where the allocation around an address starts, and its size.
pub fn address_range(start: Out<u64>, len_bytes: Out<usize>, address: u64) -> Outcome {
    check_current()?;
    let allocation = around(address).ok_or(Code::INVALID_VALUE)?;
    start.set_if_wanted(allocation.address);
    len_bytes.set_if_wanted(allocation.len_bytes as usize);
    Ok(())
}

/// The allocation of device memory around an address.
pub fn around(address: u64) -> Option<Allocation> {
    machine::device_of_address(address)?.ledger().around(address)
}

/// The bytes from an address to the end of its allocation, or of its reservation.
pub fn room(address: u64) -> Option<u64> {
    let device = machine::device_of_address(address)?;
    let ledger = device.ledger();
    let allocation = ledger.around(address)?;
    let reserved = ledger.mappings.reservation(address, 0).and_then(|start| {
        let len_bytes = ledger.mappings.reservations.get(&start)?;
        Some(start + len_bytes)
    });
    Some(reserved.unwrap_or(allocation.address + allocation.len_bytes) - address)
}

/// Allocates pinned memory.
pub fn allocate_on_host(pointer: Out<u64>, len_bytes: usize, flags: u32) -> Outcome {
    pointer.check()?;
    let context = Context::current()?;
    call::set_bytes(len_bytes as u64);
    if len_bytes == 0 {
        return pointer.set(allocate::nothing()?);
    }
    pointer.set(host::allocate(len_bytes, flags, context.handle)?)
}

/// Frees pinned memory, after all work of the device.
pub fn free_on_host(pointer: u64) -> Outcome {
    Context::current()?.wait_for_all()?;
    host::free(pointer)
}

/// Registers memory of the caller.
pub fn register(pointer: u64, len_bytes: usize, flags: u32) -> Outcome {
    let context = Context::current()?;
    call::set_bytes(len_bytes as u64);
    if pointer == 0 || len_bytes == 0 || flags > 15 {
        return Err(Code::INVALID_VALUE);
    }
    let is_read_only = flags & 8 != 0;
    if is_read_only && !machine::settings().registers_read_only {
        return Err(Code::NOT_SUPPORTED);
    }
    if !is_read_only && host::is_write_protected(pointer, len_bytes as u64) {
        return Err(Code::INVALID_VALUE);
    }
    host::register(pointer, len_bytes as u64, flags, context.handle)
}

/// Unregisters memory of the caller, after all work of the device.
pub fn unregister(pointer: u64) -> Outcome {
    Context::current()?.wait_for_all()?;
    host::unregister(pointer)
}

/// Writes the flags of pinned memory.
pub fn host_flags(flags: Out<u32>, pointer: u64) -> Outcome {
    check_current()?;
    flags.set(host::around(pointer).ok_or(Code::INVALID_VALUE)?.flags)
}

/// Memory that the driver allocated or registered.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub kind: Kind,
    pub start: u64,
    pub len_bytes: u64,
    pub context: Handle,
    /// 0 if it is of no pool.
    pub pool: Handle,
    /// The number of the allocation; of memory of the host, where it starts.
    pub number: u64,
    /// Of memory of the host.
    pub flags: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Device,
    Host,
    Managed,
}

/// What is known of the memory at an address.
pub fn known(address: u64) -> Option<Known> {
    let of_device = |known: Allocation| Known {
        kind: Kind::Device,
        start: known.address,
        len_bytes: known.len_bytes,
        context: known.context,
        pool: known.pool.unwrap_or(0),
        number: known.number,
        flags: 0,
    };
    let of_host = |range: Locked| Known {
        kind: if range.is_managed() { Kind::Managed } else { Kind::Host },
        start: range.start,
        len_bytes: range.len_bytes,
        context: range.context,
        pool: 0,
        number: range.start,
        flags: range.flags,
    };
    around(address).map(of_device).or_else(|| host::around(address).map(of_host))
}

impl Known {
    /// The device of its context.
    pub fn ordinal(&self) -> Outcome<i32> {
        Ok(handle::context(self.context)?.device.ordinal as i32)
    }
}
