//! Events. Each record creates a new event of the engine, so a queued wait is not affected
//! by a later record.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::{self, Handle, Object};
use crate::interface::interface;
use crate::machine::settings;
use crate::stream::Stream;
use crate::{call, work};
use resident_backend::{BackendErrorKind, EventTiming, Position, RawEvent};

/// `CU_EVENT_DISABLE_TIMING`.
pub const DISABLE_TIMING: u32 = 2;

/// An event.
#[derive(Debug)]
pub struct Event {
    pub handle: Handle,
    pub context: Handle,
    flags: u32,
    record: Mutex<Option<Record>>,
}

/// The last record.
#[derive(Clone, Debug)]
struct Record {
    event: Arc<dyn RawEvent>,
    /// The work queued before the event.
    work: Position,
    /// Whether the host may not see bytes yet that copies before the event wrote.
    is_unreleased: bool,
}

impl Event {
    /// Creates an event that is not recorded yet.
    pub fn new(context: &Context, flags: u32) -> Arc<Self> {
        let event = Arc::new(Self {
            handle: handle::next(),
            context: context.handle,
            flags,
            record: Mutex::new(None),
        });
        handle::insert(event.handle, Object::Event(Arc::clone(&event)));
        event
    }

    /// Records the event in a stream.
    pub fn record(&self, context: &Context, stream: &Stream) -> Outcome {
        let is_timed = self.flags & DISABLE_TIMING == 0;
        let timing = if is_timed { EventTiming::Enabled } else { EventTiming::Disabled };
        let work = stream.last();
        let event = stream.ordered(context, |raw| raw.record(timing))?;
        let is_unreleased = stream.release(interface().releases_to_host(self.flags));
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Record { event, work, is_unreleased });
        Ok(())
    }

    /// Makes later work of `stream` wait for the current record. Does nothing if the event was
    /// never recorded.
    pub fn make_wait(&self, context: &Context, stream: &Stream) -> Outcome {
        let Some(record) = self.last().filter(|_| settings().waits_for_events) else {
            return Ok(());
        };
        let work = (self.context == context.handle).then_some(record.work);
        stream.wait_for(context, record.event.as_ref(), work)
    }

    /// Whether the last record is complete.
    pub fn query(&self, context: &Context) -> Outcome {
        let is_complete = match self.last() {
            None => true,
            Some(record) => {
                record.event.is_complete().map_err(|error| work::code_of_error(&error))?
            }
        };
        context.check()?;
        if !is_complete {
            return Err(Code::NOT_READY);
        }
        self.tell_of_unreleased();
        Ok(())
    }

    /// Notes if the host takes bytes for complete that it may not see.
    fn tell_of_unreleased(&self) {
        if self.last().is_some_and(|record| record.is_unreleased) {
            call::note(String::from(
                "an event without the flag that releases to the host tells of a copy to host \
                 memory that is not coherent: the host may see its old bytes",
            ));
        }
    }

    /// Waits for the last record.
    pub fn synchronize(&self, context: &Context) -> Outcome {
        if let Some(record) = self.last() {
            record.event.synchronize().map_err(|error| work::code_of_error(&error))?;
        }
        self.tell_of_unreleased();
        context.device.ledger().settle();
        context.check()
    }

    /// The time from one event to this one.
    pub fn elapsed_since(&self, earlier: &Self) -> Outcome<Duration> {
        let is_untimed = (self.flags | earlier.flags) & DISABLE_TIMING != 0;
        let (Some(start), Some(end)) = (earlier.last(), self.last()) else {
            return Err(Code::INVALID_HANDLE);
        };
        if is_untimed || self.context != earlier.context {
            return Err(Code::INVALID_HANDLE);
        }
        // The events are queried in sequence, because in a seeded simulation each query runs work.
        for event in [&start.event, &end.event] {
            if !event.is_complete().map_err(|error| work::code_of_error(&error))? {
                return Err(Code::NOT_READY);
            }
        }
        end.event.elapsed_since(start.event.as_ref()).map_err(|error| match error.kind {
            BackendErrorKind::NoTiming => Code::NOT_READY,
            _ => work::code_of_error(&error),
        })
    }

    fn last(&self) -> Option<Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
