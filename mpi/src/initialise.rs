//! How MPI starts: the time-out, communicators, the progress thread, and the device.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use resident::internal::{environment, set_rank};
use resident::{Device, DeviceKind};

use crate::call::{Agent, Session};
use crate::error::{Error, Result};
use crate::inbox::Inbox;
use crate::nccl;
use crate::progress::Progress;
use crate::self_test;
use crate::transport::Choice;
use crate::waiting::wait_until;
use crate::watchdog::Watchdog;
use crate::world::{Awaited, Facts, Mpi, World};

const OPERATION: &str = "init";

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

/// How long the test of device memory may take.
const SELF_TEST_LIMIT: Duration = Duration::from_secs(30);

/// Initialises MPI, with `MPI_THREAD_MULTIPLE` if the library offers it.
///
/// A process may do this once. If the machine has GPUs, the process uses the one whose number is
/// its [`node_rank`](Mpi::node_rank), modulo their number: it is made the default as by
/// [`Device::set_default`], unless `RESIDENT_DEVICE` names a device.
///
/// `RESIDENT_MPI_TIMEOUT` is how many seconds a call waits for other processes, 300 by default;
/// fractions are allowed. `RESIDENT_MPI` is `host`, `device` or `nccl`: the
/// [`Transport`](crate::Transport), which otherwise is found out.
///
/// ```
/// use resident::SmartArray;
/// use resident_mpi::Reduce;
///
/// # fn main() -> resident_mpi::Result<()> {
/// let mpi = resident_mpi::init()?;
/// let next = (mpi.rank() + 1) % mpi.size();
/// let last = (mpi.rank() + mpi.size() - 1) % mpi.size();
/// let own = SmartArray::from(vec![mpi.rank() as f32; 1000]);
/// let mut other = SmartArray::<f32, _>::uninit(1000);
/// let sending = mpi.isend(&own, next, 0)?;
/// mpi.recv(&mut other, last, 0)?;
/// sending.wait()?;
/// assert_eq!(mpi.all_reduce_value(Reduce::Max, other.get(0)?)?, (mpi.size() - 1) as f32);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// - [`Error::Argument`] if MPI has been initialised in this process before, if
///   `RESIDENT_MPI_TIMEOUT` is not a number of seconds above zero, or if `RESIDENT_MPI` is
///   something else than `host`, `device` or `nccl`, or if it is `nccl` and a process cannot use
///   NCCL, of which all processes are told.
/// - [`Error::TimedOut`] if other processes start, but do not answer within the time-out. If one
///   does not call `init` at all, the job ends, with the reason on standard error: the start of MPI
///   cannot be interrupted.
/// - [`Error::Mpi`] if MPI cannot start.
/// - [`Error::Resident`] with `NoDevice` if `RESIDENT_DEVICE` names a device that cannot be used.
#[track_caller]
pub fn init() -> Result<Mpi> {
    let timeout = timeout_of(of("RESIDENT_MPI_TIMEOUT")?.as_deref())?;
    let (chosen, wish) = Choice::of(of("RESIDENT_MPI")?.as_deref())?;
    let is_named = environment::text("RESIDENT_DEVICE").is_some();
    if is_named {
        // An error before other processes wait for this one.
        Device::current()?;
    }
    let limit = Watchdog::start(OPERATION, timeout);
    let session = Session::initialise()?;
    drop(limit);
    let mut world = open(session, timeout, |node_rank, session| {
        if let (false, Some(gpu)) = (is_named, gpu_of(node_rank)) {
            Device::set_default(gpu);
        }
        let limit = SELF_TEST_LIMIT.min(timeout / 2);
        let tested = || Ok(self_test::choose(session, &Device::current()?, limit));
        chosen.map_or_else(tested, Ok)
    })?;
    let nccl = nccl::join(&world, wish)?;
    world.set_nccl(nccl);
    set_rank(number(world.rank()), number(world.size()));
    let mpi = Mpi(Rc::new(world));
    // Reports of the processes have their clocks aligned by it.
    mpi.barrier()?;
    Ok(mpi)
}

/// What a variable is, in lower case.
fn of(variable: &str) -> Result<Option<String>> {
    environment::read(variable, "a word or a number", |text| Some(text.to_owned()))
        .map_err(|text| Error::Argument { operation: OPERATION, text })
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// Makes the communicators and asks for what never changes. If this fails, MPI stays initialised:
/// it cannot be finalised without the other processes. `mpirun` ends them when this process ends.
///
/// `choose` gets the rank on the node.
fn open(
    mut session: Session,
    timeout: Duration,
    choose: impl FnOnce(usize, &Session) -> Result<Choice>,
) -> Result<World> {
    let deadline = Instant::now() + timeout;
    session.open(|is_done| {
        if wait_until(deadline, is_done, || Ok(()))?.is_some() {
            return Ok(());
        }
        Err(Awaited::all(OPERATION).timed_out(timeout))
    })?;
    let limit = Watchdog::start(OPERATION, timeout);
    let (rank, size) = (session.rank()?, session.size()?);
    let (node_rank, tag_max) = (session.node_rank()?, session.tag_max()?);
    drop(limit);
    let inbox = Arc::<Inbox>::default();
    // SAFETY: `World` joins the thread that has the agent before it gives the session away to be
    // finalised, and if the world is forgotten the session never is.
    let agent = unsafe { Agent::new(&session) };
    let progress = agent.and_then(|agent| Progress::spawn(agent, Arc::clone(&inbox)));
    let choice = choose(node_rank, &session)?;
    let facts = Facts { rank, size, node_rank, tag_max, timeout, choice };
    Ok(World::new(session, inbox, progress, facts))
}

fn timeout_of(value: Option<&str>) -> Result<Duration> {
    let Some(value) = value else { return Ok(TIMEOUT_DEFAULT) };
    let seconds = value.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // Far above any use, and `Instant` can be that far ahead.
    const MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    timeout.map(|timeout| timeout.min(MAX)).ok_or_else(|| Error::Argument {
        operation: OPERATION,
        text: format!(
            "RESIDENT_MPI_TIMEOUT is {value:?}, expected a number of seconds above 0, such as 2.5"
        ),
    })
}

/// The GPU of a process, if the machine has one. Opens no other, unless there are more processes
/// than GPUs.
fn gpu_of(node_rank: usize) -> Option<Device> {
    let own = Device::cuda(node_rank).or_else(|_| Device::hip(node_rank));
    own.ok().or_else(|| {
        let mut gpus = Device::all();
        gpus.retain(|device| device.kind() != DeviceKind::Cpu);
        let count = gpus.len();
        (count > 0).then(|| gpus.swap_remove(node_rank % count))
    })
}
