//! The thread that lets MPI progress while messages are in flight.
//!
//! Most MPI libraries move large messages only while they are called. So a thread calls
//! `MPI_Iprobe` about every millisecond, on a communicator on which nothing is sent, and lets the
//! inbox look for headers. It touches no other request. While nothing is in flight it sleeps.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::call::Agent;
use crate::inbox::Inbox;

const INTERVAL: Duration = Duration::from_millis(1);

/// The thread, which ends when this drops.
pub(crate) struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Wanted {
    #[default]
    Nothing,
    Progress,
    End,
}

impl Progress {
    /// `None` if the system gives no thread: MPI then progresses in calls only.
    pub(crate) fn spawn(agent: Agent, inbox: Arc<Inbox>) -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let builder = std::thread::Builder::new().name("resident-mpi progress".into());
        let thread = builder.spawn(move || ours.run(&agent, &inbox)).ok()?;
        Some(Self { shared, thread: Some(thread) })
    }

    /// Says how many transfers there are.
    pub(crate) fn set_transfers(&self, count: usize) {
        self.shared.want(if count > 0 { Wanted::Progress } else { Wanted::Nothing });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.shared.want(Wanted::End);
        if let Some(thread) = self.thread.take() {
            // It panics nowhere, so that there is nothing to report.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, agent: &Agent, inbox: &Inbox) {
        loop {
            let mut wanted = self.lock();
            while *wanted == Wanted::Nothing {
                wanted = self.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            if *wanted == Wanted::End {
                return;
            }
            let wait = self.changed.wait_timeout(wanted, INTERVAL);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
            agent.session().probe();
            inbox.advance(agent.session());
        }
    }

    fn want(&self, wanted: Wanted) {
        let mut current = self.lock();
        if *current != wanted {
            *current = wanted;
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
