//! Reserved addresses, and memory that is mapped to them. Devices without it reject all of these
//! functions.

use std::ops::Range;
use std::sync::Arc;

use crate::arguments::{In, Out};
use crate::call;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::functions::pools::{AccessOfDevice, PoolProperties};
use crate::handle::{self, Handle, Object};
use crate::ledger::Allocation;
use crate::machine::{self, Device, settings};
use crate::mappings::{Mapping, Memory, MemoryState};
use crate::{allocate, work};
use resident_backend::{Address, Backend, PageRange};

/// Writes the unit of memory that can be mapped. The recommended one is the smallest one.
pub fn granularity(len_bytes: Out<usize>, properties: In<PoolProperties>, option: u32) -> Outcome {
    supported()?;
    properties.get()?.device()?;
    if option > 1 {
        return Err(Code::INVALID_VALUE);
    }
    len_bytes.set(settings().page_bytes as usize)
}

/// Reserves addresses. The place that the caller wishes for is ignored.
pub fn reserve(address: Out<u64>, len_bytes: usize, alignment: usize, flags: u64) -> Outcome {
    address.check()?;
    let context = current()?;
    let len_bytes = pages(len_bytes)?;
    if flags != 0 || (alignment != 0 && !alignment.is_power_of_two()) {
        return Err(Code::INVALID_VALUE);
    }
    let label = work::label(&format!("{len_bytes} reserved bytes"));
    let reserved = context.device.engine.reserve(len_bytes, &label);
    let Address(start) = reserved.map_err(|error| work::code_of_error(&error))?;
    context.device.ledger().mappings.reservations.insert(start, len_bytes);
    address.set(start)
}

/// Frees the addresses of a reservation, to which no memory is mapped.
pub fn free(address: u64, len_bytes: usize) -> Outcome {
    current()?;
    call::set_bytes(len_bytes as u64);
    let device = machine::device_of_address(address).ok_or(Code::INVALID_VALUE)?;
    let range = range(address, len_bytes as u64)?;
    {
        let mappings = &mut device.ledger().mappings;
        let is_whole = mappings.reservations.get(&address) == Some(&(len_bytes as u64));
        if !is_whole || mappings.has_any(&range) {
            return Err(Code::INVALID_VALUE);
        }
        mappings.reservations.remove(&address);
    }
    device.unmap(|stream| stream.free(Address(address)))
}

/// Creates memory that can be mapped.
pub fn create(
    memory: Out<Handle>,
    len_bytes: usize,
    properties: In<PoolProperties>,
    flags: u64,
) -> Outcome {
    supported()?;
    memory.check()?;
    let len_bytes = pages(len_bytes)?;
    let device = properties.get()?.device()?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let handle = handle::next();
    let mut ledger = device.ledger();
    ledger.reserve(len_bytes, None)?;
    let state = MemoryState { len_bytes, is_mapped: false, is_released: false };
    ledger.mappings.memory.insert(handle, state);
    drop(ledger);
    let made = Memory { handle, ordinal: device.ordinal, len_bytes };
    handle::insert(handle, Object::Memory(Arc::new(made)));
    memory.set(handle)
}

/// Releases memory. Mapped memory ends when it is unmapped.
pub fn release(memory: Handle) -> Outcome {
    supported()?;
    let (device, memory) = find(memory)?;
    call::set_bytes(memory.len_bytes);
    handle::remove(memory.handle);
    change_memory(&device, memory.handle, |state| state.is_released = true);
    Ok(())
}

/// Maps memory to reserved addresses. No device may access it yet.
pub fn map(address: u64, len_bytes: usize, offset: usize, memory: Handle, flags: u64) -> Outcome {
    let context = current()?;
    let len_bytes = pages(len_bytes)?;
    let range = range(address, len_bytes)?;
    let (device, memory) = find(memory)?;
    if offset != 0 || flags != 0 || memory.len_bytes != len_bytes {
        return Err(Code::INVALID_VALUE);
    }
    let mut ledger = device.ledger();
    let mappings = &mut ledger.mappings;
    let start = mappings.reservation(address, len_bytes).ok_or(Code::INVALID_VALUE)?;
    if !(address - start).is_multiple_of(settings().page_bytes) || mappings.has_any(&range) {
        return Err(Code::INVALID_VALUE);
    }
    let state = mappings.memory.get_mut(&memory.handle).ok_or(Code::INVALID_VALUE)?;
    if state.is_mapped {
        call::note(String::from("memory is mapped twice, which the stand-in does not support"));
        return Err(Code::NOT_SUPPORTED);
    }
    state.is_mapped = true;
    let (context, number) = (context.handle, allocate::next_number());
    let allocation = Allocation { address, len_bytes, context, pool: None, number };
    let mapping = Mapping { allocation, memory: memory.handle, is_accessible: false };
    mappings.mapped.insert(address, mapping);
    Ok(())
}

