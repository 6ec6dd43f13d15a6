//! Gates: a kernel waits at a gate until a test has queued other work after the kernel. A kernel
//! gets the gate's number as an argument, so that any kind of body can find the gate.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

#[derive(Default)]
struct State {
    is_open: Mutex<bool>,
    opened: Condvar,
}

static GATES: Mutex<Option<HashMap<u64, Arc<State>>>> = Mutex::new(None);

/// A gate, which is closed until it is opened or dropped. Dropping opens it, so that a failing test
/// does not hang.
pub(crate) struct Gate {
    number: u64,
    state: Arc<State>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (number, state) = (NEXT.fetch_add(1, Ordering::Relaxed), Arc::default());
        lock().get_or_insert_default().insert(number, Arc::clone(&state));
        Self { number, state }
    }

    /// The number that a kernel gets as its argument.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn open(&self) {
        *self.state.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.opened.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
        lock().as_mut().map(|gates| gates.remove(&self.number));
    }
}

/// Waits until a gate is open. A gate that has been dropped is open.
pub(crate) fn pass(number: u64) {
    let Some(state) = lock().as_ref().and_then(|gates| gates.get(&number).cloned()) else { return };
    let mut is_open = state.is_open.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_open {
        is_open = state.opened.wait(is_open).unwrap_or_else(PoisonError::into_inner);
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<HashMap<u64, Arc<State>>>> {
    GATES.lock().unwrap_or_else(PoisonError::into_inner)
}
