//! Whether this thread runs queued work, a kernel body above all: then nothing may be waited for.

use std::cell::Cell;

thread_local! {
    static IN_BODY: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is running queued work: a call that would have to wait is then refused.
pub(crate) fn in_body() -> bool {
    IN_BODY.get()
}

/// Marks this thread as running queued work until dropped.
#[derive(Debug)]
pub(crate) struct BodyScope {
    before: bool,
}

impl BodyScope {
    /// Marks the thread.
    pub(crate) fn enter() -> Self {
        Self { before: IN_BODY.replace(true) }
    }
}

impl Drop for BodyScope {
    fn drop(&mut self) {
        IN_BODY.set(self.before);
    }
}
