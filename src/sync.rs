//! The locks of this crate.
//!
//! All guard plain state that is consistent between statements, so a holder's panic carries no
//! news: nothing here is ever poisoned.
//!
//! Each has a level, and is taken only while every lock that the thread holds is of a lower one: so
//! never two of one level, and no two threads wait for each other. Debug builds check it, and that
//! none is held where a device is waited for ([`assert_none_held`]). DESIGN.md has the table.
//!
//! In unit tests that [explore] each lock is a point where another thread may go on, as shuttle's
//! scheduler chooses. Locks below the backend's traits are `std`'s own: no thread gives way while
//! it holds one of those, so that they never block there.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, MutexGuard, PoisonError};

use spin::RelaxStrategy;
use spin::mutex::{SpinMutex, SpinMutexGuard};

/// Where a lock stands in the order of locks.
pub(crate) trait Level {
    const RANK: u8;
}

/// One array's state.
#[derive(Debug, Default)]
pub(crate) struct ArrayLevel;

/// What a device knows of its streams and of memory to be freed.
#[derive(Debug, Default)]
pub(crate) struct DeviceLevel;

/// A stream's events and what it has waited for.
#[derive(Debug, Default)]
pub(crate) struct StreamLevel;

/// Locks under which nothing else is locked.
#[derive(Debug, Default)]
pub(crate) struct LeafLevel;

impl Level for ArrayLevel {
    const RANK: u8 = 1;
}

impl Level for DeviceLevel {
    const RANK: u8 = 2;
}

impl Level for StreamLevel {
    const RANK: u8 = 3;
}

impl Level for LeafLevel {
    const RANK: u8 = 4;
}

/// A lock for state that is held for a few instructions and never while waiting for anything:
/// taking it is one atomic exchange, giving it back a plain store. Whoever finds it taken lets
/// other threads run, so that a holder that was put to sleep can go on.
#[derive(Debug, Default)]
pub(crate) struct ShortLock<T, L = LeafLevel> {
    lock: SpinMutex<T, LetOthersRun>,
    level: PhantomData<L>,
}

/// The guard of a [`ShortLock`].
pub(crate) type ShortGuard<'a, T> = Held<SpinMutexGuard<'a, T, LetOthersRun>>;

#[derive(Debug)]
pub(crate) struct LetOthersRun;

impl RelaxStrategy for LetOthersRun {
    fn relax() {
        std::thread::yield_now();
    }
}

impl<T, L: Level> ShortLock<T, L> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: SpinMutex::new(value), level: PhantomData }
    }

    #[inline]
    pub(crate) fn lock(&self) -> ShortGuard<'_, T> {
        #[cfg(test)]
        if explore::is_on() {
            return Held::unchecked(explore::take(|| self.lock.try_lock()));
        }
        Held::taking(L::RANK, || self.lock.lock())
    }
}

/// `std`'s mutex, without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T, L = LeafLevel> {
    lock: std::sync::Mutex<T>,
    level: PhantomData<L>,
}

