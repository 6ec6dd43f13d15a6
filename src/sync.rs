//! The locks of this crate.
//!
//! All guard plain state that is consistent between statements, so a holder's panic carries no news: nothing here is ever poisoned.

use std::sync::{MutexGuard, PoisonError};

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
        self.0.lock()
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
        let mut count = self.count.lock();
        while *count == seen {
            count = self.turned.wait(count);
        }
    }

    pub(crate) fn turn(&self) {
        *self.count.lock() += 1;
        self.turned.notify_all();
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `std`'s condition variable, without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
