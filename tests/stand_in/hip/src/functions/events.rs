//! Events.

use super::hip_functions;
use resident_stand_in_gpu::arguments::Out;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::event::Event;
use resident_stand_in_gpu::functions::events;
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

    hipEventRecord = events::record(event: Handle, stream: Handle);
    hipEventQuery = events::query(event: Handle);
    hipEventSynchronize = events::synchronize(event: Handle);
    hipEventElapsedTime = events::elapsed(milliseconds: Out<f32>, start: Handle, end: Handle);
}

fn create(place: Out<Handle>, flags: u32) -> Outcome {
    place.check()?;
    if flags & !(FLAGS | RELEASES) != 0 || (flags & RELEASES).count_ones() > 1 {
        return Err(Code::INVALID_VALUE);
    }
    place.set(Event::new(&*Context::current()?, flags).handle)
}
