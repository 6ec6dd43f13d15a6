//! What was sent and received: counted, and recorded by the audit of `resident`.

use std::cell::Cell;
use std::panic::Location;
use std::time::Duration;

use resident::internal::{Transfer, mark_barrier, record_transfer};

/// Messages, or bytes, of one process since MPI was initialised.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flow {
    /// How many messages.
    pub count: u64,
    /// The bytes of their elements.
    pub bytes: u64,
}

/// What a process sent to others, and to itself, and what it received. Headers do not count, nor do
/// the faces of a process that is its own neighbour, which are copied.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Messages that were handed to MPI.
    pub sent: Flow,
    /// Messages that arrived and were taken.
    pub received: Flow,
}

/// Which way a message went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Sent,
    Received,
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) direction: Direction,
    pub(crate) bytes: usize,
    /// The name of the array.
    pub(crate) array: &'a str,
    /// The rank of the process at the other end; `None` if it is all of them.
    pub(crate) peer: Option<usize>,
    /// The user's call.
    pub(crate) site: &'static Location<'static>,
}

/// Counts of a world.
#[derive(Default)]
pub(crate) struct Counts {
    traffic: Cell<Traffic>,
    /// How long this thread has waited since the last record.
    waited: Cell<Duration>,
}

impl Counts {
    pub(crate) fn get(&self) -> Traffic {
        self.traffic.get()
    }

    /// The next record says so.
    pub(crate) fn add_wait(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
    }

    /// Records that all processes have left a barrier.
    #[track_caller]
    pub(crate) fn record_barrier(&self) {
        mark_barrier(self.waited.take());
    }
}

/// Counts a message and records it. All records of messages are made here.
pub(crate) fn record(counts: &Counts, message: &Message<'_>) {
    let mut traffic = counts.traffic.get();
    let flow = match message.direction {
        Direction::Sent => &mut traffic.sent,
        Direction::Received => &mut traffic.received,
    };
    flow.count += 1;
    flow.bytes += message.bytes as u64;
    counts.traffic.set(traffic);
    let transfer = transfer_of(message).at(message.site).waited(counts.waited.take());
    record_transfer(transfer);
}

fn transfer_of<'a>(message: &Message<'a>) -> Transfer<'a> {
    let &Message { direction, bytes, array, peer, .. } = message;
    let (bytes, peer) = (bytes as u64, peer.and_then(|rank| u32::try_from(rank).ok()));
    match (direction, peer) {
        (Direction::Sent, Some(to)) => Transfer::sent(bytes, array, to),
        (Direction::Sent, None) => Transfer::sent_to_all(bytes, array),
        (Direction::Received, Some(from)) => Transfer::received(bytes, array, from),
        (Direction::Received, None) => Transfer::received_from_all(bytes, array),
    }
}
