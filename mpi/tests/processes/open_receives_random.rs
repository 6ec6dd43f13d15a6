//! Random programs of open receives, against a model: of one sender and tag, the first receive gets
//! what was sent first, and the elements only if they are what it expects.

use std::collections::VecDeque;

use resident::ndarray::Ix1;
use resident::{Element, SmartArray};
use resident_mpi::{Error, Mpi, Receiving, Sending};

use crate::interposed;
use crate::launch::run_each;
use crate::random::Random;

const TAGS: usize = 3;
/// Shorter and longer than what libraries send at once.
const LENS: [usize; 6] = [0, 1, 64, 65, 700, 20_000];

/// Numbers of processes, and of the programs that they run.
const JOBS: [(usize, u64); 4] = [(1, 100), (2, 60), (3, 40), (4, 30)];

#[test]
fn receives_get_what_the_model_says() {
    run_each(&JOBS.map(|(processes, _)| processes), |mpi| {
        let job = JOBS.iter().find(|(processes, _)| *processes == mpi.size());
        programs(mpi, job.expect("one of the jobs").1);
    });
}

/// What a message is, or is expected to be.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Kind {
    is_wide: bool,
    len: usize,
}

/// A message, and the receive of the same place in the order of its sender, receiver and tag.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: usize,
    to: usize,
    tag: usize,
    sent: Kind,
    expected: Kind,
    /// Of all its elements.
    value: u8,
}

fn programs(mpi: &Mpi, count: u64) {
    interposed::slow_down();
    for seed in 0..count {
        // The messages are the same in all processes, and what each does with them is not.
        let messages = messages(mpi.size(), &mut Random::new(seed));
        let own = 1 + seed * 100 + mpi.rank() as u64;
        Program::new(mpi, &messages, Random::new(own << 32)).run();
    }
    mpi.barrier().unwrap();
}

fn messages(processes: usize, random: &mut Random) -> Vec<Message> {
    // Few tags make many open receives of one, and few lengths such that fit another message.
    let tags = 1 + random.below(TAGS);
    let lens = [(); 3].map(|()| LENS[random.below(LENS.len())]);
    let kind = |random: &mut Random| Kind {
        is_wide: random.below(4) > 0,
        len: lens[random.below(lens.len())],
    };
    (0..4 + random.below(12 * processes))
        .map(|index| {
            let (from, to) = (random.below(processes), random.below(processes));
            let sent = kind(random);
            let expected = if random.below(5) == 0 { kind(random) } else { sent };
            Message { from, to, tag: random.below(tags), sent, expected, value: index as u8 }
        })
        .collect()
}

/// What one process does.
struct Program<'a> {
    mpi: &'a Mpi,
    random: Random,
    /// By receiver and tag, as only their order matters.
    to_send: Vec<VecDeque<Message>>,
    /// By sender and tag.
    to_post: Vec<VecDeque<Message>>,
    open: Vec<Open>,
    sending: Vec<Sending>,
}

struct Open {
    message: Message,
    receiving: Typed,
}

enum Typed {
    Wide(Receiving<u64, Ix1>),
    Narrow(Receiving<u8, Ix1>),
}

impl<'a> Program<'a> {
    fn new(mpi: &'a Mpi, messages: &[Message], random: Random) -> Self {
        let queues = |is_mine: fn(&Message) -> (usize, usize)| -> Vec<VecDeque<Message>> {
            let mut queues = vec![VecDeque::new(); mpi.size() * TAGS];
            for message in messages.iter().filter(|message| is_mine(message).0 == mpi.rank()) {
                queues[is_mine(message).1 * TAGS + message.tag].push_back(*message);
            }
            queues
        };
        let to_send = queues(|message| (message.from, message.to));
        let to_post = queues(|message| (message.to, message.from));
        Self { mpi, random, to_send, to_post, open: Vec::new(), sending: Vec::new() }
    }

    fn run(mut self) {
        while self.has_left() {
            match self.random.below(8) {
                0 | 1 => self.send(),
                2..=4 => self.post(),
                5 => self.look(),
                6 => self.release(),
                // It has a smaller rank, and so waits for nothing that this process sends later.
                _ => self.wait_for(|message, rank| message.from < rank),
            }
        }
        while !self.open.is_empty() {
            match self.random.below(6) {
                0 | 1 => self.look(),
                2 => self.release(),
                _ => self.wait_for(|_, _| true),
            }
        }
        self.sending.into_iter().for_each(|sending| sending.wait().unwrap());
    }

