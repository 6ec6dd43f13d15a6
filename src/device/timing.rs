//! Times of a GPU's work, measured by events around it while a listener asks for them. The embedded
//! device takes times by itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Device, Stream, call_error};
use crate::error::{AtCall, Result};
use resident_backend::call_site::CallSite;
use resident_backend::environment;
use resident_backend::sync::{self, Mutex};
use resident_backend::timeline::{self, Run};
use resident_backend::{BackendError, DeviceKind, EventTiming, Position, RawEvent};

/// The variable that asks for reports. The audit reads all words of it but one.
pub(crate) const AUDIT_VARIABLE: &str = "RESIDENT_AUDIT";

/// The word in it that asks for the times of all GPUs.
pub(crate) const GPU_TIMES: &str = "gpu-times";

/// Whether the variable has this word. Case and spaces around words do not matter.
pub(crate) fn audit_has_word(word: &str) -> bool {
    let value = environment::text(AUDIT_VARIABLE).unwrap_or_default();
    value.to_string_lossy().split(',').any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// The number of clocks: of guards, and of devices that are timed until the process ends.
static TIMED_DEVICES: AtomicUsize = AtomicUsize::new(0);

/// The clocks of these devices.
static CLOCKS: Mutex<Vec<(Device, Arc<Clock>)>> = Mutex::new(Vec::new());

/// Work whose times were not asked for yet.
static TIMED: Mutex<VecDeque<Timed>> = Mutex::new(VecDeque::new());

/// How much such work is kept, with its events. Of older work the times are lost.
const TIMED_KEPT: usize = 1 << 14;

/// After so much work a launch asks for times, so that the events can be used again.
const TIMED_ASKED: usize = 1 << 10;

/// Drivers tell the time between two events as an `f32` of milliseconds. Up to 8 seconds it is
/// rounded to half a microsecond, which is what drivers resolve. What is rounded away adds up to
/// less than a ten-millionth of the time since the first event: two clocks differ by more.
const REBASED_AFTER_NS: u64 = 4_000_000_000;

/// The clock of a device: the times of its events are measured from another event.
#[derive(Debug)]
pub(crate) struct Clock {
    base: Mutex<Base>,
}

/// An event, and when it was over by the process's clock.
#[derive(Clone, Debug)]
struct Base {
    event: Arc<dyn RawEvent>,
    time_ns: u64,
}

/// Work between two events.
#[derive(Debug)]
struct Timed {
    clock: Arc<Clock>,
    stream_id: u64,
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
        let call_error = |error: BackendError| call_error(self, "this", "timing", &error);
        self.start_clock()
            .map_err(call_error)
            .at(site)
            .map(|clock| DeviceTimes { clock: Some(clock) })
    }

    fn start_clock(&self) -> std::result::Result<Arc<Clock>, BackendError> {
        let event = self.stream().raw().record(EventTiming::Enabled)?;
        event.synchronize()?;
        let base = Base { event, time_ns: timeline::now_ns() };
        let clock = Arc::new(Clock { base: Mutex::new(base) });
        CLOCKS.lock().push((self.clone(), Arc::clone(&clock)));
        TIMED_DEVICES.fetch_add(1, Ordering::Relaxed);
        Ok(clock)
    }

    /// Times the work of a GPU until the process ends, if the variable asks for that. The caller
    /// has opened the device, and holds no lock.
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(super) fn time_if_asked(&self) {
        if audit_has_word(GPU_TIMES) {
            // Without a clock the device's work has no times.
            let _ = self.start_clock();
        }
    }
}

impl Drop for DeviceTimes {
    fn drop(&mut self) {
        let Some(clock) = &self.clock else { return };
        TIMED_DEVICES.fetch_sub(1, Ordering::Relaxed);
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
        if TIMED_DEVICES.load(Ordering::Relaxed) == 0 { None } else { self.record_begin() }
    }

    #[cold]
    fn record_begin(&self) -> Begun {
        let clock = {
            let clocks = CLOCKS.lock();
            let own = clocks.iter().find(|(device, _)| device == self.device_ref());
            own.map(|(_, clock)| Arc::clone(clock))
        }?;
        // Without the event the work has no times, as without a guard.
        let event = self.raw().record(EventTiming::Enabled).ok()?;
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
        let Ok(ended) = self.raw().record(EventTiming::Enabled) else { return };
        let stream_id = self.id().0;
        let oldest = {
            let mut timed = TIMED.lock();
            timed.push_back(Timed { clock, stream_id, position, begun, ended });
            if timed.len() > TIMED_KEPT { timed.pop_front() } else { None }
        };
        // It may have the last handle of a stream.
        if let Some(oldest) = oldest {
            sync::defer_drop(oldest);
        }
    }
}

