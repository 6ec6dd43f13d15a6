//! The bytes of arrays in the memory of devices, and in pinned memory of the host: totals and peaks,
//! which always count, and [logs](log) of how they came about, while something listens.

mod log;
mod place_log;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

pub(crate) use log::{MemoryLog, is_listening};
use resident_backend::call_site::CallSite;

/// All device memory, and all pinned memory of the host.
pub(crate) static DEVICES: Gauge = Gauge::new();
pub(crate) static PINNED: Gauge = Gauge::new();

/// The pinned memory of the host.
pub(crate) static PINNED_MEMORY: LazyLock<Arc<Place>> = LazyLock::new(|| {
    Arc::new(Place { name: "host".into(), number: 0, gauge: Gauge::new(), all: &PINNED })
});

/// A number of bytes in use, and the most that it was.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    in_use: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    const fn new() -> Self {
        Self { in_use: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }

    pub(crate) fn in_use(&self) -> u64 {
        self.in_use.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        let before = self.in_use.fetch_add(bytes, Ordering::Relaxed);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: u64) {
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Whose memory was allocated, and by which call.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) array: Arc<str>,
    pub(crate) site: CallSite,
}

/// The memory of one device, or the pinned memory of the host.
#[derive(Debug)]
pub(crate) struct Place {
    name: Arc<str>,
    /// Unique among places.
    number: u64,
    gauge: Gauge,
    all: &'static Gauge,
}

impl Place {
    /// The memory of the device with this number, which is not 0.
    pub(crate) fn of_device(name: Arc<str>, number: u64) -> Self {
        Self { name, number, gauge: Gauge::new(), all: &DEVICES }
    }

    /// Counts memory. The `key` is its address, or another number that is unique at the place while
    /// the memory is in use. The caller holds no lock that `owner` takes.
    pub(crate) fn add(&self, key: u64, bytes: u64, owner: impl FnOnce() -> Owner) {
        self.all.add(bytes);
        if is_listening() {
            let owner = owner();
            log::change(self, |log| log.add(key, bytes, &owner), || self.gauge.add(bytes));
        } else {
            self.gauge.add(bytes);
        }
    }

    /// Counts memory no more. To be called before it can be allocated again.
    pub(crate) fn remove(&self, key: u64, bytes: u64) {
        self.all.subtract(bytes);
        if is_listening() {
            log::change(self, |log| log.remove(key, bytes), || self.gauge.subtract(bytes));
        } else {
            self.gauge.subtract(bytes);
        }
    }

    /// Notes that so many bytes were refused.
    pub(crate) fn note_refused(&self, bytes: u64) {
        if is_listening() {
            log::change(self, |log| log.note_refused(bytes), || ());
        }
    }
}
