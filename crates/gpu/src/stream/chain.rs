//! Chains: a graph of the driver, where it has graphs and they can hold the steps; else the steps
//! one by one.

use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::gpu_stream::{GpuStream, StreamState};
use super::handle::GpuStreamHandle;
use super::in_flight::{CompletionAction, OperationName};
use super::submit::skip;
use crate::capture_mode::Relaxed;
use crate::driver::status;
use crate::graph::ChainNodes;
use resident_backend::{
    BackendError, BackendErrorKind, ChainCall, ChainInstance, ChainStep, Dependencies, FailureKind,
    FailureRecord, LabelText, Position, Work, chain, failure,
};

/// After so many refused graphs an instance is run step by step.
const REFUSALS_MAX: u32 = 3;

/// The most replays that are queued under the stream's lock at a time: the driver may let a call
/// wait until the device has run others.
const REPLAYS_PER_LOCK: u64 = 64;

/// What an instance of a chain keeps.
#[derive(Debug, Default)]
struct ChainGraph {
    graph: Option<Graph>,
    /// How many graphs the driver refused.
    refusals: u32,
}

#[derive(Debug)]
struct Graph {
    nodes: ChainNodes,
    names: Arc<[OperationName]>,
    /// The last position of its launches on each stream.
    launches: SmallVec<[(Weak<GpuStream>, Position); 1]>,
}

/// Queues the replays of a chain.
pub(super) fn queue(
    handle: &GpuStreamHandle,
    call: &mut ChainCall<'_>,
) -> Result<Position, BackendError> {
    if handle.0.device.uses_graphs()
        && let Some(position) = queue_graph(&handle.0, call)?
    {
        return Ok(position);
    }
    chain::run_step_by_step(handle, call)
}

/// Queues the replays as a graph; `None` if that is refused, and nothing was queued.
fn queue_graph(
    stream: &Arc<GpuStream>,
    call: &mut ChainCall<'_>,
) -> Result<Option<Position>, BackendError> {
    stream.prepare_to_queue()?;
    let known = call.instance.kept.take().and_then(|kept| kept.downcast::<ChainGraph>().ok());
    let mut kept = known.unwrap_or_default();
    let queued = kept.queue(stream, call);
    call.instance.kept = Some(kept);
    queued
}

impl ChainGraph {
    /// As [`queue_graph`].
    #[inline]
    fn queue(
        &mut self,
        stream: &Arc<GpuStream>,
        call: &ChainCall<'_>,
    ) -> Result<Option<Position>, BackendError> {
        if !self.prepare(stream, call)? {
            return Ok(None);
        }
        let Some(graph) = &mut self.graph else { return Ok(None) };
        match graph.queue(stream, call) {
            Err(error) if error.kind != BackendErrorKind::DeviceLost => {
                self.note_refusal(&error);
                self.graph = None;
                Ok(None)
            }
            queued => queued.map(Some),
        }
    }

    /// Makes the graph that does what the steps do, if there is none yet or it cannot be changed.
    /// Returns `false` if there can be none. The context is current.
    #[inline]
    fn prepare(&mut self, stream: &GpuStream, call: &ChainCall<'_>) -> Result<bool, BackendError> {
        if let Some(graph) = &mut self.graph {
            // SAFETY: the context is current, and this thread alone has the instance. The modules
            // that use the backend pack the arguments that the kernel's signature has.
            let changed = unsafe { graph.nodes.change(stream.device.context(), call) };
            if changed? {
                return Ok(true);
            }
            self.graph = None;
        }
        self.make(stream, call)
    }

    #[cold]
    fn make(&mut self, stream: &GpuStream, call: &ChainCall<'_>) -> Result<bool, BackendError> {
        if self.refusals >= REFUSALS_MAX {
            return Ok(false);
        }
        let _relaxed = Relaxed::enter(stream.driver());
        // SAFETY: as in `prepare`.
        match unsafe { ChainNodes::new(stream.device.context(), call) } {
            Ok(Some(nodes)) => {
                let names = call.steps.iter().map(|step| name_of(call.instance, step)).collect();
                self.graph = Some(Graph { nodes, names, launches: SmallVec::new() });
            }
            Ok(None) => self.refusals = REFUSALS_MAX,
            Err(error) if error.kind == BackendErrorKind::DeviceLost => return Err(error),
            Err(error) => self.note_refusal(&error),
        }
        Ok(self.graph.is_some())
    }

    fn note_refusal(&mut self, error: &BackendError) {
        let lacks = BackendErrorKind::Driver { code: status::NOT_SUPPORTED.into() };
        self.refusals = if error.kind == lacks { REFUSALS_MAX } else { self.refusals + 1 };
    }
}

