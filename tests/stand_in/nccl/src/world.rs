//! The ranks of one unique id: what they have posted and not yet taken.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::collective::{Collective, Contribution};
use crate::elements::Element;
use crate::request::{Answer, Message, Request};
use crate::status::Status;

/// All ranks of a communicator, in the process that made its id. Its waits run inside kernels, and
/// end when the waiting rank aborts.
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

    /// Does what one of the ranks asks for. Waits if that has to wait for another rank.
    pub(crate) fn answer(&self, rank: usize, request: Request) -> Answer {
        match request {
            Request::Join { device } => self.join(rank, device),
            Request::Abort => self.abort(rank),
            Request::Error => self.lock().ranks[rank].error.map_or(Answer::Done, Answer::Status),
            Request::Post { message, element, bytes } => self.post(message, element, bytes),
            Request::Take { message, element, len_bytes } => self.take(message, element, len_bytes),
            Request::Confirm { message } => self.confirm(message),
            Request::Contribute { number, contribution } => {
                self.contribute(rank, number, contribution)
            }
            Request::Result { number, collective } => self.result(rank, number, collective),
        }
    }

    /// Adds a rank, on a device that no other rank is on.
    fn join(&self, rank: usize, device: i32) -> Answer {
        let ranks = &mut self.lock().ranks;
        let is_taken = ranks.iter().any(|rank| rank.device == Some(device));
        if is_taken || ranks[rank].device.is_some() {
            return Answer::Status(Status::INVALID_USAGE);
        }
        ranks[rank].device = Some(device);
        Answer::Done
    }

    fn abort(&self, rank: usize) -> Answer {
        self.lock().ranks[rank].is_aborted = true;
        self.changed.notify_all();
        Answer::Done
    }

    fn post(&self, message: Message, element: Element, bytes: Vec<u8>) -> Answer {
        let mut state = self.lock();
        if !state.ranks[message.from].is_aborted {
            state.messages.insert(message, Delivery::Posted { element, bytes });
            self.changed.notify_all();
        }
        Answer::Done
    }

    /// Waits for the message. If it does not fit, sender and receiver fail.
    fn take(&self, message: Message, wanted: Element, len_bytes: usize) -> Answer {
        self.wait(message.to, |state| {
            let Some(Delivery::Posted { element, bytes }) = state.messages.remove(&message) else {
                return Err(vec![message.from]);
            };
            let fits = element == wanted && bytes.len() == len_bytes;
            state.messages.insert(message, Delivery::Taken { fits });
            if !fits {
                state.fail(&[message.from, message.to]);
            }
            Ok(if fits { Answer::Bytes(bytes) } else { Answer::Misfit })
        })
    }

    /// Waits until a sent message was received.
    fn confirm(&self, message: Message) -> Answer {
        self.wait(message.from, |state| match state.messages.get(&message) {
            Some(Delivery::Taken { fits }) => {
                let fits = *fits;
                state.messages.remove(&message);
                Ok(if fits { Answer::Done } else { Answer::Misfit })
            }
            _ => Err(vec![message.to]),
        })
    }

    fn contribute(&self, rank: usize, number: u64, contribution: Contribution) -> Answer {
        let mut state = self.lock();
        if !state.ranks[rank].is_aborted {
            let round = state.round(number);
            round.contributions[rank] = Some(contribution);
            if round.contributions.iter().all(Option::is_some) {
                round.complete = round.contributions.iter_mut().filter_map(Option::take).collect();
            }
            self.changed.notify_all();
        }
        Answer::Done
    }

    /// Waits for the contributions of all ranks, and returns this rank's result.
    fn result(&self, rank: usize, number: u64, collective: Collective) -> Answer {
        self.wait(rank, |state| {
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
            Ok(result.map_or(Answer::Misfit, Answer::Bytes))
        })
    }

    /// Waits until `ready` returns something, or until the rank is aborted. While an aborted rank
    /// has to come first, that is this rank's error.
    fn wait(
        &self,
        rank: usize,
        mut ready: impl FnMut(&mut State) -> Result<Answer, Missing>,
    ) -> Answer {
        let mut state = self.lock();
        loop {
            if state.ranks[rank].is_aborted {
                return Answer::Aborted;
            }
            match ready(&mut state) {
                Ok(answer) => {
                    self.changed.notify_all();
                    return answer;
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
