//! A stream's handle: the [`RawStream`] of the backend traits, and cudarc's stream for interop.

use std::sync::Arc;
use std::sync::atomic::Ordering;

#[cfg(feature = "cuda")]
use cudarc::driver::CudaStream;

use super::event::GpuEvent;
use super::gpu_stream::GpuStream;
use super::in_flight::{CompletionAction, OperationName};
use super::{chain, reclaim, submit, waker};
#[cfg(feature = "cuda")]
use crate::context::make_current;
use crate::driver::invalid;
use resident_backend::{
    Address, BackendError, ChainCall, CopyWork, Copying, EventTiming, FillWork, Label, LaunchCall,
    Maker, ManagedRange, PageRange, Position, PrefetchTarget, RawEvent, RawStream, StagedBytes,
    StreamId, TaskWaker,
};

/// A stream's handle.
#[derive(Debug)]
pub struct GpuStreamHandle(pub(super) Arc<GpuStream>);

impl GpuStreamHandle {
    pub fn new(stream: Arc<GpuStream>) -> Self {
        Self(stream)
    }

    /// Completes what has finished, if so many operations were queued that it is time. Only
    /// launches and chains do so: completion actions must not run under an array's lock, which is
    /// held while a copy is queued.
    #[inline]
    fn reap_if_due(&self) {
        if self.0.needs_reap.load(Ordering::Relaxed) {
            self.0.needs_reap.store(false, Ordering::Relaxed);
            self.0.reap();
        }
    }
}

#[cfg(feature = "cuda")]
impl GpuStreamHandle {
    /// cudarc's stream object, for other code; `None` if the stream is not on an NVIDIA GPU.
    pub fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.0.share()
    }

    /// Whether cudarc's stream object represents this stream.
    pub fn is(&self, other: &CudaStream) -> bool {
        self.0.cudarc().is_some_and(|own| is_same_stream(own, other))
    }

    /// Makes a stream of another library wait for all work queued here so far. The other stream's
    /// context is current afterwards.
    pub fn make_wait(&self, other: &CudaStream) -> Result<(), BackendError> {
        self.0.make_wait(other)
    }

    /// Waits on the host for all work queued here so far, and makes the context of `other` current.
    pub fn wait_before(&self, other: &CudaStream) -> Result<(), BackendError> {
        self.0.wait_for(self.0.reserve_position())?;
        make_current(self.0.driver(), other.context())
    }
}

/// Handles 0 and 1 both name the legacy default stream, of which every context has one.
#[cfg(feature = "cuda")]
fn is_same_stream(one: &CudaStream, other: &CudaStream) -> bool {
    const LEGACY: usize = 1;
    let handle = |stream: &CudaStream| match stream.cu_stream() as usize {
        LEGACY => 0,
        handle => handle,
    };
    handle(one) == handle(other) && one.context().cu_ctx() == other.context().cu_ctx()
}

impl RawStream for GpuStreamHandle {
    fn id(&self) -> StreamId {
        self.0.id
    }

    fn priority(&self) -> Result<i32, BackendError> {
        self.0.priority()
    }

    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError> {
        self.0.prepare_to_queue()?;
        let allocated = reclaim::allocate(&self.0.device, len_bytes, self.0.raw_stream());
        let address = self.0.record_death(allocated)?;
        let mut state = self.0.state();
        let position = self.0.next_position(&mut state);
        state.in_flight.record_name(position, OperationName::of_label(label));
        Ok(address)
    }

    fn free(&self, address: Address) -> Result<Position, BackendError> {
        self.0.record_death(self.0.free(address))
    }

    fn decommit(&self, pages: &PageRange) -> Result<Position, BackendError> {
        self.0.record_death(self.0.decommit(pages))
    }

    fn copy(&self, work: Box<CopyWork>, maker: Maker) -> Result<Copying, BackendError> {
        if maker == Maker::Caller {
            return Ok(Copying::Declined);
        }
        self.0.prepare_to_queue()?;
        self.0.record_death(submit::queue_copy(&self.0, *work)).map(Copying::Queued)
    }

    fn fill(&self, work: Box<FillWork>) -> Result<Position, BackendError> {
        self.0.prepare_to_queue()?;
        self.0.record_death(submit::queue_fill(&self.0, *work))
    }

    fn prefetch(&self, range: ManagedRange, to: PrefetchTarget) -> Result<Position, BackendError> {
        self.0.prepare_to_queue()?;
        self.0.record_death(self.0.prefetch(range, to))
    }

    fn launch(&self, launch: &mut LaunchCall<'_>) -> Result<Position, BackendError> {
        self.0.prepare_to_queue()?;
        let queued = submit::queue_launch(&self.0, launch);
        let position = match queued {
            Ok(position) => position,
            refused => return self.0.record_death(refused),
        };
        self.reap_if_due();
        Ok(position)
    }

    fn run_chain(&self, call: &mut ChainCall<'_>) -> Result<Position, BackendError> {
        let queued = chain::queue(self, call);
        let position = self.0.record_death(queued)?;
        self.reap_if_due();
        Ok(position)
    }

    fn write(
        &self,
        from: StagedBytes,
        to: Address,
        label: &Label,
    ) -> Result<Position, BackendError> {
        self.0.prepare_to_queue()?;
        self.0.record_death(self.0.write(from, to, label))
    }

    fn read(&self, from: Address, to: &mut [u8], label: &dyn Fn() -> Label) -> bool {
        self.0.read(from, to, label)
    }

    fn record(&self, timing: EventTiming) -> Result<Arc<dyn RawEvent>, BackendError> {
        let (position, event) = self.0.record_death(self.0.record(timing))?;
        Ok(Arc::new(GpuEvent { stream: Arc::clone(&self.0), position, event }))
    }

    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError> {
        let event = event.downcast_ref::<GpuEvent>();
        let Some(event) = event.filter(|event| event.event.is_of(self.0.driver())) else {
            let detail = "the event belongs to another kind of device".to_owned();
            return Err(invalid("wait", detail));
        };
        self.0.prepare_to_queue()?;
        let action = if Arc::ptr_eq(&event.stream, &self.0) {
            CompletionAction::Nothing
        } else {
            event.stream.action_for_waiter(event.position)
        };
        let mut state = self.0.state();
        let token = self.0.device.context().place().token;
        self.0.record_death_locked(event.event.make_wait(self.0.raw_stream(), token))?;
        // The event has its own position, so a stream that waits for this one waits for the event
        // too.
        self.0.enter_wait(&mut state, action);
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

    #[inline]
    fn fallible_upto(&self) -> Position {
        self.0.fallible.upto()
    }

    fn synchronize_to(&self, position: Position) -> Result<(), BackendError> {
        self.0.wait_for(position)
    }

    fn poll(&self, position: Position) -> Result<bool, BackendError> {
        self.0.poll(position)
    }

    fn register_waker(
        &self,
        position: Position,
        task: &Arc<TaskWaker>,
    ) -> Result<(), BackendError> {
        waker::wake_when_complete(&self.0, position.min(self.0.tail()), task)
    }
}
