//! Memory that MPI reads or writes, and the request that says until when.
//!
//! Both have one owner, a [`Flight`]. While the request is active, the list of flights of the world
//! owns it too. So whoever else owns it may drop or forget it: the memory stays until MPI is done
//! with it, or forever.

use std::cell::{Cell, RefCell, RefMut};
use std::ptr;
use std::rc::Rc;

use crate::call::{Outcome, Request, Session};
use crate::error::{Error, Result};

/// Memory `M`, and the request of the operation that uses it.
pub(crate) struct Flight<M> {
    /// Accessible only while the flight is not in the air.
    memory: RefCell<M>,
    request: RefCell<Request>,
    state: Cell<State>,
    /// Why the state is unknown.
    failure: RefCell<Option<Error>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// MPI does not use the memory.
    Landed(Outcome),
    /// MPI uses the memory.
    InTheAir,
    /// A test of the request failed, so that nobody knows.
    Unknown,
}

/// A flight, whatever its memory is.
pub(crate) trait Tested {
    /// Asks whether it has landed.
    fn test(&self, session: &Session) -> Result<Outcome>;
    /// Whether a test of it failed.
    fn is_unknown(&self) -> bool;
}

/// All that are in the air, those included of which the owners are gone.
#[derive(Default)]
pub(crate) struct Flights(RefCell<Vec<Rc<dyn Tested>>>);

impl<M: 'static> Flight<M> {
    pub(crate) fn new(memory: M, request: Request) -> Rc<Self> {
        Rc::new(Self {
            memory: RefCell::new(memory),
            request: RefCell::new(request),
            state: Cell::new(State::Landed(Outcome::Done)),
            failure: RefCell::new(None),
        })
    }

    /// The memory; `None` while MPI may use it.
    pub(crate) fn memory(&self) -> Option<RefMut<'_, M>> {
        match self.state.get() {
            State::Landed(_) => Some(self.memory.borrow_mut()),
            State::InTheAir | State::Unknown => None,
        }
    }

    /// Starts its request by `begin`, which fails if none was started. The flight must have landed.
    ///
    /// `begin` may rely on this: until the request is over the memory lives and is not moved, and
    /// no code of this crate accesses it, since [`memory`](Self::memory) gives no access.
    pub(crate) fn start(
        self: &Rc<Self>,
        flights: &Flights,
        begin: impl FnOnce(&mut M, &mut Request) -> Result<()>,
    ) -> Result<()> {
        assert!(matches!(self.state.get(), State::Landed(_)), "a flight starts after it landed");
        let mut in_the_air = flights.0.borrow_mut();
        in_the_air.push(Rc::clone(self) as _);
        // If `begin` unwinds, it may have begun.
        self.state.set(State::Unknown);
        match begin(&mut self.memory.borrow_mut(), &mut self.request.borrow_mut()) {
            Ok(()) => {
                self.state.set(State::InTheAir);
                Ok(())
            }
            Err(error) => {
                self.state.set(State::Landed(Outcome::Done));
                in_the_air.pop();
                Err(error)
            }
        }
    }
}

impl<M> Tested for Flight<M> {
    fn test(&self, session: &Session) -> Result<Outcome> {
        if let State::Landed(outcome) = self.state.get() {
            return Ok(outcome);
        }
        if let Some(error) = &*self.failure.borrow() {
            return Err(error.clone());
        }
        match self.request.borrow_mut().test(session) {
            Ok(Outcome::Pending) => Ok(Outcome::Pending),
            Ok(outcome) => {
                self.state.set(State::Landed(outcome));
                Ok(outcome)
            }
            Err(error) => {
                self.state.set(State::Unknown);
                *self.failure.borrow_mut() = Some(error.clone());
                Err(error)
            }
        }
    }

    fn is_unknown(&self) -> bool {
        self.state.get() == State::Unknown
    }
}

impl Flights {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Whether a flight has landed, and how.
    pub(crate) fn poll(&self, flight: &dyn Tested, session: &Session) -> Result<Outcome> {
        let outcome = flight.test(session)?;
        if outcome != Outcome::Pending {
            self.remove(flight);
        }
        Ok(outcome)
    }

    /// Tests all, and returns how many are still in the air.
    pub(crate) fn poll_all(&self, session: &Session) -> usize {
        let mut landed = Vec::new();
        // Those of which a test failed are not asked again, and keep their memory.
        self.0.borrow_mut().retain(|flight| {
            let is_over = !flight.is_unknown()
                && flight.test(session).is_ok_and(|outcome| outcome != Outcome::Pending);
            if is_over {
                landed.push(Rc::clone(flight));
            }
            !is_over
        });
        // Memory is freed while the list is not borrowed.
        drop(landed);
        self.0.borrow().iter().filter(|flight| !flight.is_unknown()).count()
    }

    fn remove(&self, flight: &dyn Tested) {
        let mut flights = self.0.borrow_mut();
        // The latest are the likeliest to be over.
        let index = flights.iter().rposition(|other| ptr::addr_eq(Rc::as_ptr(other), flight));
        if let Some(index) = index {
            flights.swap_remove(index);
        }
    }
}

impl Drop for Flights {
    /// MPI may still use the memory of those that are left.
    fn drop(&mut self) {
        self.0.get_mut().drain(..).for_each(std::mem::forget);
    }
}
