//! A queue's handle: refuses what cannot be queued, and hands the rest to its lane.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use super::device::{EmbeddedDevice, inside_kernel};
use super::event::EmbeddedEvent;
use super::instruments::{Instruments, bare_draft, draft, work_draft};
use super::lane::Lane;
use super::log::{CallKind, Draft};
use super::operation::{Operation, Point, Stamp, Upkeep};
use super::progress;
use super::seeded::World;
use crate::backend::{
    Address, BackendError, BackendErrorKind, CopyWork, FillWork, Label, Position, Queue, QueueId,
    RawEvent, Work, scope,
};

/// The driver code of arguments that no device could carry out.
const CODE_INVALID: i64 = 5;

/// One in-order stream of an embedded device.
pub(crate) struct EmbeddedQueue {
    lane: Arc<Lane>,
    /// Keeps the world alive: lanes do not.
    world: Option<Arc<World>>,
}

impl EmbeddedQueue {
    /// The handle of `lane`.
    pub(super) fn new(lane: Arc<Lane>, world: Option<Arc<World>>) -> Self {
        Self { lane, world }
    }

    /// A call of this queue: counted on emulated devices, which may refuse it, or hand in the call
    /// whose work is to fail late.
    fn counted<T>(
        &self,
        draft: impl FnOnce() -> Draft,
        call: impl FnOnce(Option<u64>) -> Result<(T, Position), BackendError>,
    ) -> Result<T, BackendError> {
        match self.instruments() {
            None => call(None).map(|(value, _)| value),
            Some(instruments) => instruments.counted(draft(), call),
        }
    }

    /// As `counted`, with nothing to say beyond the kind.
    fn counted_bare<T>(
        &self,
        kind: CallKind,
        call: impl FnOnce() -> Result<(T, Position), BackendError>,
    ) -> Result<T, BackendError> {
        self.counted(|| bare_draft(Some(self.lane.number()), kind), |_| call())
    }

    fn instruments(&self) -> Option<&Instruments> {
        self.lane.device().instruments.as_ref()
    }

    fn free_block(&self, address: Address) -> Result<Position, BackendError> {
        let memory = &self.lane.device().memory;
        let light = memory.is_light(address);
        let len_bytes = memory.begin_free(address)?;
        let observe = |position| {
            self.instruments().iter().for_each(|instruments| {
                instruments.observe_free(&self.lane, position, address, len_bytes)
            });
        };
        let free = Upkeep::Free(address);
        let queued = if light {
            self.lane.enqueue_light(free, observe)
        } else {
            self.lane.enqueue_upkeep(free, observe)
        };
        queued.inspect_err(|_| memory.undo_free(address))
    }

    fn record_event(&self, timing: bool) -> Result<EmbeddedEvent, BackendError> {
        // In a world each event has a time, since whoever waits for it goes on at that time at the
        // earliest.
        let stamp = (timing || self.lane.is_seeded()).then(Stamp::default);
        let mut order = None;
        let position = self.lane.enqueue_light(Upkeep::Record(stamp.clone()), |position| {
            order =
                self.instruments().map(|instruments| instruments.recorded(&self.lane, position));
        })?;
        let point = Point { lane: Arc::clone(&self.lane), position, stamp };
        Ok(EmbeddedEvent::new(point, timing, order, self.world.clone()))
    }

    fn wait_event(&self, event: &dyn RawEvent) -> Result<Position, BackendError> {
        let Some(event) = event.downcast_ref::<EmbeddedEvent>() else {
            return Err(invalid("wait", "the event belongs to another kind of device".to_owned()));
        };
        let observe = |_| {
            if let (Some(instruments), Some(order)) = (self.instruments(), event.order()) {
                instruments.waited(&self.lane, order);
            }
        };
        let point = event.point().clone();
        let light = point.is_complete();
        let wait = Upkeep::Wait(point);
        if light {
            self.lane.enqueue_light(wait, observe)
        } else {
            self.lane.enqueue_upkeep(wait, observe)
        }
    }

    /// Puts work into the form that stands in a line, or says why it cannot run.
    fn prepare(work: Work) -> Result<Operation, BackendError> {
        match work {
            Work::Launch(_) => Ok(Operation::Work(work)),
            Work::Copy(copy) => prepare_copy(copy),
            Work::Fill(fill) => {
                check_fill(&fill)?;
                Ok(Operation::Work(Work::Fill(fill)))
            }
        }
    }

    fn register(&self, waker: Waker) {
        let position = self.lane.tail();
        let again = self.lane.is_seeded().then(|| waker.clone());
        progress::wake(self.lane.progress().register(position, waker));
        // In a world nothing would ever wake a lone task: it is asked to look again at once, and
        // each look runs one operation.
        if !self.lane.progress().is_complete(position) {
            progress::wake(again.into_iter().collect());
        }
    }

    /// Waits, unless there is nothing to wait for.
    fn wait_for(&self, position: Position) -> Result<(), BackendError> {
        // What was not drawn yet is nothing to wait for.
        let position = position.min(self.lane.tail());
        if self.lane.progress().is_complete(position) {
            return Ok(());
        }
        wait_in(&self.lane, position)
    }
}

