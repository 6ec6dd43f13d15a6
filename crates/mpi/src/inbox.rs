//! Messages of other processes that are expected: a header, and then the elements.
//!
//! MPI receives elements only once the header has said that they fit. A message that is longer than
//! the memory for it is an error by MPI's standard, which returns it, but libraries write beyond
//! the memory first (Open MPI 4.1 does, from 4 KiB on, where processes share a node). So what does
//! not fit is received into memory of its own length, and thrown away.
//!
//! Headers and elements of one sender and tag correspond by their order, in which the receives must
//! therefore begin: there is a queue for each sender and tag. The progress thread takes headers
//! from these queues too, so that elements arrive while the program computes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::{Channel, Outcome, Peer, Request, Session};
use crate::description::Header;
use crate::error::{Error, Result};
use crate::transfer::Operation;

/// The messages of which no header has come yet, by sender and tag.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<HashMap<Key, Queue>>);

/// The messages of one sender and tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    rank: usize,
    tag: i32,
}

type Queue = VecDeque<Arc<Mutex<Arrival>>>;

/// One expected message: the operation of a transfer, whose memory it receives to.
pub(crate) struct Expected {
    inbox: Arc<Inbox>,
    arrival: Arc<Mutex<Arrival>>,
    key: Key,
}

struct Arrival {
    peer: Peer,
    expected: Header,
    /// What was sent. Boxed, as MPI writes it.
    found: Box<Header>,
    /// As many bytes as `expected` says.
    memory: *mut u8,
    state: State,
}

// SAFETY: the memory is that of an array, which is `Send`. MPI alone uses it (`Expected::post`),
// and requests are used by several threads only where MPI allows it: the progress thread, the only
// other one, exists only there.
unsafe impl Send for Arrival {}

enum State {
    New,
    /// The header is awaited.
    Header(Request),
    /// The elements are awaited.
    Elements(Request),
    /// Other elements are awaited, in memory of their own.
    Discarded(Request, #[expect(dead_code, reason = "MPI writes it")] Vec<u8>),
    Arrived,
    /// Others have arrived.
    Refused,
    /// `true` if the receive of elements had begun.
    Failed(Error, bool),
}

impl Inbox {
    /// Looks for headers, and begins to receive their elements.
    pub(crate) fn advance(&self, session: &Session) {
        let mut queues = self.lock();
        queues.retain(|_, queue| {
            advance_queue(queue, session);
            !queue.is_empty()
        });
    }

