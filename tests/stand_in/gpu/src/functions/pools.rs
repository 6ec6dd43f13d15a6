//! Stream-ordered memory and its pools. Devices without pools reject all of these functions.

use std::ffi::c_void;
use std::sync::Arc;

use crate::allocate;
use crate::arguments::{In, Out};
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::{self, Handle};
use crate::ledger::{Holding, Pool};
use crate::machine::{self, Device, settings};

/// The fields of `CUmemPoolProps` and `hipMemPoolProps` that are used, and which
/// `CUmemAllocationProp` and `hipMemAllocationProp` have too; the stand-in ignores the rest.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PoolProperties {
    allocation_type: u32,
    handle_types: u32,
    location: Location,
}

/// `CUmemLocation`, `hipMemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    pub kind: u32,
    pub id: i32,
}

/// `CUmemAccessDesc`, `hipMemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AccessOfDevice {
    pub location: Location,
    flags: u32,
}

impl AccessOfDevice {
    /// Whether the access is to be allowed, by a device that can have it. `own` is the device with
    /// the memory, which always may.
    pub fn check(self, own: usize) -> Outcome<bool> {
        let peer = machine::ordinal(self.location.id)?;
        let (is_own, is_allowed) = (peer == own, self.flags == READ_WRITE);
        if self.location.kind != LOCATION_DEVICE || !matches!(self.flags, 0 | READ_WRITE) {
            return Err(Code::INVALID_VALUE);
        }
        if !is_own && is_allowed && !settings().can_access_peers {
            return Err(Code::INVALID_DEVICE);
        }
        Ok(is_allowed)
    }
}

const PINNED: u32 = 1;
const LOCATION_DEVICE: u32 = 1;
const READ_WRITE: u32 = 3;

/// Allocates from the current pool of the device.
pub fn allocate(address: Out<u64>, len_bytes: usize, stream: Handle) -> Outcome {
    let context = current()?;
    let pool = context.device.current_pool();
    allocate_in(&context, address, len_bytes, pool.handle, stream)
}

/// Allocates from a pool.
pub fn allocate_from(address: Out<u64>, len_bytes: usize, pool: Handle, stream: Handle) -> Outcome {
    let context = current()?;
    let pool = handle::pool(pool).map_err(|_| Code::INVALID_VALUE)?;
    if pool.ordinal != context.device.ordinal {
        return Err(Code::INVALID_VALUE);
    }
    allocate_in(&context, address, len_bytes, pool.handle, stream)
}

/// Frees memory from pools, in stream order.
pub fn free(address: u64, stream: Handle) -> Outcome {
    let context = current()?;
    let stream = context.stream(stream)?;
    allocate::free(&context, &stream, address, |allocation| allocation.pool.is_some())
}

/// Writes the default pool of a device.
pub fn default_pool(pool: Out<Handle>, device: i32) -> Outcome {
    supported()?;
    pool.set(machine::device(device)?.default_pool.handle)
}

/// Writes the current pool of a device.
pub fn current_pool(pool: Out<Handle>, device: i32) -> Outcome {
    supported()?;
    pool.set(machine::device(device)?.current_pool().handle)
}

/// Makes a pool the current one of its device.
pub fn set_current_pool(device: i32, pool: Handle) -> Outcome {
    supported()?;
    let (device, pool) =
        (machine::device(device)?, handle::pool(pool).map_err(|_| Code::INVALID_VALUE)?);
    if pool.ordinal != device.ordinal {
        return Err(Code::INVALID_VALUE);
    }
    device.set_current_pool(pool);
    Ok(())
}

impl PoolProperties {
    /// The device whose memory they describe, which is not shared with other processes.
    pub fn device(self) -> Outcome<Arc<Device>> {
        if self.allocation_type != PINNED || self.location.kind != LOCATION_DEVICE {
            return Err(Code::INVALID_VALUE);
        }
        if self.handle_types != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        machine::device(self.location.id)
    }
}

/// Creates a pool.
pub fn create(pool: Out<Handle>, properties: In<PoolProperties>) -> Outcome {
    supported()?;
    pool.check()?;
    let device = properties.get()?.device()?;
    let made = Pool::new(device.ordinal);
    device.ledger().add_pool(made.handle);
    pool.set(made.handle)
}

