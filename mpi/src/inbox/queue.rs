//! The order in which the elements of one sender and tag are received.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, OnceLock};

use super::elements::{Elements, lock};
use crate::call::{Channel, Outcome, Peer, Request, Session};
use crate::description::Header;
use crate::error::{Error, Result};

/// What is expected, and where its elements go.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) header: Header,
    /// As many bytes as the header says.
    pub(super) memory: *mut u8,
    pub(super) peer: Peer,
}

/// The messages of one sender and tag whose elements are not yet received, in the order in which
/// their headers are. The first leaves it when the receive of its elements has begun.
#[derive(Default)]
pub(super) struct Queue(VecDeque<Waiting>);

/// A message of which the header is awaited.
struct Waiting {
    message: Message,
    /// What was sent. Boxed, as MPI writes it.
    found: Box<Header>,
    /// The receive of `found`.
    request: Request,
    /// Where its `Expected` sees the elements.
    elements: Arc<Mutex<Elements>>,
}

// SAFETY: the memory is that of an array, which is `Send`. MPI alone uses it (`Queue::push`), and
// requests are used by several threads only where MPI allows it: the progress thread, the only
// other one, exists only there.
unsafe impl Send for Waiting {}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins to receive the header of one more message, which then is the last.
    ///
    /// # Safety
    ///
    /// Until a test of `elements` says that they are over, they are not dropped by their other
    /// owner, the memory is valid for as many bytes as the header says, and nothing else reads or
    /// writes it.
    pub(super) unsafe fn push(
        &mut self,
        session: &Session,
        message: Message,
        elements: &Arc<Mutex<Elements>>,
    ) -> Result<()> {
        let mut found = Box::new(Header::empty());
        let beside = Peer { channel: Channel::Headers, ..message.peer };
        let mut request = found.receive_request(session, beside)?;
        // SAFETY: the box is in this queue until the request is over, or else leaked (`drop`), and
        // is read after that only. All messages of this channel and tag are headers, of one length.
        unsafe { request.start(session) }?;
        self.0.push_back(Waiting { message, found, request, elements: Arc::clone(elements) });
        Ok(())
    }

    /// Begins to receive the elements of the messages whose headers have come, one after the other.
    /// A failure is the end of that, for all queues: what the first message's header or elements
    /// would have been stays with MPI, which would give it to a later receive.
    pub(super) fn advance(&mut self, session: &Session, failure: &OnceLock<Error>) {
        while failure.get().is_none() {
            match self.begin_first(session) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    failure.get_or_init(|| error);
                }
            }
        }
    }

    /// Whether the first message has left the queue. No more is begun after an error.
    fn begin_first(&mut self, session: &Session) -> Result<bool> {
        let Some(first) = self.0.front_mut() else { return Ok(false) };
        if first.request.test(session)? == Outcome::Pending {
            return Ok(false);
        }
        // SAFETY: it is the first, and its header has come. All before it have left the queue,
        // which they do once their receives have begun.
        let begun = unsafe { first.begin(session) }?;
        *lock(&first.elements) = begun;
        self.0.pop_front();
        Ok(true)
    }
}

impl Drop for Queue {
    /// MPI may still write the headers that are left.
    fn drop(&mut self) {
        self.0.drain(..).for_each(mem::forget);
    }
}

impl Waiting {
    /// Begins to receive the elements that the header describes.
    ///
    /// # Safety
    ///
    /// The header has come, and the receives of the elements of all earlier headers of this sender
    /// and tag have begun.
    unsafe fn begin(&self, session: &Session) -> Result<Elements> {
        let Message { header, memory, peer } = self.message;
        let len_bytes = self.found.len_bytes();
        if *self.found == header {
            let mut request = session.receive_request(memory, len_bytes, peer)?;
            // SAFETY: the caller of `Queue::push` vouches for the memory, of as many bytes as the
            // header says. So many has the message that MPI gives to this receive: a sender starts
            // header and elements of a message before those of the next one, or nothing more
            // (`Mpi::post`), MPI keeps the order of a sender and tag in each channel, and earlier
            // elements have their receives, as the caller says. Nothing else receives in this
            // channel.
            unsafe { request.start(session) }?;
            return Ok(Elements::Expected(request));
        }
        let mut memory = Vec::new();
        memory.try_reserve_exact(len_bytes).map_err(|_| no_memory(peer, len_bytes))?;
        memory.resize(len_bytes, 0);
        let mut request = session.receive_request(memory.as_mut_ptr(), len_bytes, peer)?;
        // SAFETY: `Elements` keeps the memory until the request is over, and does not access it; it
        // has as many bytes as the message, for the reasons above.
        unsafe { request.start(session) }?;
        Ok(Elements::Discarded(request, memory, self.found.clone()))
    }
}

fn no_memory(peer: Peer, len_bytes: usize) -> Error {
    let Peer { rank, tag, .. } = peer;
    let text = format!(
        "no memory to throw away {len_bytes} bytes from rank {rank} with tag {tag}, where another \
         message was expected; expect what is sent"
    );
    Error::Argument { operation: "recv", text }
}
