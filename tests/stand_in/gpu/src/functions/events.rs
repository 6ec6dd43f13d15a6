//! Events.

use std::sync::Arc;

use crate::arguments::Out;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::event::Event;
use crate::functions::check_current;
use crate::handle::{self, Handle};

/// Records an event of the current context in one of its streams.
pub fn record(event: Handle, stream: Handle) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    let event = handle::event(event)
        .ok()
        .filter(|event| event.context == context.handle)
        .ok_or(Code::INVALID_HANDLE)?;
    event.record(&context, &stream)
}

/// Whether the last record of an event is complete.
pub fn query(event: Handle) -> Outcome {
    let (context, event) = any(event)?;
    event.query(&context)
}

/// Waits for the last record of an event.
pub fn synchronize(event: Handle) -> Outcome {
    let (context, event) = any(event)?;
    event.synchronize(&context)
}

/// Writes the time between two events.
pub fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Outcome {
    milliseconds.check()?;
    check_current()?;
    let time = handle::event(end)?.elapsed_since(&*handle::event(start)?)?;
    milliseconds.set((time.as_secs_f64() * 1e3) as f32)
}

/// An event of any context, and its context.
fn any(event: Handle) -> Outcome<(Arc<Context>, Arc<Event>)> {
    check_current()?;
    let event = handle::event(event)?;
    Ok((handle::context(event.context)?, event))
}