/// Unmaps memory: one mapping, or several side by side. Does not wait for work that uses it.
pub fn unmap(address: u64, len_bytes: usize) -> Outcome {
    current()?;
    call::set_bytes(len_bytes as u64);
    let range = range(address, len_bytes as u64)?;
    let device = machine::device_of_address(address).ok_or(Code::INVALID_VALUE)?;
    let (start, unmapped) = {
        let mappings = &mut device.ledger().mappings;
        let unmapped = mappings.exactly(&range)?;
        mappings.mapped.retain(|address, _| !range.contains(address));
        let start = mappings.reservation(address, len_bytes as u64);
        (start.ok_or(Code::INVALID_VALUE)?, unmapped)
    };
    for mapping in unmapped {
        if mapping.is_accessible {
            let pages = pages_of(start, &mapping);
            device.unmap(|stream| stream.decommit(&pages))?;
        }
        change_memory(&device, mapping.memory, |state| state.is_mapped = false);
    }
    Ok(())
}

/// Says which devices may access mapped memory. The engine then has memory there.
pub fn set_access(
    address: u64,
    len_bytes: usize,
    list: In<AccessOfDevice>,
    count: usize,
) -> Outcome {
    current()?;
    call::set_bytes(len_bytes as u64);
    let range = range(address, len_bytes as u64)?;
    let device = machine::device_of_address(address).ok_or(Code::INVALID_VALUE)?;
    for index in 0..count {
        let access = list.nth(index)?;
        let is_allowed = access.check(device.ordinal)?;
        let mapped = device.ledger().mappings.exactly(&range)?;
        if machine::ordinal(access.location.id)? != device.ordinal {
            // Copies can always access peers, and kernels never can.
            continue;
        }
        for mapping in mapped.into_iter().filter(|mapping| mapping.is_accessible != is_allowed) {
            change_access(&device, &mapping, is_allowed)?;
        }
    }
    Ok(())
}

fn change_access(device: &Device, mapping: &Mapping, is_allowed: bool) -> Outcome {
    let address = mapping.allocation.address;
    let start = device.ledger().mappings.reservation(address, 0).ok_or(Code::INVALID_VALUE)?;
    let pages = pages_of(start, mapping);
    if is_allowed {
        let label = work::label(&format!("{} mapped bytes", mapping.allocation.len_bytes));
        device.engine.commit(&pages, &label).map_err(|error| work::code_of_error(&error))?;
    } else {
        device.unmap(|stream| stream.decommit(&pages))?;
    }
    if let Some(mapping) = device.ledger().mappings.mapped.get_mut(&address) {
        mapping.is_accessible = is_allowed;
    }
    Ok(())
}

/// A mapping as the engine's pages of a reservation.
fn pages_of(start: u64, mapping: &Mapping) -> PageRange {
    let first = mapping.allocation.address - start;
    PageRange { reservation: Address(start), bytes: first..first + mapping.allocation.len_bytes }
}

/// Changes what is known of memory, and ends it if it is released and mapped nowhere.
fn change_memory(device: &Device, memory: Handle, change: impl FnOnce(&mut MemoryState)) {
    let mut ledger = device.ledger();
    let Some(state) = ledger.mappings.memory.get_mut(&memory) else { return };
    change(state);
    let state = *state;
    if state.is_released && !state.is_mapped {
        ledger.mappings.memory.remove(&memory);
        ledger.give_back(state.len_bytes, None);
    }
}

/// The length of whole pages, at least one.
fn pages(len_bytes: usize) -> Outcome<u64> {
    call::set_bytes(len_bytes as u64);
    let is_whole = (len_bytes as u64).is_multiple_of(settings().page_bytes);
    if len_bytes > 0 && is_whole { Ok(len_bytes as u64) } else { Err(Code::INVALID_VALUE) }
}

fn range(address: u64, len_bytes: u64) -> Outcome<Range<u64>> {
    let end = address.checked_add(len_bytes).filter(|_| len_bytes > 0);
    Ok(address..end.ok_or(Code::INVALID_VALUE)?)
}

fn find(memory: Handle) -> Outcome<(Arc<Device>, Arc<Memory>)> {
    let memory = handle::memory(memory).map_err(|_| Code::INVALID_VALUE)?;
    Ok((machine::device(memory.ordinal as i32)?, memory))
}

fn supported() -> Outcome {
    if settings().page_bytes > 0 { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

fn current() -> Outcome<Arc<Context>> {
    let context = Context::current()?;
    supported()?;
    Ok(context)
}
