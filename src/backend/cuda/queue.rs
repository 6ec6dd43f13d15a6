//! A stream's handle: the traits' view of it, and cudarc's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use cudarc::driver::sys;
use cudarc::driver::{CudaContext, CudaStream};

use super::call::{check, invalid};
use super::device::DeviceCore;
use super::event::CudaEvent;
use super::flight::{After, Flight, Name};
use super::stream::QueueCore;
use super::{submit, watch};
use crate::backend::{
    Address, BackendError, Dependencies, FailureKind, Label, Position, Queue, QueueId, RawEvent,
    Work,
};

/// A stream's handle.
#[derive(Debug)]
pub(crate) struct CudaQueue(Arc<QueueCore>);

impl CudaQueue {
    pub(super) fn new(core: Arc<QueueCore>) -> Self {
        Self(core)
    }

    pub(super) fn device(&self) -> &DeviceCore {
        self.0.device()
    }

    /// cudarc's object, for others.
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        self.0.share()
    }

    /// Whether an object of cudarc's is of this very stream.
    pub(crate) fn is(&self, other: &CudaStream) -> bool {
        same_stream(self.0.stream(), other)
    }

    /// Lets a stream of somebody else's wait for everything that is queued here so far; its context
    /// is current afterwards.
    pub(crate) fn hold_up(&self, other: &CudaStream) -> Result<(), BackendError> {
        self.0.hold_up(other)
    }

    /// Waits on the host for everything that is queued here so far, and makes the context of
    /// `other` current.
    pub(crate) fn wait_before(&self, other: &CudaStream) -> Result<(), BackendError> {
        self.0.wait_for(self.0.reserve_position())?;
        enter_of(other.context())
    }
}

/// Makes somebody else's context current. Not by cudarc, which would return what some drop left to
/// be told instead.
pub(super) fn enter_of(context: &CudaContext) -> Result<(), BackendError> {
    // SAFETY: the handle is that of a context which its object keeps.
    check(unsafe { sys::cuCtxSetCurrent(context.cu_ctx()) }, "cuCtxSetCurrent")
}

/// The driver's two names for the legacy default stream, which every context has one of, are one.
fn same_stream(one: &CudaStream, other: &CudaStream) -> bool {
    const LEGACY: usize = 1;
    let handle = |stream: &CudaStream| match stream.cu_stream() as usize {
        LEGACY => 0,
        handle => handle,
    };
    handle(one) == handle(other) && one.context().cu_ctx() == other.context().cu_ctx()
}

impl Queue for CudaQueue {
    fn id(&self) -> QueueId {
        self.0.id
    }

    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError> {
        self.0.enter_to_queue()?;
        let address = self.0.note(self.0.device.allocate(len_bytes, self.0.raw_stream()))?;
        let mut line = self.0.line();
        let position = self.0.draw(&mut line);
        line.ledger.name(position, Name::of_label(label));
        Ok(address)
    }

    fn free(&self, address: Address) -> Result<Position, BackendError> {
        self.0.note(self.0.free(address))
    }

    fn submit(&self, work: Work) -> Result<Position, BackendError> {
        self.0.enter_to_queue()?;
        // Launches alone: copies are queued with an array's lock held.
        let may_clear = matches!(work, Work::Launch(_));
        let position = self.0.note(submit::queue(&self.0, work))?;
        if may_clear && self.0.is_crowded.load(Ordering::Relaxed) {
            self.0.is_crowded.store(false, Ordering::Relaxed);
            self.0.reap();
        }
        Ok(position)
    }

    fn record(&self, timing: bool) -> Result<Arc<dyn RawEvent>, BackendError> {
        self.0.note(self.0.record(timing)).map(|event| Arc::new(event) as Arc<dyn RawEvent>)
    }

    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError> {
        let Some(event) = event.downcast_ref::<CudaEvent>() else {
            return Err(invalid(
                "cuStreamWaitEvent",
                "the event belongs to another kind of device".to_owned(),
            ));
        };
        self.0.enter_to_queue()?;
        let other = event.queue_core();
        let after = if Arc::ptr_eq(other, &self.0) {
            After::Nothing
        } else {
            other.to_be_done_first(event.position())
        };
        let mut line = self.0.line();
        let own = self.0.device.context().cudarc().cu_ctx();
        self.0.note_locked(event.driver_event().hold_up(self.0.raw_stream(), own))?;
        // Whoever waits for this stream waits for that too.
        let position = self.0.draw(&mut line);
        line.push(Flight {
            position,
            depends: Dependencies::new(),
            after,
            loss: FailureKind::Copy,
        });
        self.0.mark_the_way(&mut line);
        Ok(())
    }

    fn tail(&self) -> Position {
        self.0.tail()
    }

    fn reserve_position(&self) -> Position {
        self.0.reserve_position()
    }

    fn completed(&self) -> Position {
        self.0.completed()
    }

    fn synchronize_to(&self, position: Position) -> Result<(), BackendError> {
        self.0.wait_for(position)
    }

    fn poll(&self, position: Position) -> Result<bool, BackendError> {
        self.0.poll(position)
    }

    fn register_waker(&self, waker: Waker) -> Result<(), BackendError> {
        watch::wake_when_over(&self.0, self.0.tail(), waker)
    }
}
