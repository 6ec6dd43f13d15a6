//! Which processes have not come to a collective operation, asked once it takes too long.
//!
//! Each process counts the collective operations that it has begun. A process whose wait for one
//! times out asks all others for their counts. Processes that wait in this library answer; one that
//! is gone, or computes, does not.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::call::{Channel, Session};
use crate::error::Result;

/// How long answers are awaited.
const PATIENCE: Duration = Duration::from_millis(250);

/// A wait looks for questions each so many short sleeps.
const SLEEPS: u32 = 20;

/// The tags of the numbers, on the channel of collective operations.
const QUESTION: i32 = 0;
const ANSWER: i32 = 1;

/// The collective operations of this process.
#[derive(Default)]
pub(crate) struct RollCall {
    begun: Cell<u64>,
    sleeps: Cell<u32>,
}

/// A number for a process.
pub(crate) struct Note {
    pub(crate) rank: usize,
    pub(crate) tag: i32,
    pub(crate) number: u64,
}

impl RollCall {
    /// Counts an operation that begins.
    pub(crate) fn begin_operation(&self) {
        self.begun.set(self.begun.get() + 1);
    }

    /// Whether a wait that sleeps again is to answer questions.
    pub(crate) fn is_due(&self) -> bool {
        self.sleeps.set(self.sleeps.get().wrapping_add(1));
        self.sleeps.get().is_multiple_of(SLEEPS)
    }

    /// Answers the questions that have arrived.
    pub(crate) fn answer(
        &self,
        session: &Session,
        mut send: impl FnMut(Note) -> Result<()>,
    ) -> Result<()> {
        while let Some((rank, _)) = session.take_number(Channel::Collectives, QUESTION)? {
            send(self.note(rank, ANSWER))?;
        }
        Ok(())
    }

    /// Those of `others` that have begun fewer collective operations than this process, or do not
    /// answer. `None` if the wait is over meanwhile.
    pub(crate) fn missing(
        &self,
        session: &Session,
        mut others: Vec<usize>,
        mut is_over: impl FnMut() -> Result<bool>,
        mut send: impl FnMut(Note) -> Result<()>,
    ) -> Result<Option<Vec<usize>>> {
        others.iter().try_for_each(|rank| send(self.note(*rank, QUESTION)))?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && !others.is_empty() {
            if is_over()? {
                return Ok(None);
            }
            self.answer(session, &mut send)?;
            while let Some((rank, begun)) = session.take_number(Channel::Collectives, ANSWER)? {
                if begun >= self.begun.get() {
                    others.retain(|other| *other != rank);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Some(others))
    }

    /// How many operations this process has begun.
    fn note(&self, rank: usize, tag: i32) -> Note {
        Note { rank, tag, number: self.begun.get() }
    }
}