/// Waits for a position of a lane that is not complete yet: refused inside a body.
pub(super) fn wait_in(lane: &Arc<Lane>, position: Position) -> Result<(), BackendError> {
    if scope::is_in_body() {
        return Err(inside_kernel("synchronize"));
    }
    match &lane.device().instruments {
        None => lane.wait_until(position),
        Some(instruments) => {
            let draft = bare_draft(Some(lane.number()), CallKind::Synchronize);
            instruments
                .counted(draft, |_| lane.wait_until(position).map(|()| ((), Position::START)))
        }
    }
}

/// Looks whether a position has completed; in a world, one ready operation is run first, unless
/// that would be inside another.
pub(super) fn poll_in(lane: &Lane, position: Position) -> bool {
    if !lane.progress().is_complete(position) && !scope::is_in_body() {
        lane.nudge();
    }
    lane.progress().is_complete(position)
}

impl Queue for EmbeddedQueue {
    fn id(&self) -> QueueId {
        self.lane.progress().id()
    }

    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError> {
        let draft = || draft(&self.lane, CallKind::Allocate, len_bytes, &label.text);
        self.counted(draft, |_| {
            if len_bytes == 0 {
                return Err(invalid("allocate", "0 bytes asked for".to_owned()));
            }
            let device = self.lane.device();
            let address = device.allocate(len_bytes)?;
            device
                .instruments
                .iter()
                .for_each(|instruments| instruments.allocated(device, address, len_bytes, label));
            Ok((address, Position::START))
        })
    }

    fn free(&self, address: Address) -> Result<Position, BackendError> {
        self.counted_bare(CallKind::Free, || {
            self.free_block(address).map(|position| (position, position))
        })
    }

    fn submit(&self, work: Work) -> Result<Position, BackendError> {
        if self.instruments().is_none() {
            // A launch goes straight into the line: each move of it on the way costs as much as the
            // lock.
            return match work {
                Work::Launch(_) => self.lane.enqueue(Operation::Work(work), None, |_, _| ()),
                other => self.lane.enqueue(Self::prepare(other)?, None, |_, _| ()),
            };
        }
        let draft = work_draft(&self.lane, &work);
        self.counted(
            || draft,
            |fault| {
                let observe = |position, operation: &Operation| {
                    self.instruments().iter().for_each(|instruments| {
                        instruments.observe(&self.lane, position, operation)
                    });
                };
                let position = self.lane.enqueue(Self::prepare(work)?, fault, observe)?;
                Ok((position, position))
            },
        )
    }

    fn record(&self, timing: bool) -> Result<Arc<dyn RawEvent>, BackendError> {
        self.counted_bare(CallKind::RecordEvent, || {
            let event = self.record_event(timing)?;
            let position = event.position();
            Ok((Arc::new(event) as Arc<dyn RawEvent>, position))
        })
    }

    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError> {
        self.counted_bare(CallKind::WaitEvent, || Ok(((), self.wait_event(event)?)))
    }

    fn tail(&self) -> Position {
        self.lane.tail()
    }

    fn completed(&self) -> Position {
        self.lane.progress().completed()
    }

    fn synchronize_to(&self, position: Position) -> Result<(), BackendError> {
        self.wait_for(position)
    }

    fn poll(&self, position: Position) -> Result<bool, BackendError> {
        Ok(poll_in(&self.lane, position.min(self.lane.tail())))
    }

    fn register_waker(&self, waker: Waker) -> Result<(), BackendError> {
        self.counted_bare(CallKind::Notify, || Ok((self.register(waker), Position::START)))
    }
}

impl Drop for EmbeddedQueue {
    fn drop(&mut self) {
        self.lane.close();
        self.instruments().iter().for_each(|instruments| instruments.tracker().forget(self.id()));
    }
}

impl fmt::Debug for EmbeddedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (completed, tail) = (self.completed().0, self.tail().0);
        write!(
            f,
            "EmbeddedQueue({}.{}, {completed} of {tail} done)",
            self.lane.device().ordinal,
            self.lane.number()
        )
    }
}

fn prepare_copy(mut copy: Box<CopyWork>) -> Result<Operation, BackendError> {
    if let Some(overrun) = copy.host_overrun() {
        return Err(invalid("copy", overrun));
    }
    let Some(peer) = copy.source_device.take() else {
        return Ok(Operation::Work(Work::Copy(copy)));
    };
    let Some(peer) = peer.downcast_ref::<EmbeddedDevice>() else {
        return Err(invalid(
            "copy",
            format!("{peer:?} cannot be reached from the embedded device"),
        ));
    };
    let source = Arc::clone(peer.core());
    Ok(Operation::Between { copy, source })
}

fn check_fill(fill: &FillWork) -> Result<(), BackendError> {
    let pattern_bytes = fill.pattern.len() as u64;
    match fill.parts.iter().find(|part| pattern_bytes == 0 || part.run_bytes % pattern_bytes != 0) {
        None => Ok(()),
        Some(part) => Err(invalid(
            "fill",
            format!("a pattern of {pattern_bytes} bytes does not fill runs of {}", part.run_bytes),
        )),
    }
}

/// A call with arguments that make no sense.
fn invalid(call: &'static str, detail: String) -> BackendError {
    BackendError { kind: BackendErrorKind::Driver { code: CODE_INVALID }, call, detail }
}
