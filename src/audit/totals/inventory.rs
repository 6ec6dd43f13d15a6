//! A list of the live arrays of the process.

use std::fmt;

use crate::live_arrays::ArrayName;
use crate::storage::{self, Storage, Validity};
use crate::traffic::grouped;
use resident_documents::shown;

/// One live array in an [`inventory`]. Its `Display` is one line: `"weights" f32[100], 400 bytes:
/// host valid, cpu:0 stale`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    name: ArrayName,
    shape: Vec<usize>,
    element: String,
    bytes: u64,
    places: Vec<(String, Validity)>,
}

impl Entry {
    /// `None` if another thread has dropped the array meanwhile.
    fn of(array: &Storage) -> Option<Self> {
        let entry = Self {
            name: array.array_name(),
            shape: array.shape().to_vec(),
            element: array.element_name(),
            bytes: array.memory_order().len_bytes(),
            places: array.validity_by_place(),
        };
        // An array leaves the registry before it gives up its copies.
        array.is_registered().then_some(entry)
    }

    /// The array's name: the given one, else its type, shape and the line that made it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.text()
    }

    /// The number of elements along each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of the elements without its path: `f32`, `Complex<f64>`.
    #[must_use]
    pub fn element(&self) -> &str {
        &self.element
    }

    /// The size in bytes of one whole copy, which the host and each device allocate at first use. A
    /// device of which only parts of a large array are used has memory for these parts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the array is valid, at the time of the call: `host` first, then devices in the order
    /// of their first use.
    pub fn places(&self) -> impl Iterator<Item = (&str, Validity)> {
        self.places.iter().map(|(place, validity)| (place.as_str(), *validity))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            ArrayName::Given(name) => {
                write!(f, "\"{}\" {}{:?}", shown(name), self.element, self.shape)?;
            }
            ArrayName::Automatic(name) => f.write_str(name)?,
        }
        write!(f, ", {} bytes:", grouped(self.bytes))?;
        let mut separator = "";
        for (place, validity) in &self.places {
            write!(f, "{separator} {place} {validity}")?;
            separator = ",";
        }
        Ok(())
    }
}

/// Every live array of the process, oldest first: its name, shape, bytes, and where it is valid.
/// Copies nothing. The arrays are read one after the other, so a concurrent operation of another
/// thread may be visible in one entry and not in another.
///
/// ```
/// use resident::{Device, SmartArray, Validity, audit};
///
/// let weights = SmartArray::from(vec![0.5_f32; 100]).named("weights");
/// weights.gpu_on(&Device::cpu().stream())?;
/// let arrays = audit::inventory();
/// let entry = arrays.iter().find(|entry| entry.name() == "weights").expect("it is alive");
/// assert_eq!((entry.element(), entry.shape(), entry.bytes()), ("f32", &[100][..], 400));
/// let places: Vec<_> = entry.places().collect();
/// assert_eq!(places, [("host", Validity::Valid), ("cpu:0", Validity::Valid)]);
/// assert_eq!(entry.to_string(), "\"weights\" f32[100], 400 bytes: host valid, cpu:0 valid");
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use]
pub fn inventory() -> Vec<Entry> {
    storage::live_arrays().iter().filter_map(|array| Entry::of(array)).collect()
}