    fn has_left(&self) -> bool {
        self.to_send.iter().chain(&self.to_post).any(|queue| !queue.is_empty())
    }

    fn send(&mut self) {
        let Some(message) = take(&mut self.to_send, &mut self.random) else { return };
        let sending = if message.sent.is_wide {
            self.isend::<u64>(&message, wide(message.value))
        } else {
            self.isend(&message, message.value)
        };
        // Half of them are dropped on their way.
        self.sending.extend(self.random.coin().then_some(sending));
    }

    fn isend<T: Element>(&self, message: &Message, value: T) -> Sending {
        let array = SmartArray::from(vec![value; message.sent.len]);
        self.mpi.isend(&array, message.to, message.tag as i32).unwrap()
    }

    fn post(&mut self) {
        let Some(message) = take(&mut self.to_post, &mut self.random) else { return };
        let (len, from, tag) = (message.expected.len, message.from, message.tag as i32);
        let receiving = if message.expected.is_wide {
            Typed::Wide(self.mpi.irecv(len, from, tag).unwrap())
        } else {
            Typed::Narrow(self.mpi.irecv(len, from, tag).unwrap())
        };
        self.open.push(Open { message, receiving });
    }

    /// Asks whether some of the open receives are done, the last ones most often.
    fn look(&mut self) {
        for _ in 0..self.random.below(20) {
            let skip = self.random.below(2).min(self.random.below(4));
            if let Some(open) = self.open.iter().rev().nth(skip) {
                open.receiving.is_done();
            }
        }
    }

    /// Drops or forgets one of the open receives.
    fn release(&mut self) {
        let Some(index) = self.choose(|_, _| true) else { return };
        let open = self.open.swap_remove(index);
        if self.random.coin() {
            std::mem::forget(open);
        }
    }

    fn wait_for(&mut self, may_wait: fn(&Message, usize) -> bool) {
        let Some(index) = self.choose(may_wait) else { return };
        self.open.remove(index).check();
    }

    /// One of the open receives: the last one in half of the cases.
    fn choose(&mut self, is_chosen: fn(&Message, usize) -> bool) -> Option<usize> {
        let rank = self.mpi.rank();
        let mut indices = (0..self.open.len()).collect::<Vec<_>>();
        indices.retain(|index| is_chosen(&self.open[*index].message, rank));
        let last = indices.len().checked_sub(1)?;
        Some(indices[if self.random.coin() { last } else { self.random.below(last + 1) }])
    }
}

impl Typed {
    fn is_done(&self) -> bool {
        match self {
            Self::Wide(receiving) => receiving.is_done().unwrap(),
            Self::Narrow(receiving) => receiving.is_done().unwrap(),
        }
    }
}

impl Open {
    fn check(self) {
        match self.receiving {
            Typed::Wide(receiving) => compare(&self.message, receiving, wide),
            Typed::Narrow(receiving) => compare(&self.message, receiving, |value| value),
        }
    }
}

fn compare<T: Element + PartialEq>(
    message: &Message,
    receiving: Receiving<T, Ix1>,
    element: fn(u8) -> T,
) {
    match receiving.wait() {
        Ok(array) => {
            assert_eq!(message.sent, message.expected, "{message:?}");
            let elements = array.to_vec().unwrap();
            assert_eq!(elements.len(), message.sent.len, "{message:?}");
            assert!(elements.iter().all(|one| *one == element(message.value)), "{message:?}");
        }
        Err(Error::Mismatch { rank, expected, found, .. }) => {
            assert_ne!(message.sent, message.expected, "{message:?}");
            assert_eq!(rank, message.from);
            assert_eq!([expected, found], [message.expected, message.sent].map(text));
        }
        Err(error) => panic!("{error}: {message:?}"),
    }
}

fn text(kind: Kind) -> String {
    format!("{} of shape [{}]", if kind.is_wide { "u64" } else { "u8" }, kind.len)
}

/// All bytes differ from those of other messages.
fn wide(value: u8) -> u64 {
    u64::from_ne_bytes([value; 8])
}

/// The first of one of the queues.
fn take(queues: &mut [VecDeque<Message>], random: &mut Random) -> Option<Message> {
    let mut left: Vec<_> = queues.iter_mut().filter(|queue| !queue.is_empty()).collect();
    if left.is_empty() {
        return None;
    }
    let index = random.below(left.len());
    left[index].pop_front()
}
