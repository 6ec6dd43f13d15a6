//! Watches: while one exists, the newest contents of an array are copied to memory of its own, at
//! most one copy at a time, so that states in between are skipped.
//!
//! A copy of a state is *taken* under the array's lock: it is checked that no access is between its
//! acquisition and its mark, and that no host guard of what is newest on the host exists; then the
//! copies from devices are queued behind the work that wrote the array and recorded as reads. So
//! any thread may take a state at any time, whatever borrows exist. The thread that changes the
//! array does, when it has queued the change, if the newest contents are all on devices, where
//! taking them takes no time. What is newest on the host is copied by threads that query the watch,
//! in chunks, with the lock held for each (`turn`); and only if a thread queried in vain, because a
//! guard existed, does the thread that drops the guard copy it.
//!
//! The watch's own lock is held for a few instructions, together with no other.

mod host_copy;
mod state;
mod turn;

use std::sync::{Arc, Weak};
use std::time::Duration;

use smallvec::SmallVec;

use crate::audit;
use crate::device::{self, Stream};
use crate::error::{CalledAt, Error, Result};
use crate::storage::{Storage, Watcher};
use crate::transfer::access::request::Queued;
use crate::transfer::contents::copy_out::failure_of_copies;
use host_copy::HostCopy;
use resident_backend::call_site::CallSite;
use resident_backend::sync::{self, EventCount, Mutex};
use resident_backend::{BackendError, Position, TaskWaker, scope};
pub(crate) use state::WatchedState;
use state::{Spares, give_back};
use turn::{InFlight, Occasion, Streams, Taken, Turn};

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

// As of `Storage`: a panic leaves it usable.
impl std::panic::RefUnwindSafe for WatchCore {}

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
    /// The work for which the next state waits.
    behind: Option<(Stream, Position)>,
    /// Whether a query found a state that it could not take.
    is_wanted: bool,
    /// Usually one; the last state of an array is queued behind another.
    in_flight: SmallVec<[InFlight; 1]>,
    latest: Option<Arc<WatchedState>>,
    failed: Option<Error>,
    is_over: bool,
    /// The streams of the copies, each of another device.
    streams: Streams,
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
        let watched: Weak<Storage> = Arc::downgrade(storage);
        state.watch(watched, watcher);
        drop(state);
        core
    }

    /// The array's name for messages.
    pub(crate) fn array(&self) -> &str {
        &self.array
    }

    /// The newest complete state. Does not wait.
    pub(crate) fn latest(&self) -> Option<Arc<WatchedState>> {
        self.advance(Occasion::Query);
        report();
        self.state.lock().latest.clone()
    }

    /// The first state after the change `seen`, or why there is none yet. Does not wait.
    ///
    /// # Errors
    ///
    /// A failure that no earlier call has returned.
    pub(crate) fn next(&self, seen: u64) -> Result<Next> {
        self.advance(Occasion::Query);
        report();
        let mut state = self.state.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if let Some(latest) = state.latest.as_ref().filter(|latest| latest.change > seen) {
            return Ok(Next::State(Arc::clone(latest)));
        }
        let pending = state.in_flight.first().and_then(InFlight::first_pending);
        if let Some((stream, position)) = pending.or(state.behind.as_ref()) {
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
    fn advance(&self, occasion: Occasion) {
        while self.complete_first() {}
        while let Some(mut turn) = self.begin_turn(occasion) {
            let taken = turn.take();
            if !self.end_turn(turn, taken) {
                break;
            }
        }
        if self.state.lock().in_flight.first().is_some_and(|first| first.queued.is_empty()) {
            // The host has copied all of it.
            self.complete_first();
        }
    }

    /// Completes the first copy in flight, if it is over. Returns whether it did.
    fn complete_first(&self) -> bool {
        let first = {
            let state = self.state.lock();
            let ends = |first: &InFlight| first.ends().cloned().collect::<Queued>();
            state.in_flight.first().map(|first| (first.change, ends(first)))
        };
        let Some((change, ends)) = first else { return false };
        for (stream, position) in ends {
            let raw = stream.raw();
            // The caller that waits gets the error of a refused poll.
            let is_complete = || matches!(raw.poll(position), Ok(true));
            if raw.completed() < position && !is_complete() {
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
    fn begin_turn(&self, occasion: Occasion) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        let is_at_once = occasion == Occasion::End;
        let is_free = !state.is_taking && (is_at_once || state.in_flight.is_empty());
        if !is_free || state.is_over || state.asked <= state.taken {
            return None;
        }
        state.is_taking = true;
        let (notified, streams) = (state.changes, state.streams.clone());
        let occasion = match occasion {
            Occasion::Change if state.is_wanted => Occasion::AwaitedChange,
            other => other,
        };
        Some(Turn {
            occasion,
            array: &self.storage,
            site: self.site,
            before: self.before,
            spares: &self.spares,
            notified,
            change: notified,
            streams,
            memory: None,
            host_copy: HostCopy::default(),
        })
    }

    /// Returns whether there is more to take.
    fn end_turn(&self, turn: Turn<'_>, taken: Result<Taken>) -> bool {
        let Turn { occasion, notified, change, mut streams, memory: unused, .. } = turn;
        unused.into_iter().for_each(|memory| give_back(&self.spares, memory));
        let mut behind = match &taken {
            Ok(Taken::BehindWork(stream, position)) => Some((stream.clone(), *position)),
            _ => None,
        };
        let mut state = self.state.lock();
        // Those before drop without the lock.
        std::mem::swap(&mut state.streams, &mut streams);
        std::mem::swap(&mut state.behind, &mut behind);
        state.is_taking = false;
        state.is_blocked = matches!(taken, Ok(Taken::BehindAccess));
        match taken {
            Ok(Taken::BehindAccess | Taken::BehindGuard | Taken::BehindWork(..)) => {
                state.is_wanted |= occasion == Occasion::Query;
                return state.changes > notified;
            }
            Ok(Taken::OnHost) => return false,
            Ok(Taken::Over) => state.is_over = true,
            Ok(Taken::Copy(copy)) => state.in_flight.push(copy),
            Ok(Taken::Nowhere) => {}
            Err(error) => state.failed = Some(error),
        }
        state.taken = change;
        state.is_wanted = false;
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
        self.advance(Occasion::Change);
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
            self.advance(Occasion::End);
            let mut state = self.state.lock();
            // Work that writes memory which the host and a device share.
            let behind = state.behind.take();
            if !state.is_taking && behind.is_none() {
                state.is_over = true;
                break;
            }
            drop(state);
            match behind {
                Some((stream, end)) if stream.wait_until(end, self.site).is_ok() => {}
                // This thread may not wait, or the device is lost: there is no last state.
                Some(_) => self.state.lock().is_over = true,
                // Another thread takes an earlier state, for which it waits for nothing.
                None => std::thread::yield_now(),
            }
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
