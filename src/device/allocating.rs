//! Who may allocate on a device. Threads allocate side by side until one finds the device full.
//! Then this thread allocates *alone* until it has its memory, so that no other thread takes the
//! room that it makes.
//!
//! A thread that allocates waits for nothing but the device. Neither a kernel body waits for its
//! turn, nor what runs while its thread allocates, such as the deleter of other code: it allocates
//! out of turn, and a thread that allocates alone may then have to make room again.

use std::cell::Cell;

use resident_backend::scope;
use resident_backend::sync::{EventCount, Mutex};

thread_local! {
    static IS_ALLOCATING: Cell<bool> = const { Cell::new(false) };
}

/// The threads that allocate on one device.
#[derive(Default)]
pub(super) struct Allocations {
    turns: Mutex<Turns>,
    /// Announced when a thread has allocated.
    ended: EventCount,
}

#[derive(Default)]
struct Turns {
    /// The number of threads that allocate side by side.
    beside: u32,
    /// Whether a thread allocates alone, or waits for those that allocate side by side.
    is_alone: bool,
}

/// A thread's turn, until it drops.
pub(crate) struct Allocating<'a> {
    allocations: &'a Allocations,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Beside other threads, once no thread allocates alone.
    Beside,
    /// Once no other thread allocates.
    Alone,
    /// At once.
    Unordered,
}

impl Allocations {
    pub(super) fn enter(&self, turn: Turn) -> Allocating<'_> {
        if scope::is_in_body() || IS_ALLOCATING.get() {
            return Allocating { allocations: self, turn: Turn::Unordered };
        }
        self.wait_until(|turns| {
            let may_enter = !turns.is_alone;
            match turn {
                _ if !may_enter => {}
                Turn::Alone => turns.is_alone = true,
                Turn::Beside | Turn::Unordered => turns.beside += 1,
            }
            may_enter
        });
        IS_ALLOCATING.set(true);
        let entered = Allocating { allocations: self, turn };
        if turn == Turn::Alone {
            self.wait_until(|turns| turns.beside == 0);
        }
        entered
    }

    fn wait_until(&self, mut is_over: impl FnMut(&mut Turns) -> bool) {
        loop {
            let mut turns = self.turns.lock();
            if is_over(&mut turns) {
                return;
            }
            let seen = self.ended.current();
            drop(turns);
            self.ended.wait_after(seen);
        }
    }
}

impl Drop for Allocating<'_> {
    fn drop(&mut self) {
        let mut turns = self.allocations.turns.lock();
        match self.turn {
            Turn::Unordered => return,
            Turn::Beside => turns.beside -= 1,
            Turn::Alone => turns.is_alone = false,
        }
        drop(turns);
        IS_ALLOCATING.set(false);
        self.allocations.ended.announce();
    }
}
