//! Watches: while one exists, changes of an array by queued work are copied to the host, at most
//! one copy at a time, so that states in between are skipped.
//!
//! A copy of a state is *taken* under the array's lock, in one step: it is checked that the whole
//! array is on one device and that no access is between its acquisition and its mark, then the
//! copy is queued behind the work that wrote the array and recorded as a read. So any thread may
//! take a state at any time, whatever borrows exist: the thread that changes the array does, when
//! it has queued the change, and so do threads that query the watch.
//!
//! The watch's own lock is held for a few instructions, together with no other.

mod state;
mod turn;

use std::sync::{Arc, Weak};
use std::time::Duration;

use smallvec::SmallVec;

use super::copy_out::failure_of_copies;
use crate::audit;
use crate::device::{self, Stream};
use crate::error::{CalledAt, Error, Result};
use crate::storage::{Storage, Watcher};
use resident_backend::call_site::CallSite;
use resident_backend::sync::{self, EventCount, Mutex};
use resident_backend::{BackendError, Position, TaskWaker, scope};
pub(crate) use state::WatchedState;
use state::{Spares, give_back};
use turn::{InFlight, Taken, Turn};

/// How long a thread that waits pauses before it looks again whether an access of another thread is
/// over, which ends without a notification.
const PAUSE: Duration = Duration::from_micros(200);

/// What a watch shares with the array that it watches.
pub(crate) struct WatchCore {
    storage: Weak<Storage>,
    /// The array's name for messages.
    array: String,
    site: CallSite,
    /// A state is taken after this many changes.
    every: u64,
    /// How often the array had been changed when the watch began.
    before: u64,
    state: Mutex<States>,
    spares: Arc<Spares>,
    /// Announced when there is something to look at.
    news: EventCount,
}

/// The states of an array, from the one to be taken to the newest complete one.
#[derive(Default)]
struct States {
    /// How often the array has been changed since, as far as the watch was notified.
    changes: u64,
    /// The change after which a state was last asked for.
    asked: u64,
    /// The change up to which a state was taken, or could not be.
    taken: u64,
    /// Whether a thread is taking a state.
    is_taking: bool,
    /// Whether the next state waits for something that ends without a notification.
    is_blocked: bool,
    /// Usually one; the last state of an array is queued behind another.
    in_flight: SmallVec<[InFlight; 1]>,
    latest: Option<Arc<WatchedState>>,
    failed: Option<Error>,
    is_over: bool,
    /// The stream of the copies.
    stream: Option<Stream>,
    tasks: Vec<Arc<TaskWaker>>,
}

/// What a watch has for a caller that knows the states up to a change.
pub(crate) enum Next {
    State(Arc<WatchedState>),
    /// The array is gone, and its last state is known.
    Over,
    /// A state is there once this work is complete.
    Queued(Stream, Position),
    /// A change waits for an access of another thread, which ends without a notification.
    Blocked,
    /// Nothing before the next change.
    Nothing,
}

/// When a state is taken that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// When no copy is in flight, so that states in between are skipped.
    OneAtATime,
    /// At once, behind other copies: the array is about to lose its memory.
    AtOnce,
}

impl WatchCore {
    /// Begins to watch an array.
    pub(crate) fn begin(storage: &Arc<Storage>, every: u64, site: CallSite) -> Arc<Self> {
        let array = storage.named();
        let mut state = storage.lock();
        let core = Arc::new(Self {
            storage: Arc::downgrade(storage),
            array,
            site,
            every: every.max(1),
            before: state.changes(),
            state: Mutex::default(),
            spares: Arc::default(),
            news: EventCount::new(),
        });
        let watcher: Weak<Self> = Arc::downgrade(&core);
        state.watch(watcher);
        drop(state);
        core
    }

    /// The array's name for messages.
    pub(crate) fn array(&self) -> &str {
        &self.array
    }

    /// The newest complete state. Does not wait.
    pub(crate) fn latest(&self) -> Option<Arc<WatchedState>> {
        self.advance(Pace::OneAtATime);
        report();
        self.state.lock().latest.clone()
    }

    /// The first state after the change `seen`, or why there is none yet. Does not wait.
    ///
    /// # Errors
    ///
    /// A failure that no earlier call has returned.
    pub(crate) fn next(&self, seen: u64) -> Result<Next> {
        self.advance(Pace::OneAtATime);
        report();
        let mut state = self.state.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if let Some(latest) = state.latest.as_ref().filter(|latest| latest.change > seen) {
            return Ok(Next::State(Arc::clone(latest)));
        }
        let first = state.in_flight.first();
        if let Some((stream, position)) = first.and_then(|first| first.queued.last()) {
            return Ok(Next::Queued(stream.clone(), *position));
        }
        Ok(match () {
            () if state.is_over => Next::Over,
            () if state.is_blocked => Next::Blocked,
            () => Next::Nothing,
        })
    }

    /// Waits for the first state after the change `seen`. `None` if there will be none.
    pub(crate) fn wait(&self, seen: u64, site: CallSite) -> Result<Option<Arc<WatchedState>>> {
        loop {
            let news = self.news.current();
            match self.next(seen)? {
                Next::State(state) => return Ok(Some(state)),
                Next::Over => return Ok(None),
                Next::Queued(stream, position) => {
                    let waited = stream.wait_until(position, site);
                    waited.map_err(|error| self.call_error(&stream, "waiting for", &error))?;
                }
                Next::Blocked | Next::Nothing if scope::is_in_body() => {
                    return Err(Error::InsideKernel {
                        call: CalledAt::UNKNOWN,
                        operation: format!("changed of a watch of {}", self.array),
                        waits_for: format!("the next change of {}", self.array),
                    });
                }
                Next::Blocked => self.news.wait_after_at_most(news, PAUSE),
                Next::Nothing => self.news.wait_after(news),
            }
        }
    }

