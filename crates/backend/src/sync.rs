//! The locks of this crate, deferred drops, and a wait for changes of state ([`EventCount`]).
//!
//! Locks are not poisoned by panics: the state that they guard is consistent after every statement.
//!
//! Each lock has a level. A thread takes a lock only while all locks that it holds have lower
//! levels. So it never holds two locks of one level, and threads cannot deadlock. Debug builds
//! check this, and that no lock is held while a thread waits for a device or runs user code
//! ([`assert_none_held`]). The order of a backend's own locks ([`BackendLock`]) is the backend's.
//! DESIGN.md, "Locks", gives the order of the levels.
//!
//! In debug builds a test can [explore] interleavings: a scheduler of its own, such as shuttle's,
//! switches threads at each lock. It cannot switch at the backends' locks, which are `std`'s. That
//! suffices, because in these tests no thread waits for such a lock.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::TryLockError;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Duration;

use spin::RelaxStrategy;
use spin::mutex::{SpinMutex, SpinMutexGuard};

pub use crate::fork::ForkMark;
pub use crate::thread_list::ThreadList;

/// The level of a lock: locks are taken in ascending order of ranks.
pub trait Level {
    const RANK: u8;
}

/// One array's state.
#[derive(Debug, Default)]
pub struct ArrayLevel;

/// A device's streams and deferred frees.
#[derive(Debug, Default)]
pub struct DeviceLevel;

/// A stream's events and waits.
#[derive(Debug, Default)]
pub struct StreamLevel;

/// What a thread has recorded for captures.
#[derive(Debug, Default)]
pub struct AuditLevel;

/// Locks whose holders take no other lock.
#[derive(Debug, Default)]
pub struct LeafLevel;

impl Level for ArrayLevel {
    const RANK: u8 = 1;
}

impl Level for DeviceLevel {
    const RANK: u8 = 2;
}

impl Level for StreamLevel {
    const RANK: u8 = 3;
}

impl Level for AuditLevel {
    const RANK: u8 = 5;
}

impl Level for LeafLevel {
    const RANK: u8 = 6;
}

/// The rank of the backends' locks.
const BACKEND_RANK: u8 = 4;

/// A spin lock for state that a thread locks for a few instructions, and never while the thread
/// waits. Taking it is one atomic exchange, releasing it a plain store. A thread that finds the
/// lock taken yields its time slice, so that a preempted holder can continue.
#[derive(Debug, Default)]
pub struct ShortLock<T, L = LeafLevel> {
    lock: SpinMutex<T, YieldBackoff>,
    level: PhantomData<L>,
}

/// The guard of a [`ShortLock`].
pub type ShortGuard<'a, T> = Held<SpinMutexGuard<'a, T, YieldBackoff>>;

/// Yields the processor to other threads between attempts to take a lock.
#[derive(Debug)]
pub struct YieldBackoff;

impl RelaxStrategy for YieldBackoff {
    fn relax() {
        std::thread::yield_now();
    }
}

impl<T, L: Level> ShortLock<T, L> {
    pub const fn new(value: T) -> Self {
        Self { lock: SpinMutex::new(value), level: PhantomData }
    }

    #[inline]
    pub fn lock(&self) -> ShortGuard<'_, T> {
        #[cfg(debug_assertions)]
        if explore::is_on() {
            return Held::unchecked(explore::retry(|| self.lock.try_lock()));
        }
        Held::acquire(L::RANK, || self.lock.lock())
    }
}

/// `std`'s mutex without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T, L = LeafLevel> {
    lock: std::sync::Mutex<T>,
    level: PhantomData<L>,
}

impl<T, L: Level> Mutex<T, L> {
    pub const fn new(value: T) -> Self {
        Self { lock: std::sync::Mutex::new(value), level: PhantomData }
    }

