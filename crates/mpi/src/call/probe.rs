//! What the progress thread calls.

use std::ffi::c_int;

use mpi_sys as ffi;

use super::session::{Channel, Session};

/// A communicator on which nothing is ever sent. To probe it lets MPI progress.
pub(crate) struct Probe(ffi::MPI_Comm);

// SAFETY: it is only used for MPI_Iprobe, which `Probe::new` allows on any thread.
unsafe impl Send for Probe {}

impl Probe {
    /// `None` if MPI may not be called by several threads at once.
    ///
    /// # Safety
    ///
    /// No probe may be used once MPI is finalised.
    pub(crate) unsafe fn new(session: &Session) -> Option<Self> {
        session.has_all_threads().then(|| Self(session.communicator(Channel::Progress)))
    }

    /// Lets MPI progress. Its code tells nothing of the messages that it moves, so that it is not
    /// looked at: their requests tell.
    pub(crate) fn probe(&self) {
        let mut flag: c_int = 0;
        let (source, tag) = (constant!(RSMPI_ANY_SOURCE), constant!(RSMPI_ANY_TAG));
        let status = constant!(RSMPI_STATUS_IGNORE);
        // SAFETY: MPI may be called on any thread, as `new` checked, and is not finalised, for which
        // its caller vouched.
        unsafe { ffi::MPI_Iprobe(source, tag, self.0, &mut flag, status) };
    }
}
