//! The handle of a stream: it refuses invalid calls, and queues the others.

use std::fmt;
use std::sync::Arc;

use super::device::EmbeddedDevice;
use super::engine::{
    ChainRun, ControlOperation, DeviceCore, EmbeddedStream, Operation, QueuedOperation,
    StreamPoint, StreamState, Streams, Timestamp, wake_all,
};
use super::errors::{CODE_INVALID, driver_error};
use super::event::EmbeddedEvent;
use super::race_check::{HazardOperation, MemoryAccess, Submission, Touch, VectorClock};
use super::simulation::{CallDraft, CallKind, Instruments};
use resident_backend::call_site::CallSite;
use resident_backend::sync::BackendGuard;
use resident_backend::{
    Address, BackendError, ChainCall, CopyWork, Copying, EventTiming, FillWork, Label, LaunchCall,
    Maker, ManagedRange, OwnCopy, PageRange, Position, PrefetchTarget, RawEvent, RawStream,
    StagedBytes, StreamId, TaskWaker, Work,
};

/// One in-order stream of an embedded device.
pub(crate) struct EmbeddedStreamHandle {
    stream: Arc<EmbeddedStream>,
    /// All streams of the device. This value keeps a simulation alive; a stream does not.
    streams: Arc<Streams>,
}

impl EmbeddedStreamHandle {
    /// The handle of a new stream of `device`.
    pub(super) fn new(device: &Arc<DeviceCore>, streams: &Arc<Streams>) -> Self {
        Self { stream: streams.add(device), streams: Arc::clone(streams) }
    }

    fn check_usable(&self, call: &'static str) -> Result<(), BackendError> {
        self.stream.device.check_usable(call)
    }

    fn instruments(&self) -> Option<&Instruments> {
        self.stream.device.instruments.as_ref()
    }

    /// A call that has no label and no length: emulated devices log it and may refuse it.
    fn counted<T>(
        &self,
        kind: CallKind,
        call: impl FnOnce() -> Result<(T, Position), BackendError>,
    ) -> Result<T, BackendError> {
        match self.instruments() {
            None => call().map(|(value, _)| value),
            Some(instruments) => {
                let draft = CallDraft::unlabelled(kind, Some(self.stream.number));
                instruments.counted(draft, |_| call())
            }
        }
    }

    /// Allocates memory. If the device is full, waits for queued frees that can help.
    fn allocate_block(&self, len_bytes: u64) -> Result<Address, BackendError> {
        if len_bytes == 0 {
            return Err(invalid("allocate", "0 bytes requested"));
        }
        let memory = &self.stream.device.memory;
        memory.allocate(len_bytes).or_else(|error| {
            if !memory.may_find_room(len_bytes) {
                return Err(error);
            }
            self.streams.wait_for_frees("allocate")?;
            memory.allocate(len_bytes)
        })
    }

    fn free_block(&self, address: Address) -> Result<Position, BackendError> {
        let device = &self.stream.device;
        let len_bytes = device.memory.begin_free(address)?;
        let access = MemoryAccess::of_free(device.ordinal, address, len_bytes);
        let queued = self.submit_release("free", ControlOperation::Free(address), access);
        queued.inspect_err(|_| device.memory.undo_free(address))
    }

    fn decommit_pages(&self, pages: &PageRange) -> Result<Position, BackendError> {
        let device = &self.stream.device;
        device.memory.begin_decommit(pages)?;
        let access = MemoryAccess::of_decommit(device.ordinal, pages);
        let decommit = ControlOperation::Decommit(pages.clone());
        let queued = self.submit_release("decommit", decommit, access);
        queued.inspect_err(|_| device.memory.undo_decommit(pages))
    }

    /// Queues an operation after which memory cannot be used.
    fn submit_release(
        &self,
        name: &str,
        release: ControlOperation,
        access: MemoryAccess,
    ) -> Result<Position, BackendError> {
        self.stream.submit_control(release, |position, clock| {
            if let Some(instruments) = self.instruments() {
                let operation = self.operation(position, name.into(), None);
                let (stream, depends) = (&self.stream.progress, &[][..]);
                let submission = Submission { stream, position, operation, depends, clock };
                instruments.check(&submission, &[access]);
            }
        })
    }

