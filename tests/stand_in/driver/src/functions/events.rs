//! Events.

use super::driver_functions;
use crate::interface::driver_has;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::Code;
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::event::Event;
use resident_stand_in_gpu::functions::events;
use resident_stand_in_gpu::handle::{self, Handle};

/// The accepted flags: blocking waits and no timing. Events cannot be shared between processes.
const FLAGS_MAX: u32 = 3;

driver_functions! {
    cuEventCreate(event: Out<Handle>, flags: u32) {
        event.check()?;
        let context = Context::current()?;
        if flags > FLAGS_MAX {
            return Err(Code::INVALID_VALUE);
        }
        event.set(Event::new(&context, flags).handle)
    }

    cuEventDestroy_v2(event: Handle) {
        let context = Context::current_if_lost()?;
        handle::event(event)?;
        handle::remove(event);
        context.check()
    }

    cuEventRecord = events::record(event: Handle, stream: Handle);
    cuEventQuery = events::query(event: Handle);
    cuEventSynchronize = events::synchronize(event: Handle);
    cuEventElapsedTime = events::elapsed(milliseconds: Out<f32>, start: Handle, end: Handle);

    cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        driver_has(12_080)?;
        events::elapsed(milliseconds, start, end)
    }
}
