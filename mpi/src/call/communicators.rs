//! A communicator for each channel.

use mpi_sys as ffi;

use super::check;
use super::request::{Outcome, Request};
use super::session::{Channel, Session, comm_null, world};
use crate::error::Result;

impl Session {
    /// Duplicates `MPI_COMM_WORLD` for each channel. `wait` is called with a function that tells
    /// whether all processes have done so for one of them.
    ///
    /// If `wait` fails, MPI still writes to memory of this call, which then is leaked.
    pub(crate) fn open(
        &mut self,
        mut wait: impl FnMut(&mut dyn FnMut() -> Result<bool>) -> Result<()>,
    ) -> Result<()> {
        for _ in Channel::ALL {
            // Leaked, as it is written until the request is complete: a few bytes a process.
            let communicator = Box::leak(Box::new(comm_null()));
            let mut request = Request::null();
            // SAFETY: MPI runs, as this session lives, and the memory lives forever.
            let code = unsafe { ffi::MPI_Comm_idup(world(), communicator, request.raw_mut()) };
            check("MPI_Comm_idup", code)?;
            wait(&mut || Ok(request.test(self)? != Outcome::Pending))?;
            self.return_errors(*communicator)?;
            self.communicators.push(*communicator);
        }
        Ok(())
    }
}
