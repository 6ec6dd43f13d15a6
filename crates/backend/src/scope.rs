//! Whether the current thread runs queued work, such as a kernel body. Such a thread must not wait
//! for other queued work.

use std::cell::Cell;

thread_local! {
    static IN_BODY: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs queued work. A call that would have to wait then returns an error.
#[inline]
pub fn is_in_body() -> bool {
    IN_BODY.get()
}

/// Marks this thread as running queued work until dropped.
#[derive(Debug)]
pub struct BodyScope {
    was_in_body: bool,
}

impl BodyScope {
    #[inline]
    pub fn enter() -> Self {
        Self { was_in_body: IN_BODY.replace(true) }
    }
}

impl Drop for BodyScope {
    #[inline]
    fn drop(&mut self) {
        IN_BODY.set(self.was_in_body);
    }
}
