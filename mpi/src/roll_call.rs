//! Which processes have not come to a collective operation, asked once it takes too long.
//!
//! Each process counts the collective operations that it has begun. A process whose wait for one
//! times out asks all others for their counts. Processes that wait in this library answer; one that
//! is gone, or computes, does not.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::call::{Channel, Peer, Request};
use crate::error::Result;
use crate::transfer::Transfer;
use crate::world::World;

/// How long answers are awaited.
const PATIENCE: Duration = Duration::from_millis(250);

/// A wait looks for questions each so many short sleeps.
const SLEEPS: u32 = 20;

/// The tags of its messages, on the channel of collective operations.
const QUESTION: i32 = 0;
const ANSWER: i32 = 1;

/// The collective operations of this process.
#[derive(Default)]
pub(crate) struct RollCall {
    begun: Cell<u64>,
    sleeps: Cell<u32>,
}

impl RollCall {
    /// Counts an operation that begins.
    pub(crate) fn begin_operation(&self) {
        self.begun.set(self.begun.get() + 1);
    }
}

/// Answers questions, in a wait that sleeps. Most calls only count.
pub(crate) fn answer_sometimes(world: &World) -> Result<()> {
    let sleeps = &world.roll_call().sleeps;
    sleeps.set(sleeps.get() + 1);
    if sleeps.get().is_multiple_of(SLEEPS) { answer(world) } else { Ok(()) }
}

/// Answers the questions that have arrived.
pub(crate) fn answer(world: &World) -> Result<()> {
    while let Some((rank, _)) = world.session().take_number(Channel::Collectives, QUESTION)? {
        send(world, rank, ANSWER)?;
    }
    Ok(())
}

/// The processes that have begun fewer collective operations than this one, or do not answer.
/// `None` if the wait is over meanwhile.
pub(crate) fn missing(
    world: &World,
    mut is_over: impl FnMut() -> Result<bool>,
) -> Result<Option<Vec<usize>>> {
    let mut missing: Vec<usize> = (0..world.size()).filter(|rank| *rank != world.rank()).collect();
    for rank in &missing {
        send(world, *rank, QUESTION)?;
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end && !missing.is_empty() {
        if is_over()? {
            return Ok(None);
        }
        answer(world)?;
        while let Some((rank, begun)) = world.session().take_number(Channel::Collectives, ANSWER)? {
            if begun >= world.roll_call().begun.get() {
                missing.retain(|other| *other != rank);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Some(missing))
}

/// Sends how many operations this process has begun.
fn send(world: &World, rank: usize, tag: i32) -> Result<()> {
    let peer = Peer { rank, tag, channel: Channel::Collectives };
    let transfer = Transfer::new(world.roll_call().begun.get(), Request::null());
    world.start(&transfer, |session, number, request| {
        *request = session.send_request((&raw const *number).cast(), size_of::<u64>(), peer)?;
        // SAFETY: the number is memory of the transfer: it lives, where it is, until the transfer is
        // complete, and nothing accesses it before (`Transfer::start`).
        unsafe { request.start(session) }
    })
}