    fn enqueue(&self, work: Work) -> Result<Position, BackendError> {
        let Some(instruments) = self.instruments() else {
            return self.stream.enqueue(prepare(work)?, None, |_, _, _| ());
        };
        let draft = CallDraft::submission(&work, self.stream.number);
        instruments.counted(draft, |fault| {
            let check = |position, operation: &_, clock: &_| {
                self.check_work(instruments, position, operation, clock);
            };
            let position = self.stream.enqueue(prepare(work)?, fault, check)?;
            Ok((position, position))
        })
    }

    /// The locked state, if the calling thread may make a copy and can.
    fn lock_for(&self, maker: Maker) -> Option<BackendGuard<'_, StreamState>> {
        let may_be_idle = maker != Maker::Stream
            && self.stream.lets_callers_copy()
            && self.completed() == self.tail();
        if may_be_idle { self.stream.lock_idle() } else { None }
    }

    /// Takes the stream's turn for a copy that the calling thread makes.
    fn begin_copy(
        &self,
        idle: BackendGuard<'_, StreamState>,
        work: Work,
    ) -> Result<QueuedOperation, BackendError> {
        let Some(instruments) = self.instruments() else {
            return Ok(self.stream.begin_own(idle, prepare(work)?, None, |_, _, _| ()));
        };
        let draft = CallDraft::submission(&work, self.stream.number);
        instruments.counted(draft, |fault| {
            let check = |position, operation: &_, clock: &_| {
                self.check_work(instruments, position, operation, clock);
            };
            let queued = self.stream.begin_own(idle, prepare(work)?, fault, check);
            let position = queued.position;
            Ok((queued, position))
        })
    }

    /// Passes work to the race check, when it has a position and cannot run yet.
    fn check_work(
        &self,
        instruments: &Instruments,
        position: Position,
        operation: &Operation,
        clock: &VectorClock,
    ) {
        if let Operation::Chain(chain) = operation {
            return self.check_chain(instruments, position, chain, clock);
        }
        let Some(description) = operation.description() else { return };
        let mut accesses = operation.accesses(self.stream.device.ordinal);
        if let Operation::CopyBetween { source, .. } = operation
            && !instruments.share_tracker(source.instruments.as_ref())
        {
            accesses.retain(|access| !access.is_on_device(source.ordinal));
        }
        let operation = self.operation(position, description.name().into(), description.site);
        let (stream, depends) = (&self.stream.progress, description.depends);
        let submission = Submission { stream, position, operation, depends, clock };
        instruments.check(&submission, &accesses);
    }

    /// Passes each step of a chain to the race check.
    fn check_chain(
        &self,
        instruments: &Instruments,
        last: Position,
        chain: &ChainRun,
        clock: &VectorClock,
    ) {
        let (stream, depends) = (&self.stream.progress, chain.depends.as_slice());
        for (position, name, site, accesses) in chain.steps(self.stream.device.ordinal, last) {
            let operation = self.operation(position, name.into(), site);
            let submission = Submission { stream, position, operation, depends, clock };
            instruments.check(&submission, &accesses);
        }
    }

    /// An operation of this stream, as hazards name it.
    fn operation(
        &self,
        position: Position,
        name: Arc<str>,
        site: Option<CallSite>,
    ) -> HazardOperation {
        HazardOperation {
            name,
            device: self.stream.device.ordinal,
            stream: self.stream.number,
            position: position.0,
            site,
            touch: Touch::Reads,
        }
    }

    fn record_event(&self, timing: EventTiming) -> Result<EmbeddedEvent, BackendError> {
        // In a simulation every event has a time, and a waiting stream does not continue before
        // that time.
        let timestamp =
            (timing == EventTiming::Enabled || self.stream.is_seeded()).then(Timestamp::default);
        let mut clock = VectorClock::default();
        let record = ControlOperation::Record(timestamp.clone());
        let position = self.stream.submit_control(record, |position, before| {
            clock = before.pending();
            if self.instruments().is_some() {
                clock.add(&self.stream.progress, position);
            }
        })?;
        let point = StreamPoint { stream: Arc::clone(&self.stream), position, timestamp };
        Ok(EmbeddedEvent { point, timing, clock, _streams: Arc::clone(&self.streams) })
    }

    fn wait_for_event(&self, event: &dyn RawEvent) -> Result<Position, BackendError> {
        let Some(event) = event.downcast_ref::<EmbeddedEvent>() else {
            return Err(invalid("wait", "the event belongs to another kind of device"));
        };
        let join_clock = |_, clock: &mut VectorClock| clock.join(&event.clock);
        self.stream.submit_control(ControlOperation::Wait(event.point.clone()), join_clock)
    }

    fn register(&self, position: Position, task: &Arc<TaskWaker>) {
        let position = position.min(self.stream.tail());
        wake_all(self.stream.progress.register(position, task));
        // No thread runs a simulation in the background, so the task must poll: each poll runs one
        // operation. It is woken at once to do so.
        if self.stream.is_seeded() {
            task.wake();
        }
    }
}

