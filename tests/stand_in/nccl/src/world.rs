//! The ranks of one unique id: what they have posted and not yet taken.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::collective::{Collective, Contribution};
use crate::elements::Element;
use crate::status::{Outcome, Status};

/// All ranks of a communicator. Its waits run inside kernels, and end when the waiting rank aborts.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ranks: Vec<Rank>,
    messages: HashMap<Message, Delivery>,
    rounds: HashMap<u64, Round>,
}

#[derive(Clone, Debug, Default)]
struct Rank {
    device: Option<i32>,
    is_aborted: bool,
    error: Option<Status>,
    /// How many messages were sent to each rank, and received from each.
    sent: HashMap<usize, u64>,
    received: HashMap<usize, u64>,
    /// How many collectives were called.
    collectives: u64,
}

/// The n-th message from one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Message {
    from: usize,
    to: usize,
    number: u64,
}

#[derive(Debug)]
enum Delivery {
    Posted { element: Element, bytes: Vec<u8> },
    Taken { fits: bool },
}

/// One collective of all ranks.
#[derive(Debug)]
struct Round {
    contributions: Vec<Option<Contribution>>,
    ranks_done: usize,
    /// The contributions in the order of ranks, once all are there.
    complete: Vec<Contribution>,
}

/// Calls of two ranks do not fit together.
#[derive(Debug)]
pub(crate) struct Misfit;

/// The ranks that have to come first.
type Missing = Vec<usize>;

impl World {
    pub(crate) fn new(ranks: usize) -> Self {
        let ranks = vec![Rank::default(); ranks];
        let state = State { ranks, messages: HashMap::new(), rounds: HashMap::new() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn size(&self) -> usize {
        self.lock().ranks.len()
    }

    /// Adds a rank, on a device that no other rank is on.
    pub(crate) fn join(&self, rank: usize, device: i32) -> Outcome {
        let ranks = &mut self.lock().ranks;
        let is_taken = ranks.iter().any(|rank| rank.device == Some(device));
        if is_taken || ranks[rank].device.is_some() {
            return Err(Status::INVALID_USAGE);
        }
        ranks[rank].device = Some(device);
        Ok(())
    }

    pub(crate) fn abort(&self, rank: usize) {
        self.lock().ranks[rank].is_aborted = true;
        self.changed.notify_all();
    }

    pub(crate) fn error(&self, rank: usize) -> Option<Status> {
        self.lock().ranks[rank].error
    }

    /// The next message of the sender's, which numbers them as it calls.
    pub(crate) fn next_sent(&self, from: usize, to: usize) -> Message {
        let number = next(self.lock().ranks[from].sent.entry(to).or_default());
        Message { from, to, number }
    }

    /// The next message of the receiver's.
    pub(crate) fn next_received(&self, from: usize, to: usize) -> Message {
        let number = next(self.lock().ranks[to].received.entry(from).or_default());
        Message { from, to, number }
    }

    /// The number of the rank's next collective.
    pub(crate) fn next_collective(&self, rank: usize) -> u64 {
        next(&mut self.lock().ranks[rank].collectives)
    }

    pub(crate) fn post(&self, message: Message, element: Element, bytes: &[u8]) {
        let mut state = self.lock();
        if !state.ranks[message.from].is_aborted {
            state.messages.insert(message, Delivery::Posted { element, bytes: bytes.to_vec() });
            self.changed.notify_all();
        }
    }

    /// Waits for the message and copies it. If it does not fit, sender and receiver fail.
    pub(crate) fn take(
        &self,
        message: Message,
        wanted: Element,
        place: &mut [u8],
    ) -> Result<(), Misfit> {
        let taken = self.wait(message.to, |state| {
            let Some(Delivery::Posted { element, bytes }) = state.messages.remove(&message) else {
                return Err(vec![message.from]);
            };
            let fits = element == wanted && bytes.len() == place.len();
            state.messages.insert(message, Delivery::Taken { fits });
            if !fits {
                state.fail(&[message.from, message.to]);
            }
            Ok(fits.then_some(bytes))
        });
        match taken {
            Some(Some(bytes)) => place.copy_from_slice(&bytes),
            Some(None) => return Err(Misfit),
            None => {}
        }
        Ok(())
    }

    /// Waits until a sent message was received.
    pub(crate) fn confirm(&self, message: Message) -> Result<(), Misfit> {
        let fits = self.wait(message.from, |state| match state.messages.get(&message) {
            Some(Delivery::Taken { fits }) => {
                let fits = *fits;
                state.messages.remove(&message);
                Ok(fits)
            }
            _ => Err(vec![message.to]),
        });
        if fits.unwrap_or(true) { Ok(()) } else { Err(Misfit) }
    }

    pub(crate) fn contribute(&self, rank: usize, number: u64, contribution: Contribution) {
        let mut state = self.lock();
        if state.ranks[rank].is_aborted {
            return;
        }
        let round = state.round(number);
        round.contributions[rank] = Some(contribution);
        if round.contributions.iter().all(Option::is_some) {
            round.complete = round.contributions.iter_mut().filter_map(Option::take).collect();
        }
        self.changed.notify_all();
    }

    /// Waits for the contributions of all ranks, and returns this rank's result. `None` if the rank
    /// aborts.
    pub(crate) fn result(
        &self,
        rank: usize,
        number: u64,
        collective: Collective,
    ) -> Result<Option<Vec<u8>>, Misfit> {
        let result = self.wait(rank, |state| {
            let round = state.round(number);
            if round.complete.is_empty() {
                return Err(round.missing());
            }
            let fits = round.complete.iter().all(|part| part.collective == collective);
            let result = fits.then(|| collective.result(rank, &round.complete));
            round.ranks_done += 1;
            if round.ranks_done == round.complete.len() {
                state.rounds.remove(&number);
            }
            if !fits {
                state.fail(&[rank]);
            }
            Ok(result)
        });
        result.map_or(Ok(None), |result| result.map(Some).ok_or(Misfit))
    }

    /// Waits until `ready` returns something, or returns `None` once the rank is aborted. While an
    /// aborted rank has to come first, that is this rank's error.
    fn wait<T>(
        &self,
        rank: usize,
        mut ready: impl FnMut(&mut State) -> Result<T, Missing>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.ranks[rank].is_aborted {
                return None;
            }
            match ready(&mut state) {
                Ok(value) => {
                    self.changed.notify_all();
                    return Some(value);
                }
                Err(missing) => {
                    if missing.iter().any(|rank| state.ranks[*rank].is_aborted) {
                        state.ranks[rank].error.get_or_insert(Status::REMOTE_ERROR);
                    }
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn round(&mut self, number: u64) -> &mut Round {
        let ranks = self.ranks.len();
        self.rounds.entry(number).or_insert_with(|| Round {
            contributions: (0..ranks).map(|_| None).collect(),
            ranks_done: 0,
            complete: Vec::new(),
        })
    }

    fn fail(&mut self, ranks: &[usize]) {
        for rank in ranks {
            self.ranks[*rank].error = Some(Status::INVALID_USAGE);
        }
    }
}

impl Round {
    fn missing(&self) -> Missing {
        let missing = self.contributions.iter().enumerate().filter(|(_, part)| part.is_none());
        missing.map(|(rank, _)| rank).collect()
    }
}

fn next(number: &mut u64) -> u64 {
    *number += 1;
    *number
}
