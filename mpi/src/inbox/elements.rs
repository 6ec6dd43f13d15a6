//! The elements of one message.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::{Outcome, Request, Session};
use crate::description::Header;
use crate::error::Result;

#[derive(Default)]
pub(super) enum Elements {
    /// The queue has not begun to receive them.
    #[default]
    Queued,
    /// They fit, and are awaited.
    Expected(Request),
    /// Others, which the header describes, are awaited in memory of their own, which MPI writes.
    Discarded(Request, #[expect(dead_code, reason = "MPI writes it")] Vec<u8>, Box<Header>),
    /// The header is that of others, if others have arrived.
    Over(Outcome, Option<Box<Header>>),
}

impl Elements {
    /// Whether they have arrived.
    ///
    /// # Errors
    ///
    /// It is not known whether MPI still writes memory, so that request and memory stay.
    pub(super) fn test(&mut self, session: &Session) -> Result<Outcome> {
        let outcome = match self {
            Self::Queued => Outcome::Pending,
            Self::Expected(request) | Self::Discarded(request, ..) => request.test(session)?,
            Self::Over(outcome, _) => *outcome,
        };
        if outcome == Outcome::Pending {
            return Ok(outcome);
        }
        let (outcome, found) = match mem::take(self) {
            Self::Queued | Self::Expected(_) => (outcome, None),
            Self::Discarded(.., found) => (Outcome::OtherLength, Some(found)),
            Self::Over(outcome, found) => (outcome, found),
        };
        *self = Self::Over(outcome, found);
        Ok(outcome)
    }

    /// The header of other elements than expected, once these have arrived.
    pub(super) fn refused(&self) -> Option<Header> {
        match self {
            Self::Over(_, found) => found.as_deref().copied(),
            _ => None,
        }
    }
}

/// What a panic leaves is used on: each state is whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
