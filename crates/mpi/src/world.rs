//! The life of MPI, and what all of its users share: processes, device, time-out.

use std::cell::{Cell, RefCell};
use std::env;
use std::fmt;
use std::io::Write;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use resident::{Device, DeviceKind};

use crate::agreement::agree;
use crate::audit::{Counts, Traffic};
use crate::call::{Agent, Channel, Outcome, Peer, Session};
use crate::error::{Error, Result, Side};
use crate::flight::{Flight, Flights, Operation, Tested};
use crate::inbox::Inbox;
use crate::progress::Progress;

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

/// Smaller tags of faces are those of gathers and scatters.
const FACE_TAG_MIN: i32 = 2;

/// MPI, initialised: this process among all that run the program.
///
/// [`init`] makes it. Clones are further handles of the same. They stay on the thread that called
/// `init`, as does what is made of them: it is that thread which finalises MPI.
///
/// # The end
///
/// When the last handle drops, MPI is finalised, once all messages have arrived and all processes
/// have come that far. If that takes longer than the time-out, if a call has returned
/// [`Error::TimedOut`], or if a panic unwinds through the drop, the reason is written to standard
/// error, and the job ends in all processes by `MPI_Abort`. So no process waits forever for another
/// that failed.
///
/// Messages do not keep MPI alive; once it is finalised, their calls are errors.
///
/// # Threads
///
/// A handle cannot leave its thread:
///
/// ```compile_fail,E0277
/// # let mpi = resident_mpi::init().unwrap();
/// std::thread::spawn(move || mpi.barrier());
/// ```
#[derive(Clone)]
pub struct Mpi(pub(crate) Rc<World>);

/// Initialises MPI, with `MPI_THREAD_MULTIPLE` if the library offers it.
///
/// A process may do this once. If the machine has GPUs, the process uses the one whose number is
/// its [`node_rank`](Mpi::node_rank), modulo their number: it is made the default as by
/// [`Device::set_default`], unless `RESIDENT_DEVICE` names a device.
///
/// `RESIDENT_MPI_TIMEOUT` is how many seconds a call waits for other processes, 300 by default;
/// fractions are allowed.
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
/// - [`Error::Argument`] if MPI has been initialised in this process before, or if
///   `RESIDENT_MPI_TIMEOUT` is not a number of seconds above zero.
/// - [`Error::TimedOut`] if other processes do not call `init` within the time-out.
/// - [`Error::Mpi`] if MPI cannot start.
/// - [`Error::Resident`] with `NoDevice` if `RESIDENT_DEVICE` names a device that cannot be used.
pub fn init() -> Result<Mpi> {
    let timeout = timeout_of(env::var("RESIDENT_MPI_TIMEOUT").ok().as_deref())?;
    let is_named = env::var_os("RESIDENT_DEVICE").is_some();
    if is_named {
        // An error before other processes wait for this one.
        Device::current()?;
    }
    let world = open(Session::initialise()?, timeout)?;
    if let (false, Some(gpu)) = (is_named, gpu_of(world.node_rank)) {
        Device::set_default(gpu);
    }
    Ok(Mpi(Rc::new(world)))
}

impl Mpi {
    /// The number of this process, from 0 to below [`size`](Self::size).
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// The number of processes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// The number of this process among those of its node (that share memory), from 0.
    #[must_use]
    pub fn node_rank(&self) -> usize {
        self.0.node_rank
    }

    /// How long calls wait for other processes: `RESIDENT_MPI_TIMEOUT`.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// What this process has sent and received. Asking moves nothing.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.counts.get()
    }
}

/// Prints rank and size.
impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi(rank {} of {})", self.0.rank, self.0.size)
    }
}

/// What a wait waits for, for its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Awaited {
    /// The public function.
    pub(crate) operation: &'static str,
    /// The process; `None` if it is any of them.
    pub(crate) rank: Option<usize>,
    pub(crate) axis: Option<usize>,
    pub(crate) side: Option<Side>,
}

impl Awaited {
    /// All processes.
    pub(crate) fn all(operation: &'static str) -> Self {
        Self { operation, rank: None, axis: None, side: None }
    }

    /// One process.
    pub(crate) fn from(operation: &'static str, rank: usize) -> Self {
        Self { operation, rank: Some(rank), axis: None, side: None }
    }

