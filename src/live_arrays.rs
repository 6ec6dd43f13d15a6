//! The registry of the live arrays of the process, and their names.
//!
//! The inventory lists these arrays, messages name them, and eviction selects from them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use dashmap::DashMap;

/// The name of an array. Its `Display` is the name as printed in messages: in quotation marks if
/// the program gave the name.
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
            Self::Given(text) => write!(f, "\"{text}\""),
            Self::Automatic(text) => f.write_str(text),
        }
    }
}

/// All live values of `A`, each under the number with which it was registered.
pub(crate) struct LiveArrays<A> {
    entries: LazyLock<DashMap<u64, LiveArray<A>, BuildNumberHasher>>,
    next_number: AtomicU64,
}

struct LiveArray<A> {
    array: Weak<A>,
    name: Option<ArrayName>,
    /// The last label that was made, with its operation: programs repeat operations.
    label: Option<Box<(&'static str, Arc<str>)>>,
}

impl<A> LiveArray<A> {
    fn label(&mut self, operation: &'static str, make: impl FnOnce() -> ArrayName) -> Arc<str> {
        if let Some((known, label)) = self.label.as_deref()
            && *known == operation
        {
            return Arc::clone(label);
        }
        let label: Arc<str> = label_text(operation, self.name.get_or_insert_with(make)).into();
        self.label = Some(Box::new((operation, Arc::clone(&label))));
        label
    }
}

fn label_text(operation: &str, name: &ArrayName) -> String {
    format!("{operation} {name}")
}

impl<A> LiveArrays<A> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: LazyLock::new(|| DashMap::with_hasher(BuildNumberHasher)),
            next_number: AtomicU64::new(1),
        }
    }

    /// A number for a new array, never used before.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn insert(&self, number: u64, array: Weak<A>) {
        self.entries.insert(number, LiveArray { array, name: None, label: None });
    }

    #[inline]
    pub(crate) fn remove(&self, number: u64) {
        self.entries.remove(&number);
    }

    pub(crate) fn set_name(&self, number: u64, name: Arc<str>) {
        if let Some(mut entry) = self.entries.get_mut(&number) {
            entry.name = Some(ArrayName::Given(name));
            entry.label = None;
        }
    }

    /// The name of an array; `make` makes one if it has none. May be called with the array's lock
    /// held: neither this nor `make` takes another lock of this library.
    pub(crate) fn name(&self, number: u64, make: impl FnOnce() -> Arc<str>) -> ArrayName {
        let make = || ArrayName::Automatic(make());
        match self.entries.get_mut(&number) {
            Some(mut entry) => entry.name.get_or_insert_with(make).clone(),
            None => make(),
        }
    }

    /// The name that the program gave an array.
    pub(crate) fn given_name(&self, number: u64) -> Option<Arc<str>> {
        match &self.entries.get(&number)?.name {
            Some(ArrayName::Given(name)) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    /// An operation on an array and the array's name: `upload of "photo"`. `make` and locks are as
    /// for [`name`](Self::name).
    pub(crate) fn label(
        &self,
        number: u64,
        operation: &'static str,
        make: impl FnOnce() -> Arc<str>,
    ) -> Arc<str> {
        let make = || ArrayName::Automatic(make());
        match self.entries.get_mut(&number) {
            Some(mut entry) => entry.label(operation, make),
            None => label_text(operation, &make()).into(),
        }
    }

    /// Every live array, oldest first. The map's lock is released before the return, because
    /// callers lock the arrays and may drop the last reference to an array.
    pub(crate) fn all(&self) -> Vec<Arc<A>> {
        let mut arrays: Vec<(u64, Weak<A>)> = self
            .entries
            .iter()
            .map(|entry| (*entry.key(), Weak::clone(&entry.value().array)))
            .collect();
        arrays.sort_by_key(|(number, _)| *number);
        arrays.iter().filter_map(|(_, array)| array.upgrade()).collect()
    }
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
