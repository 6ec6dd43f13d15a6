//! Totals of the process, which always count.

use crate::audit::recording::facts::{MemoryChange, MemoryUse};
use crate::audit::recording::messages;
use crate::device;
use crate::memory_use::{self, Gauge};
use crate::storage;
use crate::traffic::{Flow, FlowCounter, Traffic};
use resident_backend::timeline;
use resident_documents::Waits;

/// Totals since the process began: see [`counters`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// The copies of all arrays and devices, those between two devices once. What launches saved
    /// ([`Traffic::avoided`]) may become less, when arrays of launches are copied.
    pub traffic: Traffic,
    /// Messages to other processes: see [`Report::sent`](crate::audit::Report::sent).
    pub sent: Flow,
    /// Messages from other processes.
    pub received: Flow,
    /// The number of launches of kernels.
    pub launches: u64,
    /// Waits of threads for work of devices that was not over.
    pub waits: Waits,
    /// Allocations of device memory for arrays.
    pub allocations: Flow,
    /// Copies of arrays that were freed to make room for other arrays on a full device.
    pub evictions: Flow,
    /// The number of arrays that live now.
    pub live_arrays: u64,
    /// The memory of arrays on all devices, managed memory included.
    pub device_memory: MemoryCounter,
    /// Pinned memory of the host: of pinned and mapped arrays, and of those that are page-locked.
    pub pinned_memory: MemoryCounter,
}

/// Bytes in use now, and the most that were in use at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryCounter {
    /// Now.
    pub in_use: u64,
    /// The most since the process began.
    pub peak: u64,
}

impl MemoryCounter {
    fn of(gauge: &Gauge) -> Self {
        Self { in_use: gauge.in_use(), peak: gauge.peak() }
    }
}

static ALLOCATIONS: FlowCounter = FlowCounter::new();
static EVICTIONS: FlowCounter = FlowCounter::new();

/// Totals of this process since it began, of all threads, arrays and devices. They count without a
/// capture and take no report: a call reads some tens of numbers, which takes less than a
/// microsecond, allocates nothing, and makes no launch wait. So a program can export them at any
/// time: for Prometheus by [`Counters::to_prometheus`], as the example `prometheus` does.
///
/// Numbers are read one after the other: while other threads work, one may be newer than another.
/// All rise only, except for `live_arrays`, what memory is in use, and `avoided`. For the numbers
/// of one device there are [`Device::traffic`](crate::Device::traffic) and
/// [`Device::memory`](crate::Device::memory).
///
/// ```
/// use resident::{Device, SmartArray, audit};
///
/// let before = audit::counters();
/// let array = SmartArray::from(vec![1.0_f32; 1000]);
/// array.prefetch(&Device::cpu().stream())?;
/// let now = audit::counters();
/// assert!(now.traffic.to_device.bytes >= before.traffic.to_device.bytes + 4000);
/// assert!(now.live_arrays >= 1 && now.device_memory.in_use >= 4000);
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use]
pub fn counters() -> Counters {
    let totals = device::totals_of_all();
    let (count, nanoseconds) = timeline::waits();
    let (sent, received) = messages::totals();
    Counters {
        traffic: totals.traffic_of_all(),
        sent,
        received,
        launches: totals.launches(),
        waits: Waits { count, nanoseconds },
        allocations: ALLOCATIONS.get(),
        evictions: EVICTIONS.get(),
        live_arrays: storage::live_array_count() as u64,
        device_memory: MemoryCounter::of(&memory_use::DEVICES),
        pinned_memory: MemoryCounter::of(&memory_use::PINNED),
    }
}

/// Counts an allocation or an eviction.
pub(in crate::audit) fn count_memory(used: &MemoryUse<'_>) {
    let counter = match used.kind {
        MemoryChange::Allocation => &ALLOCATIONS,
        MemoryChange::Eviction => &EVICTIONS,
        MemoryChange::Discard => return,
    };
    counter.add(used.bytes);
}