impl<T, L: Level> Mutex<T, L> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: std::sync::Mutex::new(value), level: PhantomData }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Held<MutexGuard<'_, T>> {
        #[cfg(test)]
        if explore::is_on() {
            return Held::unchecked(explore::take(|| self.try_lock()));
        }
        Held::taking(L::RANK, || self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[cfg(test)]
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.lock.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A guard; in debug builds it is entered among those that the thread holds.
#[derive(Debug)]
pub(crate) struct Held<G> {
    guard: G,
    #[cfg(debug_assertions)]
    rank: u8,
}

#[cfg(debug_assertions)]
thread_local! {
    /// How many locks of each rank this thread holds; rank 0 stands for guards that are not
    /// checked.
    static HELD: std::cell::Cell<[u32; 5]> = const { std::cell::Cell::new([0; 5]) };
}

impl<G> Held<G> {
    #[inline]
    #[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds check"))]
    fn taking(rank: u8, take: impl FnOnce() -> G) -> Self {
        #[cfg(debug_assertions)]
        enter(rank);
        Self {
            guard: take(),
            #[cfg(debug_assertions)]
            rank,
        }
    }

    /// A guard among threads that share one thread of the system.
    #[cfg(test)]
    fn unchecked(guard: G) -> Self {
        Self {
            guard,
            #[cfg(debug_assertions)]
            rank: 0,
        }
    }
}

#[cfg(debug_assertions)]
fn enter(rank: u8) {
    // A thread that is being torn down is not checked.
    let _ = HELD.try_with(|held| {
        let mut counts = held.get();
        let above = counts[usize::from(rank)..].iter().sum::<u32>();
        assert!(above == 0, "a lock of rank {rank} is taken while {counts:?} are held, by rank: DESIGN.md, \"Locks\"");
        counts[usize::from(rank)] += 1;
        held.set(counts);
    });
}

#[cfg(debug_assertions)]
impl<G> Drop for Held<G> {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| {
            let mut counts = held.get();
            counts[usize::from(self.rank)] = counts[usize::from(self.rank)].saturating_sub(1);
            held.set(counts);
        });
    }
}

/// Debug builds fail where a device is about to be waited for under a lock: what is waited for may
/// need it.
#[inline]
pub(crate) fn assert_none_held() {
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| {
        let counts = held.get();
        assert!(
            counts[1..].iter().sum::<u32>() == 0,
            "{counts:?} locks are held, by rank, while a device is waited for"
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
    /// What this thread has let go of under a lock.
    static DEFERRED_DROPS: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Lets go of something whose drop may run code of the user's (the last handle of a stream or
/// device drops what is queued there): it is dropped by [`run_deferred_drops`], with no lock held.
/// A thread that is being torn down drops it at once.
pub(crate) fn defer_drop(value: impl Any) {
    let mut value: Option<Box<dyn Any>> = Some(Box::new(value));
    let _ = DEFERRED_DROPS.try_with(|kept| kept.borrow_mut().extend(value.take()));
}

/// Drops what was let go of under a lock.
pub(crate) fn run_deferred_drops() {
    let next = || DEFERRED_DROPS.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
    while let Some(value) = next() {
        assert_none_held();
        drop(value);
    }
}

/// Where threads wait for a change that some other thread will announce: it counts announcements.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    count: std::sync::Mutex<u64>,
    turned: Condvar,
}

impl EventCount {
    pub(crate) const fn new() -> Self {
        Self { count: std::sync::Mutex::new(0), turned: Condvar::new() }
    }

    /// Announcements so far. Ask before giving up whatever keeps the change from being made.
    pub(crate) fn count(&self) -> u64 {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an announcement after the first `seen`.
    pub(crate) fn wait_past(&self, seen: u64) {
        assert_none_held();
        #[cfg(test)]
        if explore::is_on() {
            return explore::take(|| (self.count() != seen).then_some(()));
        }
        let mut count = self.lock();
        while *count == seen {
            count = self.turned.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn turn(&self) {
        *self.lock() += 1;
        self.turned.notify_all();
    }
}

/// Exploring interleavings: all threads of an exploration are shuttle's, which run one at a time on
/// one thread of the system.
#[cfg(test)]
pub(crate) mod explore {
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_on() -> bool {
        ON.get()
    }

    /// Runs `program` under so many interleavings, drawn at random. A deadlock ends it by its
    /// number of steps.
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

#[cfg(test)]
mod tests {
    use super::{ArrayLevel, LeafLevel, Mutex, ShortLock, StreamLevel, assert_none_held};

    #[test]
    fn locks_are_taken_upwards() {
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
    fn two_arrays_are_never_locked_at_once() {
        let (one, other) = (ShortLock::<_, ArrayLevel>::new(1), ShortLock::<_, ArrayLevel>::new(2));
        let _one = one.lock();
        let _other = other.lock();
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "while a device is waited for")]
    fn nothing_is_waited_for_under_a_lock() {
        let lock = Mutex::<_, LeafLevel>::new(());
        let _held = lock.lock();
        assert_none_held();
    }
}
