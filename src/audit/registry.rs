//! Every live array of the process.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use dashmap::DashMap;

use super::Validity;

/// Something that can describe itself as an array. Describing never moves data.
pub(crate) trait Listed: Send + Sync {
    fn entry(&self) -> Entry;
    /// Itself, for who knows what it is.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// Numbers are handed out in order, so they spread over the shards as they are.
type Registry = DashMap<u64, Row, Spread>;

/// A live array, and its name: the one that it was given, or the one that was made when somebody
/// asked for it.
struct Row {
    array: Weak<dyn Listed>,
    name: Option<Arc<str>>,
}

static ARRAYS: LazyLock<Registry> = LazyLock::new(|| DashMap::with_hasher(Spread));
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Hashes a number by one multiplication: keys are unique already.
#[derive(Clone, Copy, Default)]
struct Spread;

struct Spreader(u64);

impl std::hash::BuildHasher for Spread {
    type Hasher = Spreader;

    fn build_hasher(&self) -> Spreader {
        Spreader(0)
    }
}

impl std::hash::Hasher for Spreader {
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

/// A number for a new array.
pub(crate) fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn enter(number: u64, array: Weak<dyn Listed>) {
    ARRAYS.insert(number, Row { array, name: None });
}

/// The name of an array; `make` makes one where it has none yet. Messages ask with an array's lock
/// held: neither this nor `make` takes another.
pub(crate) fn name_of(number: u64, make: impl FnOnce() -> Arc<str>) -> Arc<str> {
    match ARRAYS.get_mut(&number) {
        Some(mut row) => Arc::clone(row.name.get_or_insert_with(make)),
        None => make(),
    }
}

pub(crate) fn set_name(number: u64, name: Arc<str>) {
    if let Some(mut row) = ARRAYS.get_mut(&number) {
        row.name = Some(name);
    }
}

pub(crate) fn leave(number: u64) {
    ARRAYS.remove(&number);
}

/// One live array, as [`inventory`] found it. Its `Display` is one line: `"weights" f32[100], 400
/// bytes: host valid, cpu:0 stale`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    name: Arc<str>,
    shape: Vec<usize>,
    element: String,
    bytes: u64,
    places: Vec<(String, Validity)>,
}

impl Entry {
    pub(crate) fn new(
        name: Arc<str>,
        shape: Vec<usize>,
        element: String,
        bytes: u64,
        places: Vec<(String, Validity)>,
    ) -> Self {
        Self { name, shape, element, bytes, places }
    }

    /// Its name; for one that was given none, its type, shape and the line that made it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Elements along each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of its elements, without its path: `f32`, `Complex<f64>`.
    #[must_use]
    pub fn element(&self) -> &str {
        &self.element
    }

    /// Bytes of one whole copy, which is what each place that is not absent holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `f32[10, 20]`
    fn kind(&self) -> String {
        format!("{}{:?}", self.element, self.shape)
    }

    /// Where it is valid, at the moment of asking: `host` first, then devices by name.
    pub fn places(&self) -> impl Iterator<Item = (&str, Validity)> {
        self.places.iter().map(|(place, validity)| (place.as_str(), *validity))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name of an array that was given none tells its type and shape already.
        if self.name.starts_with(&self.kind()) {
            write!(f, "{}, {} bytes:", self.name, self.bytes)?;
        } else {
            write!(f, "\"{}\" {}, {} bytes:", self.name, self.kind(), self.bytes)?;
        }
        let mut separator = "";
        for (place, validity) in &self.places {
            write!(f, "{separator} {place} {validity}")?;
            separator = ",";
        }
        Ok(())
    }
}

/// Every live array of the process, oldest first: its name, shape, bytes, and where it is valid.
/// Moves nothing. Each array is asked by itself: what other threads do meanwhile may show in one
/// and not in another.
///
/// ```
/// use resident::{Device, SmartArray, Validity, audit};
///
/// let weights = SmartArray::from(vec![0.5_f32; 100]).named("weights");
/// weights.gpu_on(&Device::cpu().stream())?;
/// let arrays = audit::inventory();
/// let entry = arrays.iter().find(|entry| entry.name() == "weights").expect("it is alive");
/// assert_eq!((entry.element(), entry.shape(), entry.bytes()), ("f32", &[100][..], 400));
/// assert_eq!(entry.places().collect::<Vec<_>>(), [("host", Validity::Valid), ("cpu:0", Validity::Valid)]);
/// assert_eq!(entry.to_string(), "\"weights\" f32[100], 400 bytes: host valid, cpu:0 valid");
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use]
pub fn inventory() -> Vec<Entry> {
    arrays().iter().map(|array| array.entry()).collect()
}

/// Every live array, in the order in which they were made. The map's guards are given back before:
/// asking an array takes its own lock, and this may be its last owner.
pub(crate) fn arrays() -> Vec<Arc<dyn Listed>> {
    let mut arrays: Vec<(u64, Weak<dyn Listed>)> =
        ARRAYS.iter().map(|entry| (*entry.key(), Weak::clone(&entry.value().array))).collect();
    arrays.sort_by_key(|(number, _)| *number);
    arrays.iter().filter_map(|(_, array)| array.upgrade()).collect()
}
