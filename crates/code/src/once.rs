//! A table of values that are made once per key. If another thread is already making the value, a
//! thread that needs it waits.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values stay as long as the table. If making a value failed, the next caller tries again.
#[derive(Debug)]
pub struct OncePerKey<K, V> {
    slots: Mutex<HashMap<K, Slot<V>>>,
}

/// A value, or `None` before it is made. The lock is held while a thread makes it, from other
/// values that it makes: so it is not counted among the thread's locks.
type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

impl<K: Eq + Hash, V> OncePerKey<K, V> {
    #[allow(clippy::new_without_default, reason = "statics and devices make them by name")]
    pub fn new() -> Self {
        Self { slots: Mutex::new(HashMap::new()) }
    }

    /// The value under a key, made now if there is none. May wait for another thread, so the caller
    /// holds no lock of this crate.
    pub fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        resident_backend::sync::assert_none_held();
        let slot = Arc::clone(lock(&self.slots).entry(key).or_default());
        let mut value = lock(&slot);
        match &*value {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(value.insert(Arc::new(make()?)))),
        }
    }
}

/// A `make` that panicked has stored nothing, so a poisoned lock still guards valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::OncePerKey;

    #[test]
    fn threads_that_need_the_same_value_make_it_once() {
        const THREADS: usize = 8;
        let (table, made, start) = (OncePerKey::new(), AtomicUsize::new(0), Barrier::new(THREADS));
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            // Gives other threads time to request the same value.
            std::thread::yield_now();
            Ok::<_, ()>(42)
        };
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(table.get_or_make("key", make).as_deref(), Ok(&42));
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn a_value_that_could_not_be_made_is_tried_again() {
        let table = OncePerKey::new();
        assert_eq!(table.get_or_make(1, || Err::<u8, _>("no")), Err("no"));
        assert_eq!(table.get_or_make(1, || Ok::<_, &str>(7)).as_deref(), Ok(&7));
        assert_eq!(table.get_or_make(1, || Ok::<_, &str>(8)).as_deref(), Ok(&7), "it is there");
        assert_eq!(table.get_or_make(2, || Ok::<_, &str>(9)).as_deref(), Ok(&9), "another key");
    }

    #[test]
    fn a_make_that_panics_leaves_nothing_behind() {
        let table = OncePerKey::<u8, u8>::new();
        let make = || -> Result<u8, ()> { panic!("in the middle of making") };
        assert!(
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.get_or_make(1, make)))
                .is_err()
        );
        assert_eq!(table.get_or_make(1, || Ok::<_, ()>(7)).as_deref(), Ok(&7));
    }
}