/// As [`take_times`], if there is much to ask for. The caller holds no lock.
#[inline]
pub(crate) fn take_some_times() {
    if TIMED_DEVICES.load(Ordering::Relaxed) > 0 && TIMED.lock().len() >= TIMED_ASKED {
        take_times();
    }
}

/// Passes the times of work that is over to the timeline, or drops them without a listener. Asks
/// the driver, and does not wait. The caller holds no lock.
pub(crate) fn take_times() {
    let timed = std::mem::take(&mut *TIMED.lock());
    if !timeline::is_on() {
        return;
    }
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
        let started_ns = self.clock.time_of(&self.begun)?;
        let length = self.ended.elapsed_since(&*self.begun).ok()?;
        let finished_ns = started_ns + length.as_nanos() as u64;
        Some(Run { stream_id: self.stream_id, position: self.position.0, started_ns, finished_ns })
    }
}

impl Clock {
    /// When an event was over. One that is late becomes the event from which later ones are
    /// measured.
    fn time_of(&self, event: &Arc<dyn RawEvent>) -> Option<u64> {
        let base = self.base.lock().clone();
        let time_ns = base.time_of(&**event)?;
        if time_ns.saturating_sub(base.time_ns) > REBASED_AFTER_NS {
            let event = Arc::clone(event);
            let before = std::mem::replace(&mut *self.base.lock(), Base { event, time_ns });
            // The lock is released by now.
            drop(before);
        }
        Some(time_ns)
    }
}

impl Base {
    /// When an event was over. One that was over before this one is "0 later".
    fn time_of(&self, event: &dyn RawEvent) -> Option<u64> {
        let later = event.elapsed_since(&*self.event).ok()?;
        if !later.is_zero() {
            return Some(self.time_ns + later.as_nanos() as u64);
        }
        let earlier = self.event.elapsed_since(event).ok()?;
        Some(self.time_ns.saturating_sub(earlier.as_nanos() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Base, Clock};
    use resident_backend::sync::Mutex;
    use resident_backend::{BackendError, Position, RawEvent, StreamId};

    /// An event that was over so many nanoseconds after a device began to count.
    #[derive(Debug)]
    struct At(u64);

    impl RawEvent for At {
        fn stream(&self) -> StreamId {
            StreamId(0)
        }

        fn position(&self) -> Position {
            Position(0)
        }

        fn is_complete(&self) -> Result<bool, BackendError> {
            Ok(true)
        }

        fn synchronize(&self) -> Result<(), BackendError> {
            Ok(())
        }

        /// As drivers tell it.
        fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError> {
            let earlier = (earlier as &dyn Any).downcast_ref::<Self>().expect("an event of here");
            let milliseconds = (self.0.saturating_sub(earlier.0) as f64 / 1e6) as f32;
            Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
        }
    }

    #[test]
    fn events_after_an_hour_are_told_apart_as_at_first() {
        const START_NS: u64 = 1_000_000;
        let base = Base { event: Arc::new(At(0)), time_ns: START_NS };
        let clock = Clock { base: Mutex::new(base) };
        let error_ns = |device_ns: u64| {
            let event: Arc<dyn RawEvent> = Arc::new(At(device_ns));
            let time_ns = clock.time_of(&event).expect("it is over");
            time_ns as i64 - (START_NS + device_ns) as i64
        };
        let mut last_ns = 0;
        for second in 0..=3600 {
            let device_ns = second * 1_000_000_000 + second * 7_919_777 % 1_000_003;
            let seen_ns = error_ns(device_ns);
            assert!(seen_ns.abs_diff(last_ns) < 1000, "{second} s: {last_ns} ns, {seen_ns} ns");
            assert!(seen_ns.unsigned_abs() <= 1000 + device_ns / 10_000_000, "{seen_ns} ns");
            last_ns = seen_ns;
        }
        // What began before the event from which it is measured.
        assert!(error_ns(3_594_000_000_000).abs_diff(last_ns) < 1000);
    }
}
