//! The registry of the live arrays of the process, and their names.
//!
//! The inventory lists these arrays, messages name them, and eviction selects from them.
//!
//! Most arrays are made and dropped without a name, often in turns. So the arrays are in lists in
//! which the entry freed last is used first, one list for each of a few threads, and only names are
//! in a map.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use dashmap::DashMap;
use resident_documents::quoted;

/// The name of an array. Its `Display` is the name as printed in messages: if the program gave the
/// name, in quotation marks, and what a terminal would obey is escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArrayName {
    /// The program gave it.
    Given(Arc<str>),
    /// The library made the name from type, shape and call site, when a name was first needed.
    Automatic(Arc<str>),
}

impl ArrayName {
    /// The name without quotes.
    pub(crate) fn text(&self) -> &Arc<str> {
        match self {
            Self::Given(text) | Self::Automatic(text) => text,
        }
    }
}

impl fmt::Display for ArrayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(text) => f.write_str(&quoted(text)),
            Self::Automatic(text) => f.write_str(text),
        }
    }
}

/// The number of lists. Threads that make arrays use them in turn.
const LISTS: usize = 32;

/// Entries are allocated in blocks of this number, so that a list grows without moving entries.
const BLOCK: usize = 256;

/// The place of a value of the registry, which identifies the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The number of values registered before; never used again.
    number: u64,
    list: u32,
    entry: u32,
}

impl Place {
    /// The number of values registered before; never used again.
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

/// All live values of `A`.
pub(crate) struct LiveArrays<A> {
    lists: [List<A>; LISTS],
    names: LazyLock<DashMap<u64, Named, BuildNumberHasher>>,
    next_number: AtomicU64,
}

/// A value's name, and what was made of it.
struct Named {
    name: ArrayName,
    /// The last label that was made, with its operation: programs repeat operations.
    label: Option<Box<(&'static str, Arc<str>)>>,
}

impl Named {
    fn new(name: ArrayName) -> Self {
        Self { name, label: None }
    }

    fn label(&mut self, operation: &'static str) -> Arc<str> {
        if let Some((known, label)) = self.label.as_deref()
            && *known == operation
        {
            return Arc::clone(label);
        }
        let label: Arc<str> = format!("{operation} {}", self.name).into();
        self.label = Some(Box::new((operation, Arc::clone(&label))));
        label
    }
}

/// One list. Lists do not share cache lines, so that threads do not slow each other down.
#[repr(align(64))]
struct List<A> {
    entries: Mutex<Entries<A>>,
    /// The number of live values. It is changed under the lock, and read without.
    live: AtomicUsize,
}

struct Entries<A> {
    blocks: Vec<Box<[Entry<A>]>>,
    /// The first free entry.
    free: u32,
    /// The number of entries in all blocks.
    len: u32,
}

enum Entry<A> {
    Free {
        /// The next free entry.
        next: u32,
    },
    Live {
        array: Weak<A>,
        number: u64,
        is_named: bool,
    },
}

impl<A> Entries<A> {
    const EMPTY: Self = Self { blocks: Vec::new(), free: 0, len: 0 };

    fn get_mut(&mut self, entry: u32) -> Option<&mut Entry<A>> {
        self.blocks.get_mut(entry as usize / BLOCK)?.get_mut(entry as usize % BLOCK)
    }

    /// Whether the value is live, and if so its flag for a name.
    fn find_mut(&mut self, place: Place) -> Option<&mut bool> {
        match self.get_mut(place.entry)? {
            Entry::Live { number, is_named, .. } if *number == place.number => Some(is_named),
            _ => None,
        }
    }

    /// The first free entry; allocates a block if there is none.
    fn first_free(&mut self) -> u32 {
        if self.free == self.len {
            let next = self.len + 1..=self.len + BLOCK as u32;
            self.blocks.push(next.map(|next| Entry::Free { next }).collect());
            self.len += BLOCK as u32;
        }
        self.free
    }

    /// Makes the first free entry a live one.
    fn take(&mut self, entry: u32, live: Entry<A>) {
        if let Some(slot) = self.get_mut(entry)
            && let Entry::Free { next } = std::mem::replace(slot, live)
        {
            self.free = next;
        }
    }

