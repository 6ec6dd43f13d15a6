//! Messages of other processes that are expected: a header, and then the elements.
//!
//! MPI receives elements only once the header has said that they fit. A message that is longer than
//! the memory for it is an error by MPI's standard, which returns it, but libraries write beyond
//! the memory first (Open MPI 4.1 does, from 4 KiB on, where processes share a node). So what does
//! not fit is received into memory of its own length, and thrown away.
//!
//! Headers and elements of one sender and tag correspond by their order, in which the receives must
//! therefore begin: there is a queue for each sender and tag. A queue owns the headers and the
//! addresses of its messages until it begins to receive their elements, so that nothing else can
//! begin that: whoever waits for a message can only ask its queue, and see what it has begun. The
//! progress thread asks the queues too, so that elements arrive while the program computes.

mod elements;
mod queue;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crate::call::{Outcome, Peer, Session};
use crate::description::Header;
use crate::error::{Error, Result};
use crate::transfer::Operation;

use elements::{Elements, lock};
use queue::{Message, Queue};

/// The messages whose elements are not yet received, by sender and tag.
#[derive(Default)]
pub(crate) struct Inbox {
    queues: Mutex<HashMap<Key, Queue>>,
    failure: OnceLock<Error>,
}

/// The messages of one sender and tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    rank: usize,
    tag: i32,
}

/// One expected message: the operation of a transfer, whose memory it receives to.
pub(crate) struct Expected {
    inbox: Arc<Inbox>,
    message: Message,
    /// Shared with the queue until this has begun.
    elements: Arc<Mutex<Elements>>,
}

impl Inbox {
    /// Looks for headers, and begins to receive their elements.
    pub(crate) fn advance(&self, session: &Session) {
        self.lock().retain(|_, queue| {
            queue.advance(session, &self.failure);
            !queue.is_empty()
        });
    }

    /// Why no receive of elements begins any more: one could not begin, or the receive of a header
    /// failed. The elements stay with MPI, which would give them to the next receive.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.get().cloned()
    }

    fn advance_one(&self, key: Key, session: &Session) {
        let mut queues = self.lock();
        let Some(queue) = queues.get_mut(&key) else { return };
        queue.advance(session, &self.failure);
        if queue.is_empty() {
            queues.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Queue>> {
        lock(&self.queues)
    }
}

impl Expected {
    /// A message to `memory` that `header` describes.
    pub(crate) fn new(inbox: &Arc<Inbox>, header: Header, memory: *mut u8, peer: Peer) -> Self {
        let message = Message { header, memory, peer };
        Self { inbox: Arc::clone(inbox), message, elements: Arc::default() }
    }

    /// Begins to expect it.
    ///
    /// # Safety
    ///
    /// Until [`test`](Operation::test) says that it is over, this is not dropped, the memory is
    /// valid for as many bytes as the header says, and nothing else reads or writes it.
    pub(crate) unsafe fn post(&mut self, session: &Session) -> Result<()> {
        let mut queues = self.inbox.lock();
        let queue = queues.entry(self.key()).or_default();
        // SAFETY: the caller vouches for the memory, and keeps this, which owns `elements`.
        unsafe { queue.push(session, self.message, &self.elements) }
    }

    /// What was sent, once it has arrived.
    pub(crate) fn found(&self) -> Header {
        lock(&self.elements).refused().unwrap_or(self.message.header)
    }

    fn key(&self) -> Key {
        Key { rank: self.message.peer.rank, tag: self.message.peer.tag }
    }
}

impl Operation for Expected {
    fn test(&mut self, session: &Session) -> Result<Outcome> {
        self.inbox.advance_one(self.key(), session);
        let mut elements = lock(&self.elements);
        match (&*elements, self.inbox.failure()) {
            (Elements::Queued, Some(error)) => Err(error),
            _ => elements.test(session),
        }
    }
}
