//! Managed memory: it is memory of the host, which all devices access.

use std::ffi::c_void;

use super::hip_functions;
use super::streams::own;
use resident_backend::EventTiming;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::call;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::host::{self, HOST};
use resident_stand_in_gpu::machine::{self, settings};

hip_functions! {
    hipMallocManaged(address: Out<u64>, len_bytes: usize, flags: u32) {
        address.check()?;
        let context = Context::current()?;
        call::set_bytes(len_bytes as u64);
        // Attached to all streams, or to the host.
        if len_bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(Code::INVALID_VALUE);
        }
        address.set(host::allocate_managed(len_bytes, context.handle)?)
    }

    hipMemPrefetchAsync(address: u64, len_bytes: usize, device: i32, stream: Handle) {
        prefetch(address, len_bytes, device, stream)
    }

    hipMemAdvise(address: u64, len_bytes: usize, advice: u32, device: i32) {
        advise(address, len_bytes, advice, device)
    }

    hipMemRangeGetAttribute(
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
    let (context, stream) = own(stream)?;
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
    if (3..100).contains(&advice) {
        check_place(place)?;
    }
    host::with_managed(address, len_bytes as u64, |managed| {
        match advice {
            1 | 2 => managed.is_read_mostly = advice == 1,
            3 => managed.preferred = place,
            4 => managed.preferred = host::NOWHERE,
            5 if managed.accessed_by.contains(&place) => {}
            5 => managed.accessed_by.push(place),
            // Coarse-grained and fine-grained memory behave alike here.
            100 | 101 => {}
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
