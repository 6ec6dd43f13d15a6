//! Managed memory: it is memory of the host, which all devices access.

use std::ffi::c_void;

use crate::arguments::Out;
use crate::call;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::Handle;
use crate::host::{self, HOST, Managed};
use crate::machine::{self, settings};
use resident_backend::EventTiming;

/// Allocates managed memory.
pub fn allocate(address: Out<u64>, len_bytes: usize, flags: u32) -> Outcome {
    address.check()?;
    let context = Context::current()?;
    call::set_bytes(len_bytes as u64);
    // Attached to all streams, or to the host.
    if len_bytes == 0 || !matches!(flags, 1 | 2) {
        return Err(Code::INVALID_VALUE);
    }
    address.set(host::allocate_managed(len_bytes, context.handle)?)
}

/// Says that the memory is needed on a device, or on the host. In stream order; nothing moves.
pub fn prefetch(address: u64, len_bytes: usize, to: i32, stream: Handle) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    call::set_bytes(len_bytes as u64);
    check_place(to)?;
    host::with_managed(address, len_bytes as u64, |managed| {
        managed.prefetched = to;
        Ok(())
    })?;
    stream.ordered(&context, |raw| raw.record(EventTiming::Disabled)).map(drop)
}

/// Keeps advice for the memory, which has no effect.
pub fn advise(address: u64, len_bytes: usize, advice: u32, place: i32) -> Outcome {
    if advice > 2 {
        Context::current()?;
        check_place(place)?;
    }
    with_advice(address, len_bytes, |managed| {
        match advice {
            1 | 2 => managed.is_read_mostly = advice == 1,
            3 => managed.preferred = place,
            4 => managed.preferred = host::NOWHERE,
            5 if managed.accessed_by.contains(&place) => {}
            5 => managed.accessed_by.push(place),
            6 => managed.accessed_by.retain(|known| *known != place),
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    })
}

/// Changes what is known about the memory.
pub fn with_advice(
    address: u64,
    len_bytes: usize,
    change: impl FnOnce(&mut Managed) -> Outcome,
) -> Outcome {
    Context::current()?;
    call::set_bytes(len_bytes as u64);
    host::with_managed(address, len_bytes as u64, change)
}

/// Writes what was advised: as many numbers as there is room for.
pub fn attribute(
    value: *mut c_void,
    value_bytes: usize,
    attribute: u32,
    address: u64,
    len_bytes: usize,
) -> Outcome {
    Context::current()?;
    host::with_managed(address, len_bytes as u64, |managed| {
        let numbers = match attribute {
            1 => vec![i32::from(managed.is_read_mostly)],
            2 => vec![managed.preferred],
            3 => managed.accessed_by.clone(),
            4 => vec![managed.prefetched],
            _ => return Err(Code::INVALID_VALUE),
        };
        let rest = std::iter::repeat(host::NOWHERE);
        Out::<i32>::at(value).set_all(numbers.into_iter().chain(rest).take(value_bytes / 4))
    })
}

/// The place must be the host, or a device that accesses managed memory beside the host.
fn check_place(place: i32) -> Outcome {
    if place == HOST {
        return Ok(());
    }
    machine::ordinal(place)?;
    if settings().is_concurrent { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}
