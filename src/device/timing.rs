//! Times of a GPU's work, measured by events around it while somebody asks for them. The embedded
//! device takes times by itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Device, Stream, call_error};
use crate::backend::{BackendError, DeviceKind, Position, RawEvent, Work};
use crate::call_site::CallSite;
use crate::error::{AtCall, Result};
use crate::sync::Mutex;
use crate::timeline::{self, Run};

/// The number of guards: of devices whose work is timed.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// The clocks of these devices, one for each guard.
static CLOCKS: Mutex<Vec<(Device, Arc<Clock>)>> = Mutex::new(Vec::new());

/// Work whose times were not asked for yet.
static TIMED: Mutex<VecDeque<Timed>> = Mutex::new(VecDeque::new());

/// How much such work is kept, with its events. Of older work the times are lost.
const TIMED_KEPT: usize = 1 << 14;

/// After so much work a launch asks for times, so that the events can be used again.
const TIMED_ASKED: usize = 1 << 10;

/// An event, and when it was over by the process's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    event: Arc<dyn RawEvent>,
    time_ns: u64,
}

/// Work between two events.
#[derive(Debug)]
struct Timed {
    clock: Arc<Clock>,
    queue: u64,
    position: Position,
    begun: Arc<dyn RawEvent>,
    ended: Arc<dyn RawEvent>,
}

/// What [`Stream::begin_timing`] found.
pub(crate) type Begun = Option<(Arc<Clock>, Arc<dyn RawEvent>)>;

/// While this lives, the work of a GPU is timed: made by
/// [`audit::time_device`](crate::audit::time_device()).
#[derive(Debug)]
#[must_use = "the device's work is timed only while this guard lives"]
pub struct DeviceTimes {
    /// `None` for a device that takes times by itself.
    clock: Option<Arc<Clock>>,
}

impl Device {
    /// Times the work of this device until the guard drops. Waits once for the work of its default
    /// stream, to compare its clock with the process's. The caller holds no lock.
    pub(crate) fn time_work(&self, site: CallSite) -> Result<DeviceTimes> {
        if self.kind() == DeviceKind::Cpu {
            return Ok(DeviceTimes { clock: None });
        }
        let refused = |refusal: BackendError| call_error(self, "this", "timing", &refusal);
        let stream = self.stream();
        let event = stream.queue().record(true).map_err(refused).at(site)?;
        stream.wait_until(event.position(), site).map_err(refused).at(site)?;
        let clock = Arc::new(Clock { event, time_ns: timeline::now_ns() });
        CLOCKS.lock().push((self.clone(), Arc::clone(&clock)));
        GUARDS.fetch_add(1, Ordering::Relaxed);
        Ok(DeviceTimes { clock: Some(clock) })
    }
}

impl Drop for DeviceTimes {
    fn drop(&mut self) {
        let Some(clock) = &self.clock else { return };
        GUARDS.fetch_sub(1, Ordering::Relaxed);
        let ended = {
            let mut clocks = CLOCKS.lock();
            let own = clocks.iter().position(|(_, known)| Arc::ptr_eq(known, clock));
            own.map(|own| clocks.remove(own))
        };
        drop(ended);
        take_times();
    }
}

impl Stream {
    /// Records an event before work that is to be timed; one load if no device is. May be called
    /// with the locks under which work is queued.
    #[inline]
    pub(crate) fn begin_timing(&self) -> Begun {
        if GUARDS.load(Ordering::Relaxed) == 0 { None } else { self.record_begin() }
    }

    #[cold]
    fn record_begin(&self) -> Begun {
        let clock = {
            let clocks = CLOCKS.lock();
            let own = clocks.iter().find(|(device, _)| device == self.device_ref());
            own.map(|(_, clock)| Arc::clone(clock))
        }?;
        // Without the event the work has no times, as without a guard.
        let event = self.queue().record(true).ok()?;
        Some((clock, event))
    }

    /// Records an event behind the work at `position`, which was queued since.
    #[inline]
    pub(crate) fn end_timing(&self, begun: Begun, position: Position) {
        if let Some((clock, begun)) = begun {
            self.record_end(clock, begun, position);
        }
    }

    #[cold]
    fn record_end(&self, clock: Arc<Clock>, begun: Arc<dyn RawEvent>, position: Position) {
        let Ok(ended) = self.queue().record(true) else { return };
        let queue = self.id().0;
        let oldest = {
            let mut timed = TIMED.lock();
            timed.push_back(Timed { clock, queue, position, begun, ended });
            if timed.len() > TIMED_KEPT { timed.pop_front() } else { None }
        };
        drop(oldest);
    }

    /// Queues work, and times it if that is asked for.
    pub(crate) fn submit_timed(&self, work: Work) -> std::result::Result<Position, BackendError> {
        let begun = self.begin_timing();
        let position = self.queue().submit(work)?;
        self.end_timing(begun, position);
        Ok(position)
    }
}

/// As [`take_times`], if there is much to ask for. The caller holds no lock.
#[inline]
pub(crate) fn take_some_times() {
    if GUARDS.load(Ordering::Relaxed) > 0 && TIMED.lock().len() >= TIMED_ASKED {
        take_times();
    }
}

/// Passes the times of work that is over to the timeline. Asks the driver, and does not wait. The
/// caller holds no lock.
pub(crate) fn take_times() {
    let timed = std::mem::take(&mut *TIMED.lock());
    let mut running = VecDeque::new();
    for work in timed {
        match work.ended.is_complete() {
            Ok(true) => work.run().into_iter().for_each(timeline::add_run),
            Ok(false) => running.push_back(work),
            // The device died, or does not answer.
            Err(_) => {}
        }
    }
    let mut timed = TIMED.lock();
    running.append(&mut timed);
    *timed = running;
}

impl Timed {
    /// When the work ran; `None` if the driver does not tell.
    fn run(&self) -> Option<Run> {
        let started_ns = self.clock.time_of(&*self.begun)?;
        let length = self.ended.elapsed_since(&*self.begun).ok()?;
        let finished_ns = started_ns + length.as_nanos() as u64;
        Some(Run { queue: self.queue, position: self.position.0, started_ns, finished_ns })
    }
}

impl Clock {
    /// When an event was over. One that was over before the clock's own event is "0 later".
    fn time_of(&self, event: &dyn RawEvent) -> Option<u64> {
        let later = event.elapsed_since(&*self.event).ok()?;
        if !later.is_zero() {
            return Some(self.time_ns + later.as_nanos() as u64);
        }
        let earlier = self.event.elapsed_since(event).ok()?;
        Some(self.time_ns.saturating_sub(earlier.as_nanos() as u64))
    }
}