/// Destroys a pool.
pub fn destroy(pool: Handle) -> Outcome {
    let (device, pool) = find(pool)?;
    if pool.handle == device.default_pool.handle {
        return Err(Code::INVALID_VALUE);
    }
    if device.current_pool().handle == pool.handle {
        device.set_current_pool(Arc::clone(&device.default_pool));
    }
    handle::remove(pool.handle);
    device.ledger().destroy_pool(pool.handle);
    Ok(())
}

/// Releases unused memory of a pool, down to this many bytes.
pub fn trim(pool: Handle, keep_bytes: usize) -> Outcome {
    let (device, pool) = find(pool)?;
    device.ledger().trim(pool.handle, keep_bytes as u64)
}

/// Sets an attribute of a pool.
pub fn set_attribute(pool: Handle, attribute: u32, value: *mut c_void) -> Outcome {
    let (device, pool) = find(pool)?;
    let mut ledger = device.ledger();
    set_attribute_of(ledger.holding(pool.handle)?, attribute, value)
}

/// Writes an attribute of a pool.
pub fn attribute(pool: Handle, attribute: u32, value: *mut c_void) -> Outcome {
    let (device, pool) = find(pool)?;
    let holding = *device.ledger().holding(pool.handle)?;
    attribute_of(holding, attribute, value)
}

/// Says which devices may access memory of a pool.
pub fn set_access(pool: Handle, list: In<AccessOfDevice>, count: usize) -> Outcome {
    let (device, _) = find(pool)?;
    for index in 0..count {
        let access = list.nth(index)?;
        let is_allowed = access.check(device.ordinal)?;
        if !is_allowed && machine::ordinal(access.location.id)? == device.ordinal {
            return Err(Code::INVALID_VALUE);
        }
    }
    Ok(())
}

/// Writes whether a device may access memory of a pool.
pub fn access(flags: Out<u32>, pool: Handle, location: In<Location>) -> Outcome {
    let (device, _) = find(pool)?;
    let peer = machine::ordinal(location.get()?.id)?;
    // `set_access` checks its arguments but stores nothing, because copies can always
    // access peers and kernels never can.
    flags.set(if peer == device.ordinal { READ_WRITE } else { 0 })
}

fn supported() -> Outcome {
    if settings().has_pools { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

fn current() -> Outcome<Arc<Context>> {
    let context = Context::current()?;
    supported()?;
    Ok(context)
}

fn find(pool: Handle) -> Outcome<(Arc<Device>, Arc<Pool>)> {
    supported()?;
    let pool = handle::pool(pool).map_err(|_| Code::INVALID_VALUE)?;
    Ok((machine::device(pool.ordinal as i32)?, pool))
}

fn allocate_in(
    context: &Context,
    address: Out<u64>,
    len_bytes: usize,
    pool: Handle,
    stream: Handle,
) -> Outcome {
    address.check()?;
    let stream = context.stream(stream)?;
    address.set(allocate::from_pool(context, &stream, len_bytes as u64, pool)?)
}

fn set_attribute_of(holding: &mut Holding, attribute: u32, value: *mut c_void) -> Outcome {
    let bytes = || In::<u64>::at(value).get();
    match attribute {
        1..=3 => holding.reuse[attribute as usize - 1] = In::<i32>::at(value).get()?,
        4 => holding.release_threshold = bytes()?,
        // The high-water marks can only be reset to 0.
        6 if bytes()? == 0 => holding.reserved_high = holding.reserved,
        8 if bytes()? == 0 => holding.used_high = holding.used,
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

fn attribute_of(holding: Holding, attribute: u32, value: *mut c_void) -> Outcome {
    let bytes = match attribute {
        1..=3 => return Out::<i32>::at(value).set(holding.reuse[attribute as usize - 1]),
        4 => holding.release_threshold,
        5 => holding.reserved,
        6 => holding.reserved_high,
        7 => holding.used,
        8 => holding.used_high,
        _ => return Err(Code::INVALID_VALUE),
    };
    Out::<u64>::at(value).set(bytes)
}
