//! MPI for the progress thread.

use std::ffi::c_int;

use mpi_sys as ffi;

use super::session::{Channel, Session};

/// A session for one more thread.
pub(crate) struct Agent(Session);

// SAFETY: MPI may be called on any thread, as `Agent::new` checked. A session is bound to its
// thread because it may be the one that finalises MPI, and this one gives itself by reference only,
// which cannot.
unsafe impl Send for Agent {}

impl Agent {
    /// `None` if MPI may not be called by several threads at once.
    ///
    /// # Safety
    ///
    /// No agent may be used once MPI is finalised.
    pub(crate) unsafe fn new(session: &Session) -> Option<Self> {
        session.has_all_threads().then(|| Self(session.duplicate()))
    }

    pub(crate) fn session(&self) -> &Session {
        &self.0
    }
}

impl Session {
    /// Lets MPI progress. Its code tells nothing of the messages that it moves, so that it is not
    /// looked at: their requests tell.
    pub(crate) fn probe(&self) {
        let mut flag: c_int = 0;
        let (source, tag) = (constant!(RSMPI_ANY_SOURCE), constant!(RSMPI_ANY_TAG));
        let (communicator, status) =
            (self.communicator(Channel::Progress), constant!(RSMPI_STATUS_IGNORE));
        // SAFETY: this session proves that MPI runs.
        unsafe { ffi::MPI_Iprobe(source, tag, communicator, &mut flag, status) };
    }
}