    fn advance_one(&self, key: Key, session: &Session) {
        let mut queues = self.lock();
        let Some(queue) = queues.get_mut(&key) else { return };
        advance_queue(queue, session);
        if queue.is_empty() {
            queues.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Expected {
    /// A message to `memory` that `expected` describes.
    pub(crate) fn new(inbox: &Arc<Inbox>, expected: Header, memory: *mut u8, peer: Peer) -> Self {
        let (found, state) = (Box::new(Header::empty()), State::New);
        let arrival = Arrival { peer, expected, found, memory, state };
        let key = Key { rank: peer.rank, tag: peer.tag };
        Self { inbox: Arc::clone(inbox), arrival: Arc::new(Mutex::new(arrival)), key }
    }

    /// Begins to expect it.
    ///
    /// # Safety
    ///
    /// Until [`test`](Operation::test) says that it is over, this is not dropped, the memory is
    /// valid for as many bytes as the header says, and nothing else reads or writes it.
    pub(crate) unsafe fn post(&mut self, session: &Session) -> Result<()> {
        let mut queues = self.inbox.lock();
        self.arrival().await_header(session)?;
        queues.entry(self.key).or_default().push_back(Arc::clone(&self.arrival));
        Ok(())
    }

    /// What was sent, once it has arrived.
    pub(crate) fn found(&self) -> Header {
        let arrival = self.arrival();
        match arrival.state {
            State::Arrived | State::Refused => *arrival.found,
            _ => arrival.expected,
        }
    }

    fn arrival(&self) -> MutexGuard<'_, Arrival> {
        lock(&self.arrival)
    }
}

impl Operation for Expected {
    fn test(&mut self, session: &Session) -> Result<Outcome> {
        self.inbox.advance_one(self.key, session);
        let mut arrival = self.arrival();
        arrival.advance(session);
        match &arrival.state {
            State::New | State::Header(_) | State::Elements(_) | State::Discarded(..) => {
                Ok(Outcome::Pending)
            }
            State::Arrived => Ok(Outcome::Done),
            State::Refused => Ok(Outcome::OtherLength),
            State::Failed(error, _) => Err(error.clone()),
        }
    }
}

impl Arrival {
    fn await_header(&mut self, session: &Session) -> Result<()> {
        let peer = Peer { channel: Channel::Headers, ..self.peer };
        let mut request = self.found.receive_request(session, peer)?;
        // SAFETY: the header is memory of this arrival, which its `Expected` owns until this is
        // over (`Expected::post`), and it is read in the states after.
        unsafe { request.start(session) }?;
        self.state = State::Header(request);
        Ok(())
    }

    /// Whether the receive of the elements has not begun, so that those of later messages must not
    /// begin either.
    fn is_first_to_begin(&self) -> bool {
        matches!(self.state, State::New | State::Header(_) | State::Failed(_, false))
    }

    fn advance(&mut self, session: &Session) {
        let (request, begun) = match &mut self.state {
            State::Header(request) => (request, false),
            State::Elements(request) | State::Discarded(request, _) => (request, true),
            State::New | State::Arrived | State::Refused | State::Failed(..) => return,
        };
        match request.test(session) {
            Ok(Outcome::Pending) => {}
            Ok(outcome) if begun => self.finish(outcome),
            Ok(_) => {
                if let Err(error) = self.begin(session) {
                    self.state = State::Failed(error, false);
                }
            }
            Err(error) => self.state = State::Failed(error, begun),
        }
    }

    /// Begins to receive the elements that the header, which has come, describes.
    fn begin(&mut self, session: &Session) -> Result<()> {
        if *self.found == self.expected {
            let mut request =
                session.receive_request(self.memory, self.expected.len_bytes(), self.peer)?;
            // SAFETY: the caller of `Expected::post` vouches for the memory, and the message has as
            // many bytes.
            unsafe { request.start(session) }?;
            self.state = State::Elements(request);
            return Ok(());
        }
        let mut memory = Vec::new();
        let len_bytes = self.found.len_bytes();
        memory.try_reserve_exact(len_bytes).map_err(|_| no_memory(self.peer, len_bytes))?;
        memory.resize(len_bytes, 0);
        let mut request = session.receive_request(memory.as_mut_ptr(), memory.len(), self.peer)?;
        // SAFETY: the memory stays in the state until this is over, and is not accessed; it has as
        // many bytes as the message.
        unsafe { request.start(session) }?;
        self.state = State::Discarded(request, memory);
        Ok(())
    }

    fn finish(&mut self, outcome: Outcome) {
        let is_expected = matches!(self.state, State::Elements(_)) && outcome == Outcome::Done;
        self.state = if is_expected { State::Arrived } else { State::Refused };
    }
}

fn advance_queue(queue: &mut Queue, session: &Session) {
    while let Some(first) = queue.front() {
        let mut arrival = lock(first);
        if arrival.is_first_to_begin() {
            arrival.advance(session);
        }
        if arrival.is_first_to_begin() {
            return;
        }
        drop(arrival);
        queue.pop_front();
    }
}

fn lock(arrival: &Mutex<Arrival>) -> MutexGuard<'_, Arrival> {
    arrival.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_memory(peer: Peer, len_bytes: usize) -> Error {
    let Peer { rank, tag, .. } = peer;
    let text = format!(
        "no memory to throw away {len_bytes} bytes from rank {rank} with tag {tag}, where another \
         message was expected; expect what is sent"
    );
    Error::Argument { operation: "recv", text }
}
