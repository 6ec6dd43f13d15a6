//! The end of the last handle: MPI is finalised, or the job ends.

use std::fmt;
use std::time::Duration;

use crate::agreement::agree;
use crate::call::Session;
use crate::error::Result;
use crate::watchdog::{Watchdog, say};
use crate::world::{Awaited, World};

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            abort(self, &"a panic unwinds through the last handle of MPI");
        }
        if let Err(error) = settle(self) {
            abort(self, &error);
        }
        let _limit = Watchdog::start("Mpi::drop", self.timeout());
        let finalised = self.take_session().map_or(Ok(()), Session::finalise);
        if let Err(error) = finalised {
            say(&format!("resident-mpi: rank {}: {error}", self.rank()));
        }
    }
}

/// Waits for all messages and all processes.
fn settle(world: &World) -> Result<()> {
    const OPERATION: &str = "Mpi::drop";
    world.answer()?;
    world.wait(&Awaited::all(OPERATION), world.deadline(), || Ok(world.poll_all() == 0))?;
    world.complete_nccl(&Awaited::all(OPERATION))?;
    agree(world, OPERATION, "the end of MPI".into())
}

/// Ends the job, after its reason is told.
pub(crate) fn abort(world: &World, reason: &dyn fmt::Display) -> ! {
    let (rank, size, count) = (world.rank(), world.size(), world.transfers());
    say(&format!(
        "resident-mpi: rank {rank} of {size} ends the job: {reason} (messages in flight: {count})"
    ));
    // MPICH's launcher throws away what it has not yet read when a process aborts.
    std::thread::sleep(Duration::from_millis(100));
    world.session().abort()
}
