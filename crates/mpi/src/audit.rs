//! What was sent and received.

use std::cell::Cell;
use std::panic::Location;

/// Messages, or bytes, of one process since MPI was initialised.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flow {
    /// How many messages.
    pub count: u64,
    /// The bytes of their elements.
    pub bytes: u64,
}

/// What a process sent to others, and to itself, and what it received. Headers do not count.
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
#[expect(dead_code, reason = "all that a record of the audit needs; the counts need less")]
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
pub(crate) struct Counts(Cell<Traffic>);

impl Counts {
    pub(crate) fn get(&self) -> Traffic {
        self.0.get()
    }
}

/// Counts a message. All records of messages are made here.
pub(crate) fn record(counts: &Counts, message: &Message<'_>) {
    let mut traffic = counts.0.get();
    let flow = match message.direction {
        Direction::Sent => &mut traffic.sent,
        Direction::Received => &mut traffic.received,
    };
    flow.count += 1;
    flow.bytes += message.bytes as u64;
    counts.0.set(traffic);
}