    #[inline]
    pub fn lock(&self) -> Held<MutexGuard<'_, T>> {
        #[cfg(debug_assertions)]
        if explore::is_on() {
            return Held::unchecked(explore::retry(|| self.try_lock()));
        }
        Held::acquire(L::RANK, || self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[cfg(debug_assertions)]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.lock.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A lock of a backend: `std`'s mutex without poisoning. A thread may hold several, in an order
/// that the backend keeps; none is held while user code runs.
#[derive(Debug, Default)]
pub struct BackendLock<T>(std::sync::Mutex<T>);

/// The guard of a [`BackendLock`].
pub type BackendGuard<'a, T> = Held<MutexGuard<'a, T>>;

impl<T> BackendLock<T> {
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[inline]
    pub fn lock(&self) -> BackendGuard<'_, T> {
        Self::held(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The guard, if no thread holds the lock.
    pub fn try_lock(&self) -> Option<BackendGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(Self::held(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Self::held(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn held(guard: MutexGuard<'_, T>) -> BackendGuard<'_, T> {
        Held { guard, _counted: Counted::new(BACKEND_RANK) }
    }
}

impl<'a, T> BackendGuard<'a, T> {
    /// Sleeps until the condition is announced, with the lock released.
    pub fn wait(self, announced: &Condvar) -> Self {
        let guard = announced.wait(self.guard).unwrap_or_else(PoisonError::into_inner);
        Self { guard, ..self }
    }

    /// As [`wait`](Self::wait), while `is_to_wait` holds, and no longer than `time_max`.
    pub fn wait_while_for(
        self,
        announced: &Condvar,
        time_max: Duration,
        is_to_wait: impl FnMut(&mut T) -> bool,
    ) -> Self {
        let waited = announced.wait_timeout_while(self.guard, time_max, is_to_wait);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Self { guard, ..self }
    }
}

/// A guard. In debug builds, the thread includes this guard in its count of held locks.
#[derive(Debug)]
pub struct Held<G> {
    guard: G,
    _counted: Counted,
}

/// One of the locks that this thread holds.
#[derive(Debug)]
struct Counted {
    #[cfg(debug_assertions)]
    rank: u8,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The number of locks of each rank that this thread holds. Rank 0 is for unchecked guards.
    static HELD: std::cell::Cell<[u32; 7]> = const { std::cell::Cell::new([0; 7]) };
}

impl<G> Held<G> {
    #[inline]
    fn acquire(rank: u8, lock: impl FnOnce() -> G) -> Self {
        check_order(rank);
        Self { guard: lock(), _counted: Counted::new(rank) }
    }

    /// A guard in a test whose threads all run on one system thread.
    #[cfg(debug_assertions)]
    fn unchecked(guard: G) -> Self {
        Self { guard, _counted: Counted::new(0) }
    }
}

/// Checks that all locks that this thread holds have lower ranks.
#[inline]
#[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds check"))]
fn check_order(rank: u8) {
    // A thread whose thread-locals are being destroyed is not checked.
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| {
        let counts = held.get();
        let above = counts[usize::from(rank)..].iter().sum::<u32>();
        assert!(
            above == 0,
            "a lock of rank {rank} is taken while {counts:?} are held, by rank: see \"Locks\" in \
             DESIGN.md"
        );
    });
}

impl Counted {
    #[inline]
    #[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds check"))]
    fn new(rank: u8) -> Self {
        #[cfg(debug_assertions)]
        let _ = HELD.try_with(|held| {
            let mut counts = held.get();
            counts[usize::from(rank)] += 1;
            held.set(counts);
        });
        Self {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Counted {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| {
            let mut counts = held.get();
            counts[usize::from(self.rank)] = counts[usize::from(self.rank)].saturating_sub(1);
            held.set(counts);
        });
    }
}

/// Panics in debug builds if this thread holds a lock. Called before user code runs, and before a
/// device is waited for, whose work may need such a lock.
#[inline]
pub fn assert_none_held() {
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| {
        let counts = held.get();
        assert!(
            counts[1..].iter().sum::<u32>() == 0,
            "{counts:?} locks are held, by rank, while user code runs or a device is waited for"
        );
    });
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

thread_local! {
    /// Values to drop once this thread holds no lock.
    static DEFERRED_DROPS: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Defers a drop that may run user code, since the last handle of a stream or device drops the work
/// queued there. [`run_deferred_drops`] drops the value with no lock held. If the thread's
/// thread-locals are being destroyed, drops the value at once.
pub fn defer_drop(value: impl Any) {
    let mut value: Option<Box<dyn Any>> = Some(Box::new(value));
    let _ = DEFERRED_DROPS.try_with(|kept| kept.borrow_mut().extend(value.take()));
}

/// Drops the values that this thread deferred.
pub fn run_deferred_drops() {
    drop_deferred_after(0);
}

/// Calls a function that drops a value, and then drops what that deferred, with no lock held. For
/// threads that make no calls of the library, which would run deferred drops.
pub fn drop_with_deferred(drop_value: impl FnOnce()) {
    let before = DEFERRED_DROPS.try_with(|kept| kept.borrow().len()).unwrap_or(0);
    drop_value();
    drop_deferred_after(before);
}

/// Drops the values that this thread deferred after so many others.
fn drop_deferred_after(before: usize) {
    let is_later = |kept: &Vec<Box<dyn Any>>| kept.len() > before;
    let pop = |kept: &mut Vec<Box<dyn Any>>| if is_later(kept) { kept.pop() } else { None };
    let next = || DEFERRED_DROPS.try_with(|kept| pop(&mut kept.borrow_mut())).ok().flatten();
    while let Some(value) = next() {
        assert_none_held();
        drop(value);
    }
}

/// An event count: threads wait for the next event that another thread announces.
#[derive(Debug, Default)]
pub struct EventCount {
    count: std::sync::Mutex<u64>,
    announced: Condvar,
}

impl EventCount {
    pub const fn new() -> Self {
        Self { count: std::sync::Mutex::new(0), announced: Condvar::new() }
    }

    /// The number of events so far. Read the number while you hold the lock that prevents the
    /// awaited change, and then release the lock.
    pub fn current(&self) -> u64 {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there have been more than `seen` events.
    pub fn wait_after(&self, seen: u64) {
        assert_none_held();
        #[cfg(debug_assertions)]
        if explore::is_on() {
            return explore::retry(|| (self.current() != seen).then_some(()));
        }
        let mut count = self.lock();
        while *count == seen {
            count = self.announced.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`wait_after`](Self::wait_after), for at most this time.
    pub fn wait_after_at_most(&self, seen: u64, time_max: Duration) {
        assert_none_held();
        let is_same = |count: &mut u64| *count == seen;
        let waited = self.announced.wait_timeout_while(self.lock(), time_max, is_same);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Announces an event.
    pub fn announce(&self) {
        *self.lock() += 1;
        self.announced.notify_all();
    }
}

/// Lets a test's scheduler, whose threads run one at a time on one system thread, switch threads.
#[cfg(debug_assertions)]
pub mod explore {
    use std::cell::Cell;

    thread_local! {
        static SWITCH: Cell<Option<fn()>> = const { Cell::new(None) };
    }

    pub(super) fn is_on() -> bool {
        SWITCH.get().is_some()
    }

    /// Runs `program`, in which locks call `switch` before each attempt to take them.
    pub fn with_switch(switch: fn(), program: impl FnOnce()) {
        let _scope = Scope::enter(switch);
        program();
    }

    struct Scope;

    impl Scope {
        fn enter(switch: fn()) -> Self {
            SWITCH.set(Some(switch));
            Self
        }
    }

    impl Drop for Scope {
        fn drop(&mut self) {
            SWITCH.set(None);
        }
    }

    /// Calls `attempt` until it succeeds, and lets the scheduler switch threads in between.
    pub(super) fn retry<G>(attempt: impl Fn() -> Option<G>) -> G {
        loop {
            if let Some(switch) = SWITCH.get() {
                switch();
            }
            if let Some(value) = attempt() {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ArrayLevel, BackendLock, LeafLevel, Mutex, ShortLock, StreamLevel, assert_none_held,
    };

    #[test]
    fn locks_are_taken_in_the_order_of_levels() {
        let (array, stream, leaf) = (
            ShortLock::<_, ArrayLevel>::new(1),
            Mutex::<_, StreamLevel>::new(2),
            Mutex::<_, LeafLevel>::new(3),
        );
        let sum = *array.lock() + *stream.lock() + *leaf.lock();
        let (array, stream, leaf) = (array.lock(), stream.lock(), leaf.lock());
        assert_eq!(*array + *stream + *leaf, sum);
        drop((leaf, stream, array));
        assert_none_held();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a lock of rank 1 is taken while")]
    fn two_locks_of_one_level_are_refused() {
        let (one, other) = (ShortLock::<_, ArrayLevel>::new(1), ShortLock::<_, ArrayLevel>::new(2));
        let _one = one.lock();
        let _other = other.lock();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "while user code runs or a device is waited for")]
    fn waiting_under_a_lock_is_refused() {
        let lock = Mutex::<_, LeafLevel>::new(());
        let _held = lock.lock();
        assert_none_held();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "while user code runs or a device is waited for")]
    fn a_backends_lock_counts() {
        let lock = BackendLock::new(());
        let _held = lock.lock();
        assert_none_held();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a lock of rank 1 is taken while")]
    fn an_array_is_not_locked_under_a_backends_lock() {
        let locks = [BackendLock::new(()), BackendLock::new(())];
        let array = ShortLock::<_, ArrayLevel>::new(1);
        // A backend orders its own locks.
        let _held = locks.each_ref().map(BackendLock::lock);
        let _array = array.lock();
    }
}
