//! A world of seeded devices: nothing runs by itself, and whoever waits runs ready operations one
//! at a time, in an order drawn from the seed.
//!
//! Handles (devices, queues, events) hold the world, the world holds its lanes, and lanes hold
//! neither: so a world ends with its last handle, and with it the work that nobody waited for.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use smallvec::SmallVec;

use super::lane::Lane;
use super::operation::{Operation, Point, Queued, Upkeep};
use super::progress;
use super::tracker::Tracker;
use crate::backend::Position;

thread_local! {
    /// The world that seeded devices made on this thread join while it lives.
    static CURRENT: RefCell<Weak<World>> = const { RefCell::new(Weak::new()) };
}

/// All seeded devices of one thread.
#[derive(Debug)]
pub(super) struct World {
    /// Held while an operation runs: one at a time.
    turn: Mutex<()>,
    state: Mutex<State>,
    tracker: Arc<Tracker>,
}

#[derive(Debug)]
struct State {
    random: u64,
    lanes: Vec<Arc<Lane>>,
}

impl World {
    /// This thread's world, with `seed` mixed into its random state; a new one if none is alive.
    pub(super) fn join(seed: u64) -> Arc<Self> {
        CURRENT.with_borrow_mut(|current| {
            let world = current.upgrade().unwrap_or_else(|| Arc::new(Self::new()));
            *current = Arc::downgrade(&world);
            let mut state = world.lock();
            state.random = mix(state.random ^ mix(seed));
            drop(state);
            world
        })
    }

    fn new() -> Self {
        Self {
            turn: Mutex::new(()),
            state: Mutex::new(State { random: 0, lanes: Vec::new() }),
            tracker: Arc::default(),
        }
    }

    /// The check of ordering that its devices share.
    pub(super) fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// Takes a new lane in.
    pub(super) fn add(&self, lane: Arc<Lane>) {
        self.lock().lanes.push(lane);
    }

    /// Runs one ready operation; `false` if there is none. Must not be called by a thread that runs
    /// one: it holds the turn.
    pub(super) fn step(&self) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((lane, queued)) = self.draw() else { return false };
        let due = lane.run(queued);
        drop(turn);
        progress::wake(due);
        true
    }

    /// Runs ready operations until `position` of `lane` has completed; `false` if that cannot come
    /// to be.
    pub(super) fn run_until(&self, lane: &Arc<Lane>, position: Position) -> bool {
        while !lane.progress().is_complete(position) {
            if self.step() {
                continue;
            }
            // Nothing is ready. What holds the lane up may be a lane that is not of this world;
            // otherwise another thread ran something meanwhile.
            match self.foreign_point_before(lane) {
                Some(point) if point.wait().is_err() => return false,
                _ => {}
            }
        }
        true
    }

    /// Takes a random one of the operations that are ready off its line.
    fn draw(&self) -> Option<(Arc<Lane>, Queued)> {
        let mut state = self.lock();
        state.lanes.retain(|lane| !is_over(lane));
        let ready: SmallVec<[usize; 16]> =
            (0..state.lanes.len()).filter(|index| is_ready(&state.lanes[*index])).collect();
        if ready.is_empty() {
            return None;
        }
        state.random = state.random.wrapping_add(GOLDEN);
        let index = ready[(mix(state.random) % ready.len() as u64) as usize];
        let lane = Arc::clone(&state.lanes[index]);
        drop(state);
        let queued = lane.lock().queued.pop_front()?;
        Some((lane, queued))
    }

    /// The event of another world that `lane` is held up by, itself or through the lanes that it
    /// waits for. What other lanes wait for is of no interest: the caller may be the very thread
    /// that is to complete it.
    fn foreign_point_before(&self, lane: &Arc<Lane>) -> Option<Point> {
        let lanes = self.lock().lanes.clone();
        let mut point = pending_point(lane)?;
        while lanes.iter().any(|known| Arc::ptr_eq(known, &point.lane)) {
            point = pending_point(&point.lane)?;
        }
        Some(point)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let lanes = std::mem::take(&mut self.lock().lanes);
        lanes.iter().for_each(|lane| lane.abandon());
    }
}

/// A lane that is empty and will stay so. One that still runs its last operation is not of interest
/// either.
fn is_over(lane: &Arc<Lane>) -> bool {
    let line = lane.lock();
    line.closed && line.queued.is_empty()
}

fn is_ready(lane: &Arc<Lane>) -> bool {
    match lane.lock().queued.front().map(|queued| &queued.operation) {
        None => false,
        Some(Operation::Upkeep(Upkeep::Wait(point))) => point.is_complete(),
        Some(_) => true,
    }
}

/// The event that the line's next operation waits for.
fn pending_point(lane: &Arc<Lane>) -> Option<Point> {
    match &lane.lock().queued.front()?.operation {
        Operation::Upkeep(Upkeep::Wait(point)) if !point.is_complete() => Some(point.clone()),
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
