//! The locks of this crate.
//!
//! All guard plain state that is consistent between statements, so a holder's panic carries no news: nothing here is ever poisoned.
//!
//! In unit tests that [explore] each lock is a point where another thread may go on, as shuttle's scheduler chooses. Locks below the backend's traits
//! are `std`'s own: no thread gives way while it holds one of those, so that they never block there.

use std::sync::{Condvar, MutexGuard, PoisonError};

use spin::RelaxStrategy;
use spin::mutex::{SpinMutex, SpinMutexGuard};

/// A lock for state that is held for a few instructions and never while waiting for anything: taking it is one atomic exchange, giving it back a
/// plain store. Whoever finds it taken lets other threads run, so that a holder that was put to sleep can go on.
#[derive(Debug, Default)]
pub(crate) struct ShortLock<T>(SpinMutex<T, LetOthersRun>);

/// The guard of a [`ShortLock`].
pub(crate) type ShortGuard<'a, T> = SpinMutexGuard<'a, T, LetOthersRun>;

#[derive(Debug)]
pub(crate) struct LetOthersRun;

impl RelaxStrategy for LetOthersRun {
    fn relax() {
        std::thread::yield_now();
    }
}

impl<T> ShortLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> ShortGuard<'_, T> {
        #[cfg(test)]
        if explore::is_on() {
            return explore::take(|| self.0.try_lock());
        }
        self.0.lock()
    }
}

/// `std`'s mutex, without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        if explore::is_on() {
            return explore::take(|| self.try_lock());
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// Where threads wait for a change that some other thread will announce: it counts announcements.
#[derive(Debug, Default)]
pub(crate) struct Turnstile {
    count: Mutex<u64>,
    turned: Condvar,
}

impl Turnstile {
    pub(crate) const fn new() -> Self {
        Self { count: Mutex::new(0), turned: Condvar::new() }
    }

    /// Announcements so far. Ask before giving up whatever keeps the change from being made.
    pub(crate) fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Waits for an announcement after the first `seen`.
    pub(crate) fn wait_past(&self, seen: u64) {
        #[cfg(test)]
        if explore::is_on() {
            return explore::take(|| (*self.count.lock() != seen).then_some(()));
        }
        let mut count = self.count.lock();
        while *count == seen {
            count = self.turned.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn turn(&self) {
        *self.count.lock() += 1;
        self.turned.notify_all();
    }
}

/// Exploring interleavings: all threads of an exploration are shuttle's, which run one at a time on one thread of the system.
#[cfg(test)]
pub(crate) mod explore {
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_on() -> bool {
        ON.get()
    }

    /// Runs `program` under so many interleavings, drawn at random. A deadlock ends it by its number of steps.
    pub(crate) fn interleavings(count: usize, program: impl Fn() + Send + Sync + 'static) {
        shuttle::check_random(
            move || {
                let _on = Scope::enter();
                program();
            },
            count,
        );
    }

    struct Scope;

    impl Scope {
        fn enter() -> Self {
            ON.set(true);
            Self
        }
    }

    impl Drop for Scope {
        fn drop(&mut self) {
            ON.set(false);
        }
    }

    /// Takes a lock as soon as shuttle lets this thread go on while it is free.
    pub(super) fn take<G>(try_lock: impl Fn() -> Option<G>) -> G {
        loop {
            shuttle::thread::yield_now();
            if let Some(guard) = try_lock() {
                return guard;
            }
        }
    }
}
