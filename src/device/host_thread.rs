//! The thread that runs the host functions of one stream, in the order of their calls, each after
//! the work that was queued before it. The first function starts the thread; it ends when it has
//! had nothing to do for a while.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use resident_backend::sync::{self, EventCount, Mutex};
use resident_backend::thread_pools::in_own_pool;
use resident_backend::unwinding::contain_panic;
use resident_backend::{Position, RawStream, StreamId, TaskWaker};

/// How long the thread waits for another function before it ends.
const IDLE_MAX: Duration = Duration::from_millis(100);

thread_local! {
    /// The stream whose host functions this thread runs.
    static RUNS_FOR: Cell<Option<StreamId>> = const { Cell::new(None) };
}

/// Whether this thread runs the host functions of a stream.
pub(super) fn runs_for(stream: StreamId) -> bool {
    RUNS_FOR.get() == Some(stream)
}

/// A function that waits for its turn.
pub(super) struct Waiting {
    pub(super) raw: Arc<dyn RawStream>,
    pub(super) position: Position,
    /// As in the properties of the stream's device.
    pub(super) runs_by_itself: bool,
    pub(super) run: Box<dyn FnOnce() + Send>,
}

/// The host functions of one stream.
#[derive(Default)]
pub(super) struct HostThread {
    state: Mutex<State>,
    /// Announced when a function arrives.
    arrived: EventCount,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    is_running: bool,
}

impl HostThread {
    /// Adds a function, and starts the thread if it does not run. If the system refuses a thread,
    /// the function is dropped.
    pub(super) fn add(self: &Arc<Self>, function: Waiting) -> io::Result<()> {
        let must_start = {
            let mut state = self.state.lock();
            state.waiting.push_back(function);
            !std::mem::replace(&mut state.is_running, true)
        };
        self.arrived.announce();
        if must_start { self.start() } else { Ok(()) }
    }

    fn start(self: &Arc<Self>) -> io::Result<()> {
        let functions = Arc::clone(self);
        let builder = thread::Builder::new().name("resident host".to_owned());
        let spawned = builder.spawn(move || functions.run());
        if spawned.is_err() {
            let refused = {
                let mut state = self.state.lock();
                state.is_running = false;
                std::mem::take(&mut state.waiting)
            };
            sync::assert_none_held();
            drop(refused);
        }
        spawned.map(drop)
    }

    fn run(&self) {
        while let Some(Waiting { raw, position, runs_by_itself, run }) = self.next() {
            let id = raw.id();
            if runs_by_itself {
                // If the driver can no longer tell, the work is over.
                let _over = raw.synchronize_to(position);
            } else {
                wait_for_simulation(&*raw, position);
            }
            // A program that waits for the function may expect to drop the stream's last handle.
            drop(raw);
            sync::assert_none_held();
            // The function's result may panic when it is dropped.
            contain_panic(|| {
                in_own_pool(|| {
                    RUNS_FOR.set(Some(id));
                    contain_panic(run);
                    RUNS_FOR.set(None);
                });
            });
        }
    }

    /// The next function; `None` if the thread must end.
    fn next(&self) -> Option<Waiting> {
        let mut was_idle = false;
        loop {
            let seen = self.arrived.current();
            {
                let mut state = self.state.lock();
                let next = state.waiting.pop_front();
                if next.is_some() || was_idle {
                    state.is_running = next.is_some();
                    return next;
                }
            }
            self.arrived.wait_after_at_most(seen, IDLE_MAX);
            was_idle = true;
        }
    }
}

/// Waits until a simulation's work up to `position` is over. This thread must not run that work, so
/// that the program's own calls do, in the order of the seed.
fn wait_for_simulation(raw: &dyn RawStream, position: Position) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let task = Arc::<TaskWaker>::default();
    task.set(&waker);
    if raw.register_waker(position, &task).is_err() {
        return;
    }
    loop {
        task.set(&waker);
        if raw.completed() >= position {
            return task.clear();
        }
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