impl Graph {
    /// Queues the replays. An error says that none is queued.
    fn queue(
        &mut self,
        stream: &Arc<GpuStream>,
        call: &ChainCall<'_>,
    ) -> Result<Position, BackendError> {
        let mut state = stream.state();
        let depends = match pending(stream, &state, call) {
            Ok(depends) => depends,
            Err(root) => return Ok(skip_steps(stream, &mut state, call.steps, &root)),
        };
        for replay in 0..call.count {
            if replay > 0 && replay % REPLAYS_PER_LOCK == 0 {
                drop(state);
                state = stream.state();
            }
            // SAFETY: `queue_graph` made the context current, and has the instance alone. The
            // modules that use the backend keep memory alive and order its uses (contract in
            // `backend`).
            let queued = unsafe { self.nodes.launch(stream.raw_stream()) };
            match queued {
                Ok(()) => {}
                Err(error) if replay == 0 => return Err(error),
                Err(error) => {
                    let last = fail_steps(stream, &mut state, call, &error);
                    self.note_launch(stream, last);
                    return Ok(last);
                }
            }
        }
        let last = stream.enter_steps(&mut state, &depends, call.steps.iter().map(loss_of));
        state.in_flight.record_steps(last, &self.names);
        drop(state);
        self.note_launch(stream, last);
        Ok(last)
    }

    #[inline]
    fn note_launch(&mut self, stream: &Arc<GpuStream>, position: Position) {
        let is_this = |known: &Weak<GpuStream>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(stream));
        if let Some((_, last)) = self.launches.iter_mut().find(|(known, _)| is_this(known)) {
            *last = position;
            return;
        }
        self.launches.retain(|(stream, _)| stream.strong_count() > 0);
        self.launches.push((Arc::downgrade(stream), position));
    }
}

impl Drop for Graph {
    /// If launches may be in flight, leaves it to their streams to destroy the graph after them.
    fn drop(&mut self) {
        for (stream, position) in self.launches.drain(..) {
            // If the stream is gone, the driver keeps what its work needs.
            let Some(stream) = stream.upgrade() else { continue };
            if stream.completed() < position {
                let _graph = Arc::clone(self.nodes.executable());
                stream.enter_without_call(CompletionAction::DropGraph { _graph });
            }
        }
    }
}

/// The dependencies of a chain that may still fail, or the failure of one that has.
#[inline]
fn pending(
    stream: &GpuStream,
    state: &StreamState,
    call: &ChainCall<'_>,
) -> Result<Dependencies, Arc<FailureRecord>> {
    if stream.is_independent(state, call.depends) {
        return Ok(Dependencies::new());
    }
    stream.pending_dependencies(state, call.depends)
}

/// Assigns positions to steps that do not run, since the chain depends on failed work.
fn skip_steps(
    stream: &GpuStream,
    state: &mut StreamState,
    steps: &[ChainStep],
    root: &FailureRecord,
) -> Position {
    let skipped = steps.iter().map(|step| skip(stream, state, root, loss_of(step)));
    skipped.last().unwrap_or(Position(state.tail))
}

/// Assigns positions to steps of which the driver refused a replay after it had queued others.
fn fail_steps(
    stream: &GpuStream,
    state: &mut StreamState,
    call: &ChainCall<'_>,
    error: &BackendError,
) -> Position {
    let Some(first) = call.steps.first() else { return Position(state.tail) };
    let is_dead = error.kind == BackendErrorKind::DeviceLost;
    let record = FailureRecord {
        kind: if is_dead { FailureKind::Device } else { loss_of(first) },
        operation: first.work.name_in(&call.instance.title),
        site: first.work.site(),
        cause: error.to_string(),
        inherited: false,
        left_out: None,
    };
    let position = stream.next_position(state);
    failure::record(stream.id, position, Arc::new(record.clone()));
    let rest = &call.steps[1..];
    if rest.is_empty() { position } else { skip_steps(stream, state, rest, &record) }
}

#[inline]
fn loss_of(step: &ChainStep) -> FailureKind {
    match &step.work {
        Work::Launch(_) => FailureKind::Contents,
        Work::Copy(copy) => copy.loss,
        Work::Fill(fill) => fill.loss,
    }
}

fn name_of(instance: &ChainInstance, step: &ChainStep) -> OperationName {
    let text = LabelText::Text(step.work.name_in(&instance.title).into());
    OperationName { is_kernel: false, text, site: step.work.site() }
}