    /// One process, for a face.
    pub(crate) fn face(operation: &'static str, rank: usize, axis: usize, side: Side) -> Self {
        Self { operation, rank: Some(rank), axis: Some(axis), side: Some(side) }
    }
}

/// What an `Mpi` is a handle of.
pub(crate) struct World {
    /// `None` once it is finalised.
    session: Option<Session>,
    /// Ends before the session.
    progress: Option<Progress>,
    inbox: Arc<Inbox>,
    flights: Flights,
    counts: Counts,
    rank: usize,
    size: usize,
    node_rank: usize,
    tag_max: i32,
    /// The first tag of the next exchange.
    face_tag: Cell<i32>,
    timeout: Duration,
    /// The error that broke it.
    broken: RefCell<Option<Error>>,
}

impl World {
    /// The world of a message, unless it is over or broken.
    pub(crate) fn alive(world: &Weak<Self>, operation: &'static str) -> Result<Rc<Self>> {
        let world = world.upgrade().ok_or_else(|| Error::Argument {
            operation,
            text: "MPI is finalised, as the last `Mpi` is dropped; keep one while there are \
                   messages"
                .into(),
        })?;
        world.check()?;
        Ok(world)
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The messages whose headers are awaited.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect("taken by `drop` only")
    }

    /// The error that broke the world, if one has. Public functions begin with this.
    pub(crate) fn check(&self) -> Result<()> {
        self.broken.borrow().clone().map_or(Ok(()), Err)
    }

    /// When a wait that begins now is to end.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// A process to which messages can go, and a tag that they can have.
    pub(crate) fn peer(
        &self,
        operation: &'static str,
        rank: usize,
        tag: i32,
        channel: Channel,
    ) -> Result<Peer> {
        self.expect_rank(operation, rank)?;
        if tag < 0 || tag > self.tag_max {
            let text = format!("tag {tag}, but tags are 0 to {}: name one of these", self.tag_max);
            return Err(Error::Argument { operation, text });
        }
        Ok(Peer { rank, tag, channel })
    }

    /// The first of `count` tags for the messages of an exchange. No tag is given twice, so that
    /// messages of one tag have one length. All processes ask in the same order.
    pub(crate) fn face_tags(&self, operation: &'static str, count: i32) -> Result<i32> {
        let first = self.face_tag.get();
        let next = first.checked_add(count).filter(|next| *next <= self.tag_max);
        let next = next.ok_or_else(|| {
            let text = format!(
                "this MPI has tags up to {}, and earlier exchanges have used them; describe an \
                 exchange once and use it in each step",
                self.tag_max
            );
            Error::Argument { operation, text }
        })?;
        self.face_tag.set(next);
        Ok(first)
    }

    /// `Ok` if there is a process of this rank.
    pub(crate) fn expect_rank(&self, operation: &'static str, rank: usize) -> Result<()> {
        if rank < self.size {
            return Ok(());
        }
        let (size, last) = (self.size, self.size - 1);
        let text = format!("rank {rank}, but there are {size} processes: name 0 to {last}");
        Err(Error::Argument { operation, text })
    }

