//! Until when the operations of the communicator may take.
//!
//! An operation of NCCL's that waits for another process keeps its stream busy, and with it all
//! that waits for the stream: a read of an array, or the driver when memory is pinned. So a thread
//! looks whether operations are over in time, and aborts the communicator if one is not, which ends
//! them all. What they were to write is lost then, and so are copies of it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use resident::Event;
use resident::nccl::{self, Comm};

use crate::awaited::Awaited;
use crate::error::{Error, Result};
use crate::watchdog::say;

/// The communicator, and the thread that watches it.
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// `None` once it is aborted. Locked while the communicator is used.
    comm: Mutex<Option<Owned>>,
    state: Mutex<State>,
    /// There is something to watch, or the watch is over.
    changed: Condvar,
    timeout: Duration,
}

struct Owned(Comm);

// SAFETY: NCCL's communicators may be used by any thread, by one at a time, for which `Shared`
// locks a mutex. The stream of cudarc's object is `Send` by itself.
unsafe impl Send for Owned {}

#[derive(Default)]
struct State {
    /// Since when the program's thread is in a call of NCCL's, and for what.
    entered: Option<(Instant, Awaited)>,
    /// What is not known to be over, in the order of the stream.
    queued: VecDeque<Queued>,
    /// For what another process did not come in time.
    aborted: Option<Awaited>,
    is_over: bool,
}

struct Queued {
    /// Behind what has to come first in this process.
    behind: Event,
    done: Event,
    /// Since when it waits for other processes only.
    since: Option<Instant>,
    awaited: Awaited,
}

impl Watch {
    pub(super) fn start(comm: Comm, timeout: Duration) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            comm: Mutex::new(Some(Owned(comm))),
            state: Mutex::default(),
            changed: Condvar::new(),
            timeout,
        });
        let watched = Arc::clone(&shared);
        let thread = Builder::new().name("resident-mpi nccl".into());
        let thread = thread.spawn(move || watched.watch())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Queues an operation by `queue`, which returns the event behind it. From when `behind` is
    /// complete it may take as long as the time-out.
    pub(super) fn run(
        &self,
        awaited: Awaited,
        behind: Event,
        queue: impl FnOnce(&Comm) -> Result<Event>,
    ) -> Result<()> {
        self.shared.enter(awaited)?;
        let queued = match &*lock(&self.shared.comm) {
            Some(Owned(comm)) => queue(comm),
            None => Err(awaited.timed_out(self.shared.timeout)),
        };
        let mut state = lock(&self.shared.state);
        state.entered = None;
        state.forget_complete();
        state.queued.push_back(Queued { behind, done: queued?, since: None, awaited });
        Ok(())
    }

    pub(super) fn error(&self) -> Option<Error> {
        let aborted = lock(&self.shared.state).aborted;
        aborted.map(|awaited| awaited.timed_out(self.shared.timeout))
    }

    pub(super) fn is_idle(&self) -> Result<bool> {
        if let Some(error) = self.error() {
            return Err(error);
        }
        let mut state = lock(&self.shared.state);
        state.forget_complete();
        Ok(state.queued.is_empty())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.shared.state).is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panics nowhere.
            let _ended = thread.join();
        }
    }
}

impl Shared {
    /// The program's thread goes into NCCL, unless it was aborted.
    fn enter(&self, awaited: Awaited) -> Result<()> {
        let mut state = lock(&self.state);
        if let Some(aborted) = state.aborted {
            return Err(aborted.timed_out(self.timeout));
        }
        state.entered = Some((Instant::now(), awaited));
        // The thread does not sleep while something is queued.
        if state.queued.is_empty() {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Runs until the watch is over, or the communicator is aborted.
    fn watch(&self) {
        let pause = (self.timeout / 16).clamp(Duration::from_millis(1), Duration::from_millis(200));
        let mut state = lock(&self.state);
        while !state.is_over {
            if state.entered.is_none() && state.queued.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            self.end_if_stuck(&state);
            state.forget_complete();
            state.abort_if_late(self.timeout);
            // While the other thread is in NCCL it has the communicator. It does not go in again.
            if let (Some(late), None) = (state.aborted, state.entered) {
                drop(state);
                return self.abort(&late);
            }
            let waited = self.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn abort(&self, late: &Awaited) {
        if let Some(Owned(comm)) = lock(&self.comm).take() {
            let cause = late.timed_out(self.timeout).to_string();
            if let Err(error) = nccl::abort(comm, &cause) {
                say(&format!("resident-mpi: {error}"));
            }
        }
    }

    /// NCCL waits for other processes when it sends to them for the first time, in the call that
    /// queues the message. Nothing ends that but the end of the process.
    fn end_if_stuck(&self, state: &State) {
        if let Some((since, awaited)) = &state.entered
            && since.elapsed() > self.timeout
        {
            let error = awaited.timed_out(self.timeout);
            say(&format!("resident-mpi: ends the process, which waits inside of NCCL: {error}"));
            // Launchers throw away what they have not yet read.
            std::thread::sleep(Duration::from_millis(100));
            std::process::abort();
        }
    }
}

impl State {
    fn forget_complete(&mut self) {
        while self.queued.front().is_some_and(|first| is_complete(&first.done)) {
            self.queued.pop_front();
        }
    }

    /// Notes that the first of the operations has waited too long, if it has.
    fn abort_if_late(&mut self, timeout: Duration) {
        let Some(first) = self.queued.front_mut() else { return };
        if first.since.is_none() && is_complete(&first.behind) {
            first.since = Some(Instant::now());
        }
        if first.since.is_some_and(|since| since.elapsed() > timeout) {
            self.aborted.get_or_insert(first.awaited);
        }
    }
}

/// If the driver cannot tell, all that waits for the event has its error.
fn is_complete(event: &Event) -> bool {
    event.is_complete().unwrap_or(true)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
