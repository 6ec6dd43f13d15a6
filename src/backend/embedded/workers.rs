//! Lanes with a thread of their own: started at the first work, ended when the handle is gone and
//! the line is empty.

use std::collections::VecDeque;
use std::hint;
use std::sync::Arc;
use std::thread;

use super::lane::Lane;
use super::operation::Queued;
use super::progress;
use crate::backend::scope::BodyScope;
use crate::backend::{BackendError, BackendErrorKind, Position};

/// Looks before the worker sleeps: a few microseconds, since there may be only one other core.
const SPINS: u32 = 200;

/// The driver code of a thread that could not be started.
const CODE_NO_THREAD: i64 = 3;

/// What a lane's thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// There is none yet.
    #[default]
    Absent,
    /// It runs, and will look at the line once more before it sleeps.
    Awake,
    /// It sleeps, or is about to while it holds the lock.
    Asleep,
}

impl State {
    /// Something arrived: says whether the thread has to be woken.
    pub(super) fn rouse(&mut self) -> bool {
        let asleep = *self == Self::Asleep;
        if asleep {
            *self = Self::Awake;
        }
        asleep
    }
}

/// Starts the lane's thread if there is none. Called with the line locked, before anything is
/// queued.
pub(super) fn ensure(lane: &Arc<Lane>, line: &mut super::lane::Line) -> Result<(), BackendError> {
    if line.worker == State::Absent {
        start(lane)?;
        line.worker = State::Awake;
    }
    Ok(())
}

#[cold]
fn start(lane: &Arc<Lane>) -> Result<(), BackendError> {
    let name = format!("resident cpu:{}.{}", lane.device().ordinal, lane.number());
    let lane = Arc::clone(lane);
    let spawned = thread::Builder::new().name(name).spawn(move || work(&lane));
    spawned.map(drop).map_err(|error| BackendError {
        kind: BackendErrorKind::Driver {
            code: error.raw_os_error().map_or(CODE_NO_THREAD, i64::from),
        },
        call: "submit",
        detail: format!("the stream's thread could not be started: {error}"),
    })
}

/// The thread: takes the whole line at once, runs it, looks for more.
fn work(lane: &Lane) {
    let _running = BodyScope::enter();
    let mut batch = VecDeque::new();
    while take(lane, &mut batch) {
        while let Some(queued) = batch.pop_front() {
            // Wakers run code of their own; this thread is marked, so that none of it waits here.
            progress::wake(lane.run(queued));
        }
    }
}

/// Swaps the line with the empty batch, so that both keep their memory; waits for something to
/// arrive. `false`: nothing will.
fn take(lane: &Lane, batch: &mut VecDeque<Queued>) -> bool {
    spin(lane);
    let mut line = lane.lock();
    loop {
        if !line.queued.is_empty() {
            std::mem::swap(&mut line.queued, batch);
            return true;
        }
        if line.closed {
            return false;
        }
        line.worker = State::Asleep;
        line = lane.sleep(line);
        line.worker = State::Awake;
    }
}

fn spin(lane: &Lane) {
    let completed: Position = lane.progress().completed();
    for _ in 0..SPINS {
        if lane.tail() != completed {
            return;
        }
        hint::spin_loop();
    }
}