impl RawStream for EmbeddedStreamHandle {
    fn id(&self) -> StreamId {
        self.stream.progress.id()
    }

    fn priority(&self) -> Result<i32, BackendError> {
        Ok(0)
    }

    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError> {
        self.check_usable("allocate")?;
        let Some(instruments) = self.instruments() else { return self.allocate_block(len_bytes) };
        let name = label.text.to_text();
        let stream = Some(self.stream.number);
        let draft = CallDraft::of_memory(CallKind::Allocate, &name, len_bytes, stream);
        instruments.counted(draft, |_| {
            let address = self.allocate_block(len_bytes)?;
            let device = self.stream.device.ordinal;
            instruments.tracker.add_block(device, address, len_bytes, &name);
            Ok((address, Position::START))
        })
    }

    fn free(&self, address: Address) -> Result<Position, BackendError> {
        self.check_usable("free")?;
        self.counted(CallKind::Free, || {
            self.free_block(address).map(|position| (position, position))
        })
    }

    fn decommit(&self, pages: &PageRange) -> Result<Position, BackendError> {
        self.check_usable("decommit")?;
        let decommit = || self.decommit_pages(pages).map(|position| (position, position));
        let Some(instruments) = self.instruments() else { return decommit().map(|done| done.0) };
        let (stream, label) = (Some(self.stream.number), Arc::from(""));
        let draft = CallDraft::of_memory(CallKind::Decommit, &label, pages.len_bytes(), stream);
        instruments.counted(draft, |_| decommit())
    }

    fn copy(&self, work: Box<CopyWork>, maker: Maker) -> Result<Copying, BackendError> {
        self.check_usable("copy")?;
        let work = Work::Copy(work);
        match self.lock_for(maker) {
            Some(idle) => self.begin_copy(idle, work).map(|queued| {
                let stream = Arc::clone(&self.stream);
                Copying::Own(OwnCopy::new(queued.position, move || stream.run_own(queued)))
            }),
            None if maker == Maker::Caller => Ok(Copying::Declined),
            None => self.enqueue(work).map(Copying::Queued),
        }
    }

    fn fill(&self, work: Box<FillWork>) -> Result<Position, BackendError> {
        self.check_usable("fill")?;
        self.enqueue(Work::Fill(work))
    }

    fn launch(&self, launch: &mut LaunchCall<'_>) -> Result<Position, BackendError> {
        self.check_usable("launch")?;
        if self.instruments().is_some() {
            return self.enqueue(Work::Launch(launch.to_work()));
        }
        if launch.is_brief
            && let Some(position) = self.stream.begin_launch()
        {
            self.stream.run_launch(launch, position);
            return Ok(position);
        }
        self.stream.enqueue_launch(launch)
    }

