//! What all users of MPI share: the processes, what is in flight, and waits that end.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::audit::{Counts, Traffic};
pub(crate) use crate::awaited::Awaited;
use crate::call::{Channel, Outcome, Peer, Request, Session};
use crate::error::{Error, Result};
use crate::inbox::Inbox;
use crate::nccl::Communicator;
use crate::progress::Progress;
use crate::roll_call::{Note, RollCall};
use crate::transfer::{Operation, Tested, Transfer, Transfers};
use crate::transport::{Choice, Reachable, Transport};
use crate::waiting::wait_until;

/// Smaller tags of faces are those of gathers and scatters.
const FACE_TAG_MIN: i32 = 2;

/// MPI, initialised: this process among all that run the program.
///
/// [`init`](crate::init) makes it. Clones are further handles of the same. They stay on the thread
/// that called `init`, as does what is made of them: it is that thread which finalises MPI.
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

impl Mpi {
    /// The number of this process, from 0 to below [`size`](Self::size).
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.facts.rank
    }

    /// The number of processes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.facts.size
    }

    /// The number of this process among those of its node (that share memory), from 0.
    #[must_use]
    pub fn node_rank(&self) -> usize {
        self.0.facts.node_rank
    }

    /// How long calls wait for other processes: `RESIDENT_MPI_TIMEOUT`.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.0.facts.timeout
    }

    /// How elements get from devices to MPI and back. `{:?}` of this handle says why.
    #[must_use]
    pub fn transport(&self) -> Transport {
        if self.0.nccl().is_some() { Transport::Nccl } else { self.0.transport() }
    }

    /// What this process has sent and received. Asking moves nothing.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.counts.get()
    }
}

/// Prints rank, size, and where the memory of messages is and why.
impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { rank, size, choice: Choice { transport, reason }, .. } = self.0.facts;
        write!(f, "Mpi(rank {rank} of {size}, messages in {transport}: {reason}")?;
        match &self.0.nccl {
            Ok(_) => f.write_str("; exchanges and collective operations by NCCL)"),
            Err(reason) => write!(f, "; not by NCCL: {reason})"),
        }
    }
}

/// What an `Mpi` is a handle of.
pub(crate) struct World {
    /// `None` once it is finalised.
    session: Option<Session>,
    /// Ends before the session.
    progress: Option<Progress>,
    inbox: Arc<Inbox>,
    transfers: Transfers,
    roll_call: RollCall,
    counts: Counts,
    facts: Facts,
    reachable: Reachable,
    /// If all processes have it, and else why not.
    nccl: std::result::Result<Communicator, String>,
    /// The first tag of the next exchange.
    face_tag: Cell<i32>,
    /// The error that broke it.
    broken: RefCell<Option<Error>>,
}

