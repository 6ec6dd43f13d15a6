//! Events.

use std::sync::Arc;

use super::hip_functions;
use super::streams::own;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::event::Event;
use resident_stand_in_gpu::handle::{self, Handle};

/// `hipEventBlockingSync` and `hipEventDisableTiming`. Events cannot be shared between processes.
const FLAGS: u32 = 3;
/// `hipEventReleaseToSystem`, `hipEventReleaseToDevice`, and `hipEventDisableSystemFence` of later
/// versions: at most one of them.
const RELEASES: u32 = 0xE000_0000;

hip_functions! {
    hipEventCreate(event: Out<Handle>) {
        create(event, 0)
    }

    hipEventCreateWithFlags(event: Out<Handle>, flags: u32) {
        create(event, flags)
    }

    hipEventDestroy(event: Handle) {
        handle::event(event)?;
        handle::remove(event);
        Ok(())
    }

    hipEventRecord(event: Handle, stream: Handle) {
        let (context, stream) = own(stream)?;
        let event = handle::event(event)
            .ok()
            .filter(|event| event.context == context.handle)
            .ok_or(Code::INVALID_HANDLE)?;
        event.record(&context, &stream)
    }

    hipEventQuery(event: Handle) {
        let (context, event) = any(event)?;
        event.query(&context)
    }

    hipEventSynchronize(event: Handle) {
        let (context, event) = any(event)?;
        event.synchronize(&context)
    }

    hipEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        milliseconds.check()?;
        let time = handle::event(end)?.elapsed_since(&*handle::event(start)?)?;
        milliseconds.set((time.as_secs_f64() * 1e3) as f32)
    }
}

fn create(place: Out<Handle>, flags: u32) -> Outcome {
    place.check()?;
    if flags & !(FLAGS | RELEASES) != 0 || (flags & RELEASES).count_ones() > 1 {
        return Err(Code::INVALID_VALUE);
    }
    place.set(Event::new(&*Context::current()?, flags).handle)
}

/// An event of any device, and its context.
fn any(event: Handle) -> Outcome<(Arc<Context>, Arc<Event>)> {
    let event = handle::event(event)?;
    Ok((handle::context(event.context)?, event))
}
