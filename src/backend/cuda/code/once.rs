//! Values made once for each key, by whoever needs one first; others who need it wait for that.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// One value, once it is made. Locked while it is being made.
type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

/// A table of such values. They stay as long as the table. What could not be made is tried again by
/// the next who needs it.
#[derive(Debug)]
pub(super) struct OncePerKey<K, V> {
    slots: Mutex<Option<HashMap<K, Slot<V>>>>,
}

impl<K: Eq + Hash, V> OncePerKey<K, V> {
    pub(super) const fn new() -> Self {
        Self { slots: Mutex::new(None) }
    }

    /// The value under a key, made if there is none. No lock of this crate is held, since this may
    /// wait for another thread.
    pub(super) fn get_or_make<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        crate::sync::assert_none_held();
        let slot = Arc::clone(lock(&self.slots).get_or_insert_default().entry(key).or_default());
        let mut value = lock(&slot);
        match &*value {
            Some(made) => Ok(Arc::clone(made)),
            None => Ok(Arc::clone(value.insert(Arc::new(make()?)))),
        }
    }

    /// Another value in the place of one that turned out to be of no use, unless somebody has put
    /// another there already; the one that holds then.
    pub(super) fn replace<E>(
        &self,
        key: K,
        useless: &Arc<V>,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        crate::sync::assert_none_held();
        let slot = Arc::clone(lock(&self.slots).get_or_insert_default().entry(key).or_default());
        let mut value = lock(&slot);
        match &*value {
            Some(other) if !Arc::ptr_eq(other, useless) => Ok(Arc::clone(other)),
            _ => Ok(Arc::clone(value.insert(Arc::new(make()?)))),
        }
    }
}

impl<K: Eq + Hash, V> Default for OncePerKey<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// A maker that panicked left nothing half made.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::OncePerKey;

    #[test]
    fn threads_that_need_the_same_at_once_make_it_once() {
        const THREADS: usize = 8;
        let (table, made, start) = (OncePerKey::new(), AtomicUsize::new(0), Barrier::new(THREADS));
        let make = || {
            made.fetch_add(1, Ordering::Relaxed);
            // Others arrive while this is under way.
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
    fn what_could_not_be_made_is_tried_again() {
        let table = OncePerKey::new();
        assert_eq!(table.get_or_make(1, || Err::<u8, _>("no")), Err("no"));
        assert_eq!(table.get_or_make(1, || Ok::<_, &str>(7)).as_deref(), Ok(&7));
        assert_eq!(table.get_or_make(1, || Ok::<_, &str>(8)).as_deref(), Ok(&7), "it is there");
        assert_eq!(
            table.get_or_make(2, || Ok::<_, &str>(9)).as_deref(),
            Ok(&9),
            "under another key"
        );
    }

    #[test]
    fn what_is_of_no_use_is_replaced_once() {
        let table = OncePerKey::new();
        let first = table.get_or_make(1, || Ok::<u8, &str>(7)).expect("made");
        assert_eq!(table.replace(1, &first, || Err("no")), Err("no"));
        assert_eq!(table.replace(1, &first, || Ok::<u8, &str>(8)).as_deref(), Ok(&8));
        assert_eq!(
            table.replace(1, &first, || Ok::<u8, &str>(9)).as_deref(),
            Ok(&8),
            "somebody was faster"
        );
        assert_eq!(table.get_or_make(1, || Ok::<u8, &str>(9)).as_deref(), Ok(&8));
    }

    #[test]
    fn a_maker_that_panics_leaves_nothing_behind() {
        let table = OncePerKey::<u8, u8>::new();
        let make = || -> Result<u8, ()> { panic!("in the middle of making") };
        assert!(
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.get_or_make(1, make)))
                .is_err()
        );
        assert_eq!(table.get_or_make(1, || Ok::<_, ()>(7)).as_deref(), Ok(&7));
    }
}