/// What never changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) node_rank: usize,
    pub(crate) tag_max: i32,
    pub(crate) timeout: Duration,
    pub(crate) choice: Choice,
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

    /// MPI runs. The thread of `progress` has been given `inbox`.
    pub(crate) fn new(
        session: Session,
        inbox: Arc<Inbox>,
        progress: Option<Progress>,
        facts: Facts,
    ) -> Self {
        Self {
            session: Some(session),
            progress,
            inbox,
            transfers: Transfers::default(),
            roll_call: RollCall::default(),
            counts: Counts::default(),
            facts,
            reachable: Reachable::new(facts.choice.transport),
            nccl: Err(String::from("it is not yet decided")),
            face_tag: Cell::new(FACE_TAG_MIN),
            broken: RefCell::new(None),
        }
    }

    pub(crate) fn rank(&self) -> usize {
        self.facts.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.facts.size
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.facts.timeout
    }

    pub(crate) fn transport(&self) -> Transport {
        self.facts.choice.transport
    }

    /// What all processes have decided at the start.
    pub(crate) fn set_nccl(&mut self, nccl: std::result::Result<Communicator, String>) {
        self.nccl = nccl;
    }

    pub(crate) fn nccl(&self) -> Option<&Communicator> {
        self.nccl.as_ref().ok()
    }

    /// Waits until all operations of NCCL are over.
    pub(crate) fn complete_nccl(&self, awaited: &Awaited) -> Result<()> {
        let Some(nccl) = self.nccl() else { return Ok(()) };
        self.wait(awaited, self.deadline(), || nccl.is_idle())
    }

    /// The memory that MPI can use for messages.
    pub(crate) fn reachable(&self) -> &Reachable {
        &self.reachable
    }

    /// The messages whose headers are awaited.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn session(&self) -> &Session {
        self.session.as_ref().expect("taken by the drop only")
    }

    /// The error that broke the world, if one has. Public functions begin with this.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(error) = &*self.broken.borrow() {
            return Err(error.clone());
        }
        let late = self.nccl().and_then(Communicator::error).or_else(|| self.inbox.failure());
        late.map_or(Ok(()), |error| Err(self.break_with(error)))
    }

    /// When a wait that begins now is to end.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.facts.timeout
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
        if tag < 0 || tag > self.facts.tag_max {
            let text =
                format!("tag {tag}, but tags are 0 to {}: name one of these", self.facts.tag_max);
            return Err(Error::Argument { operation, text });
        }
        Ok(Peer { rank, tag, channel })
    }

    /// The first of `count` tags for the messages of an exchange. No tag is given twice, so that
    /// messages of one tag have one length. All processes ask in the same order.
    pub(crate) fn face_tags(&self, operation: &'static str, count: i32) -> Result<i32> {
        let first = self.face_tag.get();
        let next = first.checked_add(count).filter(|next| *next <= self.facts.tag_max);
        let next = next.ok_or_else(|| {
            let text = format!(
                "this MPI has tags up to {}, and earlier exchanges have used them; describe an \
                 exchange once and use it in each step",
                self.facts.tag_max
            );
            Error::Argument { operation, text }
        })?;
        self.face_tag.set(next);
        Ok(first)
    }

    /// `Ok` if there is a process of this rank.
    pub(crate) fn expect_rank(&self, operation: &'static str, rank: usize) -> Result<()> {
        if rank < self.facts.size {
            return Ok(());
        }
        let (size, last) = (self.facts.size, self.facts.size - 1);
        let text = format!("rank {rank}, but there are {size} processes: name 0 to {last}");
        Err(Error::Argument { operation, text })
    }

    /// Starts a transfer by `begin`, and lets MPI progress until it is complete.
    pub(crate) fn start<M: 'static, O: Operation>(
        &self,
        transfer: &Rc<Transfer<M, O>>,
        begin: impl FnOnce(&Session, &mut M, &mut O) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        let session = self.session();
        self.transfers.release_complete(session);
        transfer.start(&self.transfers, |memory, operation| begin(session, memory, operation))?;
        self.update_progress();
        Ok(())
    }

    /// Whether a transfer is complete, and how.
    pub(crate) fn poll(&self, transfer: &dyn Tested) -> Result<Outcome> {
        self.check()?;
        let outcome = self.transfers.poll(transfer, self.session())?;
        if outcome != Outcome::Pending {
            self.update_progress();
        }
        Ok(outcome)
    }

    /// Waits until a transfer is complete.
    pub(crate) fn complete(
        &self,
        transfer: &dyn Tested,
        awaited: &Awaited,
        deadline: Instant,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::Pending;
        self.wait(awaited, deadline, || {
            outcome = self.poll(transfer)?;
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
        mut is_done: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.check()?;
        let before_sleep = || if self.roll_call.is_due() { self.answer() } else { Ok(()) };
        if let Some(waited) = wait_until(deadline, &mut is_done, before_sleep)? {
            self.counts.add_wait(waited);
            return Ok(());
        }
        // MPI may refuse to ask processes that are gone: then none is named.
        let timed_out = match awaited.rank {
            Some(_) => awaited.timed_out(self.facts.timeout),
            None => match self.missing(is_done).unwrap_or(Some(Vec::new())) {
                Some(missing) => awaited.timed_out_for(missing, self.facts.timeout),
                None => return Ok(()),
            },
        };
        Err(self.break_with(timed_out))
    }

    /// Answers the processes that ask how far this one is.
    pub(crate) fn answer(&self) -> Result<()> {
        self.roll_call.answer(self.session(), |note| self.send_note(note))
    }

    /// The processes that have not come as far as this one. `None` if the wait is over meanwhile.
    fn missing(&self, is_over: impl FnMut() -> Result<bool>) -> Result<Option<Vec<usize>>> {
        let others = (0..self.size()).filter(|rank| *rank != self.rank()).collect();
        let send = |note| self.send_note(note);
        self.roll_call.missing(self.session(), others, is_over, send)
    }

    fn send_note(&self, Note { rank, tag, number }: Note) -> Result<()> {
        let peer = Peer { rank, tag, channel: Channel::Collectives };
        let transfer = Transfer::new(number, Request::null());
        self.start(&transfer, |session, number, request| {
            let memory = (&raw const *number).cast();
            *request = session.send_request(memory, size_of::<u64>(), peer)?;
            // SAFETY: the number is memory of the transfer: it lives, where it is, until the
            // transfer is complete, and nothing accesses it before (`Transfer::start`).
            unsafe { request.start(session) }
        })
    }

    /// The collective operations of this process.
    pub(crate) fn roll_call(&self) -> &RollCall {
        &self.roll_call
    }

    /// Makes all later calls fail with this error, and the job end with the last handle: after a
    /// time-out, or an error after which processes would no longer do the same.
    pub(crate) fn break_with(&self, error: Error) -> Error {
        *self.broken.borrow_mut() = Some(error.clone());
        error
    }

    /// Tests all transfers, whoever owns them, and returns how many are active.
    pub(crate) fn poll_all(&self) -> usize {
        self.transfers.poll_all(self.session())
    }

    /// How many transfers were not yet seen to be complete.
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// Joins the progress thread and gives the session away, to be finalised.
    pub(crate) fn take_session(&mut self) -> Option<Session> {
        self.nccl = Err(String::from("MPI is over"));
        self.progress = None;
        self.session.take()
    }

    fn update_progress(&self) {
        if let Some(progress) = &self.progress {
            progress.set_transfers(self.transfers.len());
        }
    }
}
