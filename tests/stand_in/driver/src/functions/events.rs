//! Events.

use std::sync::Arc;

use super::driver_functions;
use crate::interface::driver_has;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::event::Event;
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

    cuEventRecord(event: Handle, stream: Handle) {
        let context = Context::current()?;
        let stream = context.stream(stream)?;
        let event = handle::event(event)
            .ok()
            .filter(|event| event.context == context.handle)
            .ok_or(Code::INVALID_HANDLE)?;
        event.record(&context, &stream)
    }

    cuEventQuery(event: Handle) {
        let (context, event) = any(event)?;
        event.query(&context)
    }

    cuEventSynchronize(event: Handle) {
        let (context, event) = any(event)?;
        event.synchronize(&context)
    }

    cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        driver_has(12_080)?;
        elapsed(milliseconds, start, end)
    }
}

/// An event and its context. Some context must be current, not necessarily the event's.
fn any(event: Handle) -> Outcome<(Arc<Context>, Arc<Event>)> {
    Context::current()?;
    let event = handle::event(event)?;
    Ok((handle::context(event.context)?, event))
}

fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Outcome {
    milliseconds.check()?;
    Context::current()?;
    let time = handle::event(end)?.elapsed_since(&*handle::event(start)?)?;
    milliseconds.set((time.as_secs_f64() * 1e3) as f32)
}