    /// Wakes a task at the next change, or when the array is gone.
    pub(crate) fn wake_at_news(&self, task: &Arc<TaskWaker>) {
        let mut state = self.state.lock();
        if !state.tasks.iter().any(|known| Arc::ptr_eq(known, task)) {
            state.tasks.push(Arc::clone(task));
        }
    }

    /// Forgets a task.
    pub(crate) fn forget_task(&self, task: &Arc<TaskWaker>) {
        let is_this = |known: &mut Arc<TaskWaker>| Arc::ptr_eq(known, task);
        let forgotten: Vec<_> = self.state.lock().tasks.extract_if(.., is_this).collect();
        drop(forgotten);
    }

    /// The error of a call of the backend that failed.
    pub(crate) fn call_error(&self, stream: &Stream, doing: &str, error: &BackendError) -> Error {
        let operation = format!("{doing} a state of {}", self.array);
        device::call_error(stream.device_ref(), &self.array, &operation, error)
    }

    fn announce(&self) {
        let tasks = std::mem::take(&mut self.state.lock().tasks);
        self.news.announce();
        tasks.iter().for_each(|task| task.wake());
    }

    /// Completes the copies that are over, and takes a state if one was asked for.
    fn advance(&self, pace: Pace) {
        while self.complete_first() {}
        while let Some(mut turn) = self.begin_turn(pace) {
            let taken = turn.take();
            if !self.end_turn(turn, taken) {
                return;
            }
        }
    }

    /// Completes the first copy in flight, if it is over. Returns whether it did.
    fn complete_first(&self) -> bool {
        let first = {
            let state = self.state.lock();
            state.in_flight.first().map(|first| (first.change, first.queued.last().cloned()))
        };
        let Some((change, end)) = first else { return false };
        if let Some((stream, position)) = end {
            let queue = stream.queue();
            // The caller that waits gets the error of a refused poll.
            let is_complete = || matches!(queue.poll(position), Ok(true));
            if queue.completed() < position && !is_complete() {
                return false;
            }
        }
        let completed = {
            let mut state = self.state.lock();
            match state.in_flight.first() {
                Some(first) if first.change == change => state.in_flight.remove(0),
                // Another thread has completed it.
                _ => return true,
            }
        };
        if let Some(error) = failure_of_copies(&self.array, &completed.queued) {
            self.state.lock().failed = Some(error);
            return true;
        }
        let (buffer, spares) = (Some(completed.buffer), Arc::clone(&self.spares));
        let new = Arc::new(WatchedState { change, buffer, spares });
        let old = self.state.lock().latest.replace(new);
        drop(old);
        true
    }

    /// This thread's turn to take a state, if one was asked for.
    fn begin_turn(&self, pace: Pace) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        let is_free = !state.is_taking && (pace == Pace::AtOnce || state.in_flight.is_empty());
        if !is_free || state.is_over || state.asked <= state.taken {
            return None;
        }
        state.is_taking = true;
        let (notified, stream) = (state.changes, state.stream.clone());
        Some(Turn {
            array: &self.storage,
            site: self.site,
            before: self.before,
            spares: &self.spares,
            notified,
            change: notified,
            stream,
            memory: None,
        })
    }

    /// Returns whether there is more to take.
    fn end_turn(&self, turn: Turn<'_>, taken: Result<Taken>) -> bool {
        let Turn { notified, change, mut stream, memory: unused, .. } = turn;
        unused.into_iter().for_each(|memory| give_back(&self.spares, memory));
        let mut state = self.state.lock();
        // The one before drops without the lock.
        std::mem::swap(&mut state.stream, &mut stream);
        state.is_taking = false;
        state.is_blocked = matches!(taken, Ok(Taken::BehindAccess));
        match taken {
            Ok(Taken::BehindAccess | Taken::BehindGuard) => return state.changes > notified,
            Ok(Taken::Over) => state.is_over = true,
            Ok(Taken::Copy(copy)) => state.in_flight.push(copy),
            Ok(Taken::Nowhere) => {}
            Err(error) => state.failed = Some(error),
        }
        state.taken = change;
        false
    }
}

impl Watcher for WatchCore {
    fn notify(self: Arc<Self>, changes: u64) {
        let changes = changes - self.before;
        let (taken_before, is_change) = {
            let mut state = self.state.lock();
            let is_change = changes > state.changes;
            if is_change {
                state.changes = changes;
                state.asked = state.asked.max(changes - changes % self.every);
            }
            (state.taken, is_change)
        };
        self.advance(Pace::OneAtATime);
        let has_taken = self.state.lock().taken > taken_before;
        if has_taken || is_change {
            self.announce();
        }
        report();
    }

    fn finish(self: Arc<Self>, changes: u64) {
        {
            let mut state = self.state.lock();
            state.changes = changes - self.before;
            state.asked = state.changes;
        }
        loop {
            self.advance(Pace::AtOnce);
            let mut state = self.state.lock();
            if !state.is_taking {
                state.is_over = true;
                break;
            }
            drop(state);
            // Another thread takes an earlier state, for which it waits for nothing.
            std::thread::yield_now();
        }
        self.announce();
        report();
    }
}

/// Passes reports of copies to captures and subscribers, and drops streams. Last: a subscriber that
/// panics must leave nothing half done.
fn report() {
    audit::report_recorded();
    sync::run_deferred_drops();
}
