//! How a rank reaches its world: in this process, or in the one that made the unique id.

use std::collections::HashMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::request::{self, Answer, Envelope, Message, Request};
use crate::status::{Outcome, Status};
use crate::world::World;

/// A rank of a world.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    place: Place,
    numbers: Mutex<Numbers>,
}

#[derive(Debug)]
enum Place {
    Here(Arc<World>),
    Elsewhere(Elsewhere),
}

/// The calls of a rank so far.
#[derive(Debug, Default)]
struct Numbers {
    /// Messages to each rank, and from each.
    sent: HashMap<usize, u64>,
    received: HashMap<usize, u64>,
    collectives: u64,
}

/// A world in another process. Each request has a connection of its own.
#[derive(Debug)]
struct Elsewhere {
    address: Address,
    is_aborted: Mutex<bool>,
    aborted: Condvar,
    /// Open as long as this process has the rank: its end tells the world that the rank is gone.
    _presence: UnixStream,
}

/// A world, by its process and its number there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) process: String,
    pub(crate) world: u64,
}

impl Link {
    /// Joins a world of this process.
    pub(crate) fn here(world: Arc<World>, rank: usize, device: i32) -> Outcome<Self> {
        joined(world.answer(rank, Request::Join { device }))?;
        Ok(Self::new(rank, world.size(), Place::Here(world)))
    }

    /// Joins a world of another process.
    pub(crate) fn elsewhere(
        address: Address,
        [rank, ranks]: [usize; 2],
        device: i32,
    ) -> Outcome<Self> {
        let envelope =
            Envelope { world: address.world, rank, ranks, request: Request::Join { device } };
        let call = || {
            let mut socket = address.connect()?;
            request::write(&mut socket, &envelope)?;
            Ok((request::read(&mut socket)?, socket))
        };
        let (answer, presence) = call().map_err(|_: io::Error| Status::SYSTEM_ERROR)?;
        joined(answer)?;
        let place = Elsewhere {
            address,
            is_aborted: Mutex::new(false),
            aborted: Condvar::new(),
            _presence: presence,
        };
        Ok(Self::new(rank, ranks, Place::Elsewhere(place)))
    }

    fn new(rank: usize, ranks: usize, place: Place) -> Self {
        Self { rank, ranks, place, numbers: Mutex::default() }
    }

    /// Asks the world. Waits if the request has to wait for another rank.
    pub(crate) fn ask(&self, request: Request) -> Answer {
        match &self.place {
            Place::Here(world) => world.answer(self.rank, request),
            Place::Elsewhere(place) => place.ask([self.rank, self.ranks], request),
        }
    }

    pub(crate) fn error(&self) -> Option<Status> {
        match self.ask(Request::Error) {
            Answer::Status(status) => Some(status),
            _ => None,
        }
    }

    /// The next message to a rank. Messages are numbered as the rank calls.
    pub(crate) fn next_sent(&self, to: usize) -> Message {
        let number = next(self.numbers().sent.entry(to).or_default());
        Message { from: self.rank, to, number }
    }

    /// The next message from a rank.
    pub(crate) fn next_received(&self, from: usize) -> Message {
        let number = next(self.numbers().received.entry(from).or_default());
        Message { from, to: self.rank, number }
    }

    /// The number of the rank's next collective.
    pub(crate) fn next_collective(&self) -> u64 {
        next(&mut self.numbers().collectives)
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Elsewhere {
    fn ask(&self, [rank, ranks]: [usize; 2], request: Request) -> Answer {
        if matches!(request, Request::Abort) {
            *self.is_aborted.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.aborted.notify_all();
        }
        let envelope = Envelope { world: self.address.world, rank, ranks, request };
        let answer = self.address.connect().and_then(|mut socket| {
            request::write(&mut socket, &envelope)?;
            request::read(&mut socket)
        });
        answer.unwrap_or_else(|_| self.answer_without_world(&envelope.request))
    }

    /// The other process is gone: all ranks are, as far as this one can know. What waits for a rank
    /// waits until this one is aborted.
    fn answer_without_world(&self, request: &Request) -> Answer {
        match request {
            Request::Take { .. } | Request::Confirm { .. } | Request::Result { .. } => {
                let mut is_aborted = self.is_aborted.lock().unwrap_or_else(PoisonError::into_inner);
                while !*is_aborted {
                    is_aborted =
                        self.aborted.wait(is_aborted).unwrap_or_else(PoisonError::into_inner);
                }
                Answer::Aborted
            }
            Request::Error => Answer::Status(Status::REMOTE_ERROR),
            _ => Answer::Done,
        }
    }
}

impl Address {
    fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect_addr(&self.socket()?)
    }

    /// The address of a process's socket, in the abstract namespace: no file stays behind.
    pub(crate) fn socket(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(&self.process)
    }
}

fn joined(answer: Answer) -> Outcome {
    match answer {
        Answer::Status(status) => Err(status),
        _ => Ok(()),
    }
}

fn next(number: &mut u64) -> u64 {
    *number += 1;
    *number
}