    fn run_chain(&self, call: &mut ChainCall<'_>) -> Result<Position, BackendError> {
        self.check_usable("run_chain")?;
        let chain = Operation::Chain(Box::new(ChainRun::of_call(call)));
        let Some(instruments) = self.instruments() else {
            return self.stream.enqueue(chain, None, |_, _, _| ());
        };
        let draft = CallDraft::of_chain(call, self.stream.number);
        instruments.counted(draft, |fault| {
            let check = |position, operation: &_, clock: &_| {
                self.check_work(instruments, position, operation, clock);
            };
            let position = self.stream.enqueue(chain, fault, check)?;
            Ok((position, position))
        })
    }

    fn write(
        &self,
        from: StagedBytes,
        to: Address,
        label: &Label,
    ) -> Result<Position, BackendError> {
        self.check_usable("write")?;
        self.enqueue(Work::Copy(Box::new(CopyWork::of_staged(Arc::new(from), to, label))))
    }

    fn read(&self, _from: Address, _to: &mut [u8], _label: &dyn Fn() -> Label) -> bool {
        // The calling thread makes copies itself.
        false
    }

    fn prefetch(
        &self,
        _managed: ManagedRange,
        _to: PrefetchTarget,
    ) -> Result<Position, BackendError> {
        self.check_usable("prefetch")?;
        // All memory is the host's, so nothing moves.
        self.counted(CallKind::Prefetch, || Ok((self.tail(), self.tail())))
    }

    fn record(&self, timing: EventTiming) -> Result<Arc<dyn RawEvent>, BackendError> {
        self.check_usable("record")?;
        self.counted(CallKind::RecordEvent, || {
            let event = self.record_event(timing)?;
            let position = event.position();
            Ok((Arc::new(event) as Arc<dyn RawEvent>, position))
        })
    }

    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError> {
        self.check_usable("wait")?;
        self.counted(CallKind::WaitEvent, || Ok(((), self.wait_for_event(event)?)))
    }

    fn tail(&self) -> Position {
        self.stream.tail()
    }

    fn reserve_position(&self) -> Position {
        // No other code queues work here.
        self.tail()
    }

    fn completed(&self) -> Position {
        self.stream.progress.completed()
    }

    /// A body may panic.
    #[inline]
    fn fallible_upto(&self) -> Position {
        Position(u64::MAX)
    }

    fn synchronize_to(&self, position: Position) -> Result<(), BackendError> {
        self.check_usable("synchronize")?;
        self.stream.synchronize(position.min(self.tail()))
    }

    fn poll(&self, position: Position) -> Result<bool, BackendError> {
        self.check_usable("poll")?;
        Ok(self.stream.poll(position.min(self.tail())))
    }

    fn register_waker(
        &self,
        position: Position,
        task: &Arc<TaskWaker>,
    ) -> Result<(), BackendError> {
        self.check_usable("register_waker")?;
        self.counted(CallKind::Notify, || Ok((self.register(position, task), Position::START)))
    }
}

impl Drop for EmbeddedStreamHandle {
    fn drop(&mut self) {
        // A forked child has no worker to end.
        if !self.stream.device.is_usable() {
            return;
        }
        self.stream.close();
    }
}

impl fmt::Debug for EmbeddedStreamHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, number) = (self.stream.device.ordinal, self.stream.number);
        let (completed, tail) = (self.completed().0, self.tail().0);
        write!(f, "EmbeddedStreamHandle({device}.{number}, {completed} of {tail} done)")
    }
}

/// Turns work into a queued operation, or refuses invalid work.
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

fn prepare_copy(mut copy: Box<CopyWork>) -> Result<Operation, BackendError> {
    if let Some(overrun) = copy.host_overrun() {
        return Err(invalid("copy", overrun));
    }
    let Some(peer) = copy.source_device.take() else {
        return Ok(Operation::Work(Work::Copy(copy)));
    };
    match peer.downcast_ref::<EmbeddedDevice>() {
        Some(peer) => Ok(Operation::CopyBetween { copy, source: Arc::clone(&peer.core) }),
        None => {
            Err(invalid("copy", format!("the embedded device cannot access memory of {peer:?}")))
        }
    }
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

fn invalid(call: &'static str, detail: impl Into<String>) -> BackendError {
    driver_error(CODE_INVALID, call, detail)
}