    /// Frees the entry of a value. Returns the reference, for the caller to drop with no lock held,
    /// and whether the value has a name.
    fn release(&mut self, place: Place) -> Option<(Weak<A>, bool)> {
        self.find_mut(place)?;
        let free = Entry::Free { next: self.free };
        let released = std::mem::replace(self.get_mut(place.entry)?, free);
        self.free = place.entry;
        match released {
            Entry::Live { array, is_named, .. } => Some((array, is_named)),
            Entry::Free { .. } => None,
        }
    }
}

impl<A> List<A> {
    const fn new() -> Self {
        Self { entries: Mutex::new(Entries::EMPTY), live: AtomicUsize::new(0) }
    }

    /// Counts values that have been added or removed. The caller has the lock, so that no other
    /// thread counts meanwhile.
    #[inline]
    fn count(&self, _locked: &mut Entries<A>, change: isize) {
        let live = self.live.load(Ordering::Relaxed);
        self.live.store(live.wrapping_add_signed(change), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Entries<A>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> LiveArrays<A> {
    pub(crate) const fn new() -> Self {
        Self {
            lists: [const { List::new() }; LISTS],
            names: LazyLock::new(|| DashMap::with_hasher(BuildNumberHasher)),
            next_number: AtomicU64::new(1),
        }
    }

    /// Registers the value that `make` makes for its place. `make` takes no lock of this library.
    #[inline]
    pub(crate) fn register(&self, make: impl FnOnce(Place) -> Arc<A>) -> Arc<A> {
        let list = list_of_thread();
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.lists[list].lock();
        let entry = entries.first_free();
        let array = make(Place { number, list: list as u32, entry });
        let live = Entry::Live { array: Arc::downgrade(&array), number, is_named: false };
        entries.take(entry, live);
        self.lists[list].count(&mut entries, 1);
        array
    }

    #[inline]
    pub(crate) fn remove(&self, place: Place) {
        let list = self.list(place);
        let mut entries = list.lock();
        let released = entries.release(place);
        if released.is_some() {
            list.count(&mut entries, -1);
        }
        drop(entries);
        if released.is_some_and(|(_array, is_named)| is_named) {
            self.names.remove(&place.number);
        }
    }

    pub(crate) fn contains(&self, place: Place) -> bool {
        self.list(place).lock().find_mut(place).is_some()
    }

    fn list(&self, place: Place) -> &List<A> {
        &self.lists[place.list as usize % LISTS]
    }

    pub(crate) fn set_name(&self, place: Place, name: Arc<str>) {
        let mut entries = self.list(place).lock();
        if let Some(is_named) = entries.find_mut(place) {
            *is_named = true;
            self.names.insert(place.number, Named::new(ArrayName::Given(name)));
        }
    }

    /// The name of an array; `make` makes one if it has none. May be called with the array's lock
    /// held: neither this nor `make` takes another lock of this library.
    pub(crate) fn name(&self, place: Place, make: impl FnOnce() -> Arc<str>) -> ArrayName {
        if let Some(named) = self.names.get(&place.number) {
            return named.name.clone();
        }
        self.with_automatic_name(place, make(), |named| named.name.clone())
    }

    /// Gives the array a name, unless it has one, and passes what is known of it to `read`.
    #[cold]
    fn with_automatic_name<R>(
        &self,
        place: Place,
        name: Arc<str>,
        read: impl FnOnce(&mut Named) -> R,
    ) -> R {
        let mut named = Named::new(ArrayName::Automatic(name));
        let mut entries = self.list(place).lock();
        match entries.find_mut(place) {
            Some(is_named) => {
                *is_named = true;
                read(&mut self.names.entry(place.number).or_insert(named))
            }
            None => read(&mut named),
        }
    }

    /// An operation on an array and the array's name: `upload of "photo"`. `make` and locks are as
    /// for [`name`](Self::name).
    pub(crate) fn label(
        &self,
        place: Place,
        operation: &'static str,
        make: impl FnOnce() -> Arc<str>,
    ) -> Arc<str> {
        if let Some(mut named) = self.names.get_mut(&place.number) {
            return named.label(operation);
        }
        self.with_automatic_name(place, make(), |named| named.label(operation))
    }

    /// The name that the program gave an array.
    pub(crate) fn given_name(&self, place: Place) -> Option<Arc<str>> {
        match &self.names.get(&place.number)?.name {
            ArrayName::Given(name) => Some(Arc::clone(name)),
            ArrayName::Automatic(_) => None,
        }
    }

    /// The number of live values.
    pub(crate) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.live.load(Ordering::Relaxed)).sum()
    }

    /// Every live array, oldest first. The locks are released before the return, because callers
    /// lock the arrays and may drop the last reference to an array.
    pub(crate) fn all(&self) -> Vec<Arc<A>> {
        let mut arrays: Vec<(u64, Weak<A>)> = Vec::new();
        for list in &self.lists {
            let entries = list.lock();
            arrays.extend(entries.blocks.iter().flatten().filter_map(|entry| match entry {
                Entry::Live { array, number, .. } => Some((*number, Weak::clone(array))),
                Entry::Free { .. } => None,
            }));
        }
        arrays.sort_by_key(|(number, _)| *number);
        arrays.iter().filter_map(|(_, array)| array.upgrade()).collect()
    }
}

/// The number of the list to which this thread adds arrays.
#[inline]
fn list_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LIST: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let assigned = LIST.try_with(|list| {
        if list.get() == usize::MAX {
            list.set(NEXT.fetch_add(1, Ordering::Relaxed) % LISTS);
        }
        list.get()
    });
    assigned.unwrap_or(0)
}

/// Hashes a number by one multiplication, which is enough for unique numbers.
#[derive(Clone, Copy, Default)]
struct BuildNumberHasher;

struct NumberHasher(u64);

impl std::hash::BuildHasher for BuildNumberHasher {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher(0)
    }
}

impl std::hash::Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BLOCK, LiveArrays, Place};

    fn register(arrays: &LiveArrays<(usize, Place)>, value: usize) -> Arc<(usize, Place)> {
        arrays.register(|place| Arc::new((value, place)))
    }

    fn values(arrays: &LiveArrays<(usize, Place)>) -> Vec<usize> {
        arrays.all().iter().map(|array| array.0).collect()
    }

    #[test]
    fn live_values_are_listed_the_oldest_first_whichever_entries_they_have() {
        let arrays = LiveArrays::new();
        let mut alive: Vec<_> = (0..3 * BLOCK).map(|value| register(&arrays, value)).collect();
        for index in (0..alive.len()).step_by(3).rev() {
            arrays.remove(alive.remove(index).1);
        }
        alive.extend((3 * BLOCK..5 * BLOCK).map(|value| register(&arrays, value)));
        assert_eq!(values(&arrays), alive.iter().map(|array| array.0).collect::<Vec<_>>());
        let released = alive.swap_remove(7);
        assert!(arrays.contains(released.1));
        arrays.remove(released.1);
        arrays.remove(released.1);
        assert_eq!(values(&arrays).len(), alive.len(), "a second removal does nothing");
        assert_eq!(arrays.len(), alive.len());
        let next = register(&arrays, 0);
        assert_eq!(next.1.entry, released.1.entry, "the entry freed last is used first");
        assert!(arrays.contains(next.1) && !arrays.contains(released.1));
    }

    #[test]
    fn names_end_with_their_values() {
        let arrays = LiveArrays::new();
        let (first, second) = (register(&arrays, 1), register(&arrays, 2));
        arrays.set_name(first.1, "first".into());
        assert_eq!(arrays.name(first.1, || unreachable!()).to_string(), "\"first\"");
        assert_eq!(arrays.name(second.1, || "made".into()).to_string(), "made");
        assert_eq!(arrays.name(second.1, || unreachable!()).to_string(), "made");
        for array in [&first, &second] {
            arrays.remove(array.1);
        }
        assert_eq!(arrays.names.len(), 0);
        let third = register(&arrays, 3);
        assert_eq!(third.1.entry, second.1.entry, "the entry freed last is used first");
        assert_eq!(arrays.name(second.1, || "gone".into()).to_string(), "gone");
        arrays.set_name(second.1, "gone".into());
        assert_eq!(arrays.names.len(), 0, "a name of a removed value is not kept");
    }
}
