//! Places with memory, and how much of it is in use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

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

    pub(super) fn add(&self, bytes: u64) {
        let before = self.in_use.fetch_add(bytes, Ordering::Relaxed);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, bytes: u64) {
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The memory of one device, or the pinned memory of the host.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) name: Arc<str>,
    /// Unique among places.
    pub(super) number: u64,
    pub(super) gauge: Gauge,
    pub(super) all: &'static Gauge,
}

impl Place {
    /// The memory of the device with this number, which is not 0.
    pub(crate) fn of_device(name: Arc<str>, number: u64) -> Self {
        Self { name, number, gauge: Gauge::new(), all: &DEVICES }
    }

    /// The most bytes that were in use.
    pub(crate) fn peak(&self) -> u64 {
        self.gauge.peak()
    }
}
