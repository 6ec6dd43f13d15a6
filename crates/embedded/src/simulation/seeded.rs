//! The simulation: a scheduler of seeded devices. Their operations run only on threads that wait or
//! poll, one at a time, in an order that the seed determines.
//!
//! Handles (devices, streams, events) own the simulation, and the simulation owns its streams.
//! Streams own neither handles nor the simulation. So a simulation ends when its last handle drops,
//! and drops the work that no thread has waited for.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError, Weak};

use smallvec::SmallVec;

use crate::engine::{ControlOperation, EmbeddedStream, QueuedOperation, StreamPoint, wake_all};
use crate::race_check::Tracker;
use resident_backend::Position;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::thread_pools::off_pool;

thread_local! {
    /// The simulation that new seeded devices of this thread join, if it is still alive.
    static CURRENT: RefCell<Weak<Simulation>> = const { RefCell::new(Weak::new()) };
}

/// All seeded devices of one thread.
#[derive(Debug)]
pub(crate) struct Simulation {
    /// The turn: a lock that is held while an operation runs, so that operations run one at a time.
    /// Bodies, and drops of what they captured, run under it. They cannot ask for it again: calls
    /// that would run or wait for other work are refused inside a body (`BodyScope`).
    turn: std::sync::Mutex<()>,
    state: BackendLock<SimulationState>,
    tracker: Arc<Tracker>,
}

#[derive(Debug, Default)]
struct SimulationState {
    random: u64,
    streams: Vec<Arc<EmbeddedStream>>,
}

impl Simulation {
    /// This thread's simulation, or a new one if none is alive, with `seed` mixed into its random
    /// state.
    pub(crate) fn join(seed: u64) -> Arc<Self> {
        let joined = CURRENT.try_with(|current| {
            let mut current = current.borrow_mut();
            let simulation = current.upgrade().unwrap_or_else(|| Arc::new(Self::new()));
            *current = Arc::downgrade(&simulation);
            simulation
        });
        // At the thread's end its devices have a simulation each, which wait for each other's work
        // as for that of any other device.
        let simulation = joined.unwrap_or_else(|_| Arc::new(Self::new()));
        let mut state = simulation.lock();
        state.random = mix(state.random ^ mix(seed));
        drop(state);
        simulation
    }

    fn new() -> Self {
        Self {
            turn: std::sync::Mutex::new(()),
            state: BackendLock::default(),
            tracker: Arc::default(),
        }
    }

    /// The race check that the simulation's devices share.
    pub(crate) fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// Adds a new stream.
    pub(crate) fn add(&self, stream: Arc<EmbeddedStream>) {
        self.lock().streams.push(stream);
    }

    /// Runs one ready operation. Returns `false` if no operation is ready. Must not be called on a
    /// thread that runs an operation, since that thread holds the turn.
    fn run_one(&self) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((stream, mut queued)) = self.take_random_ready() else { return false };
        let due = stream.run(&mut queued);
        drop(turn);
        wake_all(due);
        true
    }

    /// Runs one ready operation for a thread that polls `position` of `stream`. If none is ready,
    /// and the position waits for another simulation, runs one there: perhaps no other thread does.
    pub(crate) fn poll(&self, stream: &EmbeddedStream, position: Position) {
        off_pool(|| self.poll_here(stream, position));
    }

    fn poll_here(&self, stream: &EmbeddedStream, position: Position) {
        if !self.run_one()
            && let Some(point) = self.outside_point_before(stream, position)
        {
            point.stream.poll(point.position);
        }
    }

    /// Runs ready operations until `position` of `stream` has completed. Returns `false` if that
    /// position cannot complete.
    pub(crate) fn run_until(&self, stream: &Arc<EmbeddedStream>, position: Position) -> bool {
        off_pool(|| self.run_until_here(stream, position))
    }

    fn run_until_here(&self, stream: &Arc<EmbeddedStream>, position: Position) -> bool {
        while !stream.progress.is_complete(position) {
            if self.run_one() {
                continue;
            }
            // Nothing is ready. The position waits for a stream outside this simulation, or another
            // thread has run an operation meanwhile.
            match self.outside_point_before(stream, position) {
                Some(point) if point.wait().is_err() => return false,
                _ => {}
            }
        }
        true
    }

    /// Dequeues a random one of the operations that are ready.
    fn take_random_ready(&self) -> Option<(Arc<EmbeddedStream>, QueuedOperation)> {
        let mut state = self.lock();
        state.streams.retain(|stream| !is_finished(stream));
        let ready: SmallVec<[usize; 16]> =
            (0..state.streams.len()).filter(|index| is_ready(&state.streams[*index])).collect();
        if ready.is_empty() {
            return None;
        }
        state.random = state.random.wrapping_add(GOLDEN);
        let index = ready[(mix(state.random) % ready.len() as u64) as usize];
        let stream = Arc::clone(&state.streams[index]);
        drop(state);
        let queued = stream.lock().queued.pop()?;
        Some((stream, queued))
    }

    /// The event outside this simulation that `position` of `stream` waits for, directly or through
    /// the streams that it waits for. Later operations of these streams do not matter: perhaps only
    /// the calling thread can complete what they wait for.
    fn outside_point_before(
        &self,
        stream: &EmbeddedStream,
        position: Position,
    ) -> Option<StreamPoint> {
        let streams = self.lock().streams.clone();
        let mut point = pending_point(stream, position)?;
        while streams.iter().any(|known| Arc::ptr_eq(known, &point.stream)) {
            point = pending_point(&point.stream, point.position)?;
        }
        Some(point)
    }

    fn lock(&self) -> BackendGuard<'_, SimulationState> {
        self.state.lock()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        let streams = std::mem::take(&mut self.lock().streams);
        streams.iter().for_each(|stream| stream.drop_queued());
    }
}

/// Whether a stream has no queued operations and will get none. Its last operation may still run.
fn is_finished(stream: &Arc<EmbeddedStream>) -> bool {
    let state = stream.lock();
    state.is_closed && state.queued.is_empty()
}

fn is_ready(stream: &Arc<EmbeddedStream>) -> bool {
    match stream.lock().queued.front() {
        None => false,
        Some((_, Some(ControlOperation::Wait(point)))) => point.is_complete(),
        Some(_) => true,
    }
}

/// The event that the stream's next operation waits for, if `position` is not before that
/// operation.
fn pending_point(stream: &EmbeddedStream, position: Position) -> Option<StreamPoint> {
    let state = stream.lock();
    let (_, control) = state.queued.front().filter(|(next, _)| *next <= position)?;
    match control {
        Some(ControlOperation::Wait(point)) if !point.is_complete() => Some(point.clone()),
        _ => None,
    }
}

/// The increment of splitmix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of splitmix64: neighbouring seeds give unrelated orders.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
