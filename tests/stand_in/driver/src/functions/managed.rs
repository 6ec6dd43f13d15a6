//! Managed memory: it is memory of the host, which all devices access.

use std::ffi::c_void;

use resident_backend::EventTiming;
use super::driver_functions;
use crate::interface::driver_has;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::call;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::host::{self, HOST};
use resident_stand_in_gpu::machine::{self, settings};

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
    cuMemAllocManaged(address: Out<u64>, len_bytes: usize, flags: u32) {
        address.check()?;
        let context = Context::current()?;
        call::set_bytes(len_bytes as u64);
        // Attached to all streams, or to the host.
        if len_bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(Code::INVALID_VALUE);
        }
        address.set(host::allocate_managed(len_bytes, context.handle)?)
    }

    cuMemPrefetchAsync(address: u64, len_bytes: usize, device: i32, stream: Handle) {
        prefetch(address, len_bytes, device, stream)
    }

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
        prefetch(address, len_bytes, location.number()?, stream)
    }

    cuMemAdvise(address: u64, len_bytes: usize, advice: u32, device: i32) {
        advise(address, len_bytes, advice, device)
    }

    cuMemAdvise_v2(address: u64, len_bytes: usize, advice: u32, location: MemLocation) {
        driver_has(LOCATIONS_SINCE)?;
        // CUDA ignores the location of advice that needs none.
        let place = if advice <= 2 { HOST } else { location.number()? };
        advise(address, len_bytes, advice, place)
    }

    cuMemRangeGetAttribute(
        value: *mut c_void,
        value_bytes: usize,
        attribute: u32,
        address: u64,
        len_bytes: usize,
    ) {
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
            let all = numbers.into_iter().chain(rest).take(value_bytes / 4).enumerate();
            all.into_iter().try_for_each(|(index, number)| {
                Out::<i32>::at(value).nth(index).set(number)
            })
        })
    }
}

fn prefetch(address: u64, len_bytes: usize, to: i32, stream: Handle) -> Outcome {
    let context = Context::current()?;
    let stream = context.stream(stream)?;
    call::set_bytes(len_bytes as u64);
    check_place(to)?;
    host::with_managed(address, len_bytes as u64, |managed| {
        managed.prefetched = to;
        Ok(())
    })?;
    // In stream order; nothing moves.
    stream.ordered(&context, |queue| queue.record(EventTiming::Disabled)).map(drop)
}

fn advise(address: u64, len_bytes: usize, advice: u32, place: i32) -> Outcome {
    Context::current()?;
    call::set_bytes(len_bytes as u64);
    if advice > 2 {
        check_place(place)?;
    }
    host::with_managed(address, len_bytes as u64, |managed| {
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

/// The place must be the host, or a device that accesses managed memory beside the host.
fn check_place(place: i32) -> Outcome {
    if place == HOST {
        return Ok(());
    }
    machine::ordinal(place)?;
    if settings().is_concurrent { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}