    /// Starts a flight by `begin`, and lets MPI progress until it has landed.
    pub(crate) fn start<M: 'static, O: Operation>(
        &self,
        flight: &Rc<Flight<M, O>>,
        begin: impl FnOnce(&Session, &mut M, &mut O) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        let session = self.session();
        self.flights.release_landed(session);
        flight.start(&self.flights, |memory, operation| begin(session, memory, operation))?;
        self.update_progress();
        Ok(())
    }

    /// Whether a flight has landed, and how.
    pub(crate) fn poll(&self, flight: &dyn Tested) -> Result<Outcome> {
        self.check()?;
        let outcome = self.flights.poll(flight, self.session())?;
        if outcome != Outcome::Pending {
            self.update_progress();
        }
        Ok(outcome)
    }

    /// Waits until a flight has landed.
    pub(crate) fn land(
        &self,
        flight: &dyn Tested,
        awaited: &Awaited,
        deadline: Instant,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::Pending;
        self.wait(awaited, deadline, || {
            outcome = self.poll(flight)?;
            Ok(outcome != Outcome::Pending)
        })?;
        Ok(outcome)
    }

    /// Calls `is_done`, which lets MPI progress, until it returns `true`. If it does not before
    /// `deadline`, the world is broken.
    pub(crate) fn wait(
        &self,
        awaited: &Awaited,
        deadline: Instant,
        is_done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.check()?;
        if wait_until(deadline, is_done)? {
            return Ok(());
        }
        Err(self.break_with(timed_out(awaited, self.timeout)))
    }

    /// Makes all later calls fail with this error, and the job end with the last handle: after a
    /// time-out, or an error after which processes would no longer do the same.
    pub(crate) fn break_with(&self, error: Error) -> Error {
        *self.broken.borrow_mut() = Some(error.clone());
        error
    }

    fn update_progress(&self) {
        if let Some(progress) = &self.progress {
            progress.set_needed(self.flights.len() > 0);
        }
    }

    /// Waits for all messages and all processes.
    fn settle(&self) -> Result<()> {
        const OPERATION: &str = "Mpi::drop";
        let (awaited, deadline) = (Awaited::all(OPERATION), self.deadline());
        self.wait(&awaited, deadline, || Ok(self.flights.poll_all(self.session()) == 0))?;
        agree(self, OPERATION, "the end of MPI".into())
    }

    /// Ends the job, after its reason is told.
    fn abort(&self, reason: &dyn fmt::Display) -> ! {
        let (rank, size, flights) = (self.rank, self.size, self.flights.len());
        say(&format!(
            "resident-mpi: rank {rank} of {size} ends the job: {reason} (messages in flight: \
             {flights})"
        ));
        self.session().abort()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort(&"a panic unwinds through the last handle of MPI");
        }
        if let Err(error) = self.settle() {
            self.abort(&error);
        }
        // Joins the thread, which so calls MPI no more.
        self.progress = None;
        let finalised = self.session.take().map_or(Ok(()), Session::finalise);
        if let Err(error) = finalised {
            say(&format!("resident-mpi: rank {}: {error}", self.rank));
        }
    }
}

/// Makes the communicators and asks for what never changes. If this fails, MPI stays initialised:
/// it cannot be finalised without the other processes. `mpirun` ends them when this process ends.
fn open(mut session: Session, timeout: Duration) -> Result<World> {
    session.open(|is_done| {
        if wait_until(Instant::now() + timeout, is_done)? {
            return Ok(());
        }
        Err(timed_out(&Awaited::all("init"), timeout))
    })?;
    let (rank, size) = (session.rank()?, session.size()?);
    let (node_rank, tag_max) = (session.node_rank()?, session.tag_max()?);
    let inbox = Arc::<Inbox>::default();
    // SAFETY: `World` joins the thread that has the agent before it finalises the session, and if
    // the world is forgotten the session never is.
    let agent = unsafe { Agent::new(&session) };
    Ok(World {
        session: Some(session),
        progress: agent.and_then(|agent| Progress::spawn(agent, Arc::clone(&inbox))),
        inbox,
        flights: Flights::default(),
        counts: Counts::default(),
        rank,
        size,
        node_rank,
        tag_max,
        face_tag: Cell::new(FACE_TAG_MIN),
        timeout,
        broken: RefCell::new(None),
    })
}

/// Calls `is_done` until it returns `true`; `false` if it does not before the deadline. First
/// without a pause, then giving the processor to others, which may be the processes that are waited
/// for, and at last with short sleeps.
fn wait_until(deadline: Instant, mut is_done: impl FnMut() -> Result<bool>) -> Result<bool> {
    const SPIN: Duration = Duration::from_micros(20);
    const YIELD: Duration = Duration::from_millis(1);
    const SLEEP: Duration = Duration::from_micros(50);
    let begin = Instant::now();
    loop {
        if is_done()? {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= deadline {
            return Ok(false);
        }
        match now - begin {
            waited if waited < SPIN => std::hint::spin_loop(),
            waited if waited < YIELD => std::thread::yield_now(),
            _ => std::thread::sleep(SLEEP),
        }
    }
}

/// Writes a line to standard error, in one piece, as launchers end processes amid a line. Panics
/// nowhere.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn timed_out(awaited: &Awaited, after: Duration) -> Error {
    let Awaited { operation, rank, axis, side } = *awaited;
    Error::TimedOut { operation, rank, axis, side, after }
}

fn timeout_of(value: Option<&str>) -> Result<Duration> {
    let Some(value) = value else { return Ok(TIMEOUT_DEFAULT) };
    let seconds = value.trim().parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // Far above any use, and `Instant` can be that far ahead.
    const MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    timeout.map(|timeout| timeout.min(MAX)).ok_or_else(|| Error::Argument {
        operation: "init",
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
