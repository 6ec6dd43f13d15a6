//! The thread that lets MPI progress while messages are in flight.
//!
//! Most MPI libraries move large messages only while they are called. So a thread calls
//! `MPI_Iprobe` about every millisecond, on a communicator on which nothing is sent, and lets the
//! inbox look for headers. It touches no other request. It parks once nothing has been in flight
//! for a while; so steps that each have messages in flight for a moment need not wake it each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::call::Agent;
use crate::inbox::Inbox;

const INTERVAL: Duration = Duration::from_millis(1);
/// After so many intervals with nothing in flight the thread parks.
const IDLE_MAX: u32 = 50;

/// The thread, which ends when this drops.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// All are written and read in one order (`SeqCst`): the thread says that it parks and then looks
/// whether there is work, the other side says that there is and then looks whether it parks.
#[derive(Default)]
struct Shared {
    transfers: AtomicUsize,
    is_over: AtomicBool,
    is_parked: AtomicBool,
}

impl Progress {
    /// `None` if the system gives no thread: MPI then progresses in calls only.
    pub(crate) fn spawn(agent: Agent, inbox: Arc<Inbox>) -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let builder = thread::Builder::new().name("resident-mpi progress".into());
        let thread = builder.spawn(move || ours.run(&agent, &inbox)).ok()?;
        Some(Self { shared, thread: Some(thread) })
    }

    /// Says how many transfers there are.
    pub(crate) fn set_transfers(&self, count: usize) {
        self.shared.transfers.store(count, Ordering::SeqCst);
        if count > 0 && self.shared.is_parked.load(Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // It panics nowhere, so that there is nothing to report.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, agent: &Agent, inbox: &Inbox) {
        let mut idle = 0;
        while !self.is_over() {
            if self.transfers.load(Ordering::SeqCst) > 0 {
                idle = 0;
                agent.session().probe();
                inbox.advance(agent.session());
            } else if idle == IDLE_MAX {
                self.park();
            } else {
                idle += 1;
            }
            thread::park_timeout(INTERVAL);
        }
    }

    /// Until there are transfers, or the end.
    fn park(&self) {
        self.is_parked.store(true, Ordering::SeqCst);
        while self.transfers.load(Ordering::SeqCst) == 0 && !self.is_over() {
            thread::park();
        }
        self.is_parked.store(false, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
