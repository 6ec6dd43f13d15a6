//! Memory that MPI reads or writes, and the request that says until when.
//!
//! Both have one owner, a [`Transfer`]. While the request is active, the list of transfers of the
//! world owns it too. So whoever else owns it may drop or forget it: the memory stays until MPI is
//! done with it, or forever.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::ptr;
use std::rc::Rc;

use crate::call::{Outcome, Request, Session};
use crate::error::{Error, Result};

/// Memory `M`, and the operation that uses it.
pub(crate) struct Transfer<M, O = Request> {
    /// Accessible only while the transfer is not active.
    memory: RefCell<M>,
    operation: RefCell<O>,
    state: Cell<State>,
    /// Why the state is unknown.
    failure: RefCell<Option<Error>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// MPI does not use the memory.
    Complete(Outcome),
    /// MPI uses the memory.
    Active,
    /// A test of the request failed, so that nobody knows.
    Unknown,
}

/// What MPI does with the memory of a transfer.
pub(crate) trait Operation: 'static {
    /// Whether it is over. Lets MPI progress.
    ///
    /// # Errors
    ///
    /// It is not known whether MPI still uses the memory.
    fn test(&mut self, session: &Session) -> Result<Outcome>;
}

impl Operation for Request {
    fn test(&mut self, session: &Session) -> Result<Outcome> {
        Self::test(self, session)
    }
}

/// A transfer, whatever its memory is.
pub(crate) trait Tested {
    /// Asks whether it is complete.
    fn test(&self, session: &Session) -> Result<Outcome>;
    /// Whether a test of it failed.
    fn is_unknown(&self) -> bool;
}

/// All that are active, those included of which the owners are gone.
#[derive(Default)]
pub(crate) struct Transfers {
    list: RefCell<Vec<Rc<dyn Tested>>>,
    /// With how many they are tested, whoever owns them.
    tested_at: Cell<usize>,
}

impl<M: 'static, O: Operation> Transfer<M, O> {
    pub(crate) fn new(memory: M, operation: O) -> Rc<Self> {
        Rc::new(Self {
            memory: RefCell::new(memory),
            operation: RefCell::new(operation),
            state: Cell::new(State::Complete(Outcome::Done)),
            failure: RefCell::new(None),
        })
    }

    /// The memory; `None` while MPI may use it.
    pub(crate) fn memory(&self) -> Option<RefMut<'_, M>> {
        match self.state.get() {
            State::Complete(_) => Some(self.memory.borrow_mut()),
            State::Active | State::Unknown => None,
        }
    }

    /// What is done, or was done, with the memory.
    pub(crate) fn operation(&self) -> Ref<'_, O> {
        self.operation.borrow()
    }

    /// Starts its operation by `begin`, which fails if none was started. The transfer must be
    /// complete.
    ///
    /// `begin` may rely on this: until the operation is over, memory and operation live and are not
    /// moved, and no code of this crate accesses the memory, since [`memory`](Self::memory) gives
    /// no access.
    pub(crate) fn start(
        self: &Rc<Self>,
        transfers: &Transfers,
        begin: impl FnOnce(&mut M, &mut O) -> Result<()>,
    ) -> Result<()> {
        assert!(
            matches!(self.state.get(), State::Complete(_)),
            "a transfer starts after it was complete"
        );
        transfers.list.borrow_mut().push(Rc::clone(self) as _);
        // If `begin` unwinds, it may have begun.
        self.state.set(State::Unknown);
        match begin(&mut self.memory.borrow_mut(), &mut self.operation.borrow_mut()) {
            Ok(()) => {
                self.state.set(State::Active);
                Ok(())
            }
            Err(error) => {
                self.state.set(State::Complete(Outcome::Done));
                transfers.remove(&**self);
                Err(error)
            }
        }
    }
}

impl<M, O: Operation> Tested for Transfer<M, O> {
    fn test(&self, session: &Session) -> Result<Outcome> {
        if let State::Complete(outcome) = self.state.get() {
            return Ok(outcome);
        }
        if let Some(error) = &*self.failure.borrow() {
            return Err(error.clone());
        }
        match self.operation.borrow_mut().test(session) {
            Ok(Outcome::Pending) => Ok(Outcome::Pending),
            Ok(outcome) => {
                self.state.set(State::Complete(outcome));
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

impl Transfers {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Whether a transfer is complete, and how.
    pub(crate) fn poll(&self, transfer: &dyn Tested, session: &Session) -> Result<Outcome> {
        let outcome = transfer.test(session)?;
        if outcome != Outcome::Pending {
            self.remove(transfer);
        }
        Ok(outcome)
    }

    /// Tests all, once they are twice as many as the last time, so that those of which the owners
    /// are gone do not accumulate.
    pub(crate) fn release_complete(&self, session: &Session) {
        const LEAST: usize = 32;
        if self.len() >= self.tested_at.get().max(LEAST) {
            self.poll_all(session);
            self.tested_at.set(2 * self.len());
        }
    }

    /// Tests all, and returns how many are still active.
    pub(crate) fn poll_all(&self, session: &Session) -> usize {
        let mut complete = Vec::new();
        // Those of which a test failed are not asked again, and keep their memory.
        self.list.borrow_mut().retain(|transfer| {
            let is_over = !transfer.is_unknown()
                && transfer.test(session).is_ok_and(|outcome| outcome != Outcome::Pending);
            if is_over {
                complete.push(Rc::clone(transfer));
            }
            !is_over
        });
        // Memory is freed while the list is not borrowed.
        drop(complete);
        self.list.borrow().iter().filter(|transfer| !transfer.is_unknown()).count()
    }

    fn remove(&self, transfer: &dyn Tested) {
        let mut transfers = self.list.borrow_mut();
        // The latest are the likeliest to be over.
        let index = transfers.iter().rposition(|other| ptr::addr_eq(Rc::as_ptr(other), transfer));
        if let Some(index) = index {
            transfers.swap_remove(index);
        }
    }
}

impl Drop for Transfers {
    /// MPI may still use the memory of those that are left.
    fn drop(&mut self) {
        self.list.get_mut().drain(..).for_each(std::mem::forget);
    }
}
