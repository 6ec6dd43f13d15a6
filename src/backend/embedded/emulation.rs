//! What an emulated device is asked to be: its memory, its link, its order, its faults.

use std::time::Duration;

use super::log::CallKind;

/// What a fresh embedded device is to be like: for tests, and to ask "what if".
///
/// By default it is like the plain embedded device (no limit but the machine's memory, a worker
/// thread for each stream, transfers as fast as the machine makes them), and in addition counts its
/// calls and checks the order of its work: see [`EmulationLog`](crate::emulation::EmulationLog).
///
/// ```
/// use std::time::Duration;
/// use resident::{Emulation, Fault, Link};
///
/// let small_and_slow = Emulation::new()
///     .memory(64 << 20)                                                              // 64 MiB
///     .link(Link { bytes_per_second: 55e9, latency: Duration::from_micros(5) });
/// let reproducible = small_and_slow.clone().seed(7).fail(Fault::nth(12)).fail(Fault::nth(20).late());
/// # let _ = reproducible;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Emulation {
    pub(super) memory_bytes: Option<u64>,
    pub(super) seed: Option<u64>,
    pub(super) link: Option<Link>,
    pub(super) poison: bool,
    pub(super) chunk_bytes_max: u64,
    pub(super) faults: Vec<Fault>,
}

impl Emulation {
    /// A device like the plain one, watched. Poison is on where debug assertions are.
    pub fn new() -> Self {
        Self {
            memory_bytes: None,
            seed: None,
            link: None,
            poison: cfg!(debug_assertions),
            chunk_bytes_max: u64::MAX,
            faults: Vec::new(),
        }
    }

    /// Bytes that the device may hold, arrays in use and freed arrays that still drain together;
    /// more is `Error::OutOfMemory`.
    pub fn memory(self, len_bytes: u64) -> Self {
        Self { memory_bytes: Some(len_bytes), ..self }
    }

    /// Copies between host and device go in pieces of at most so many bytes, as they do on a GPU,
    /// whose page-locked memory is bounded. Without this, each copy is one piece.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray, emulation::CallKind};
    ///
    /// let device = Device::emulated(Emulation::new().pieces(1000));
    /// let array = SmartArray::<u8, _>::from(vec![1; 2500]);
    /// array.prefetch(&device.stream())?;
    /// let calls = device.emulation().map_or(Vec::new(), |log| log.calls());
    /// assert_eq!(calls.iter().filter(|call| call.kind == CallKind::Upload).count(), 3);
    /// assert_eq!(array.traffic().to_device.count, 1);                       // one copy, in three pieces
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn pieces(self, len_bytes: u64) -> Self {
        Self { chunk_bytes_max: len_bytes.max(1), ..self }
    }

    /// Nothing runs by itself: whoever waits or polls runs ready work, one operation at a time, in
    /// an order drawn from `seed`.
    ///
    /// All seeded devices made on one thread while an earlier one of that thread is alive (or a
    /// stream or event of one) share one queue of ready work, one random state, into which each
    /// one's seed is mixed, and one modelled clock. So a program that makes its devices on one
    /// thread and waits on that thread runs the same way each time, whatever other threads do with
    /// devices of their own.
    ///
    /// Work for which nobody ever waits does not run, and is dropped with the last handle of its
    /// devices.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// What transfers between this device and the host, or another device, cost. With a seed this
    /// is modelled time, which events read; without one, each transfer takes at least so long for
    /// real. Between two devices the slower link counts.
    pub fn link(self, link: Link) -> Self {
        Self { link: Some(link), ..self }
    }

    /// Whether fresh, freed and stale memory is filled with a pattern (all bits set: NaN, or -1),
    /// so that a read of it shows. The default is `cfg!(debug_assertions)`.
    pub fn poison(self, poison: bool) -> Self {
        Self { poison, ..self }
    }

    /// Lets a call fail. May be called several times.
    pub fn fail(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }
}

impl Default for Emulation {
    fn default() -> Self {
        Self::new()
    }
}

/// A modelled link between a device and the host: a transfer of n bytes takes `latency` + n /
/// `bytes_per_second`.
///
/// ```
/// let pcie = resident::Link { bytes_per_second: 25e9, latency: std::time::Duration::from_micros(8) };
/// assert_eq!(pcie.transfer_time(25_000), std::time::Duration::from_micros(9));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Bytes per second. What is not a number above zero means that length costs nothing.
    pub bytes_per_second: f64,
    /// What each transfer costs, however short.
    pub latency: Duration,
}

impl Link {
    /// How long a transfer of `len_bytes` takes, to the nearest nanosecond; at most 584 years.
    #[must_use]
    pub fn transfer_time(self, len_bytes: u64) -> Duration {
        let length_ns = len_bytes as f64 / self.bytes_per_second * 1e9;
        // Casting saturates, and takes what is not a number as 0.
        let length_ns = if self.bytes_per_second > 0.0 { length_ns.round() as u64 } else { 0 };
        self.latency.saturating_add(Duration::from_nanos(length_ns))
    }
}

/// A call of an emulated device that is to fail, once.
///
/// Calls are counted from 1 on each device, in the order in which they are made; what counts is
/// what [`CallKind`](crate::emulation::CallKind) lists. A fault makes its call fail at once, with
/// nothing queued. A [`late`](Fault::late) one lets the call succeed and the work fail when it
/// runs; only copies, fills and launches can: a late fault that meets another kind of call has no
/// effect.
///
/// A device that [poisons](Emulation::poison) stale copies, as emulated ones do with debug
/// assertions, makes calls for that, too: a program that is to fail at the same place in every
/// build counts calls of one kind, by [`of`](Fault::of).
///
/// ```
/// use resident::emulation::CallKind;
/// use resident::{Device, Emulation, Fault, Grid, InOut, Kernel, SmartArray};
///
/// let device = Device::emulated(Emulation::new().fail(Fault::nth(2).of(CallKind::Launch)));
/// let double = Kernel::<(InOut<f32>,)>::new("double").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let mut array = SmartArray::from(vec![1.0_f32; 8]);
/// double.launch_on(&device.stream(), Grid::cover(8), (&mut array,))?;
/// assert!(double.launch_on(&device.stream(), Grid::cover(8), (&mut array,)).is_err());
/// assert_eq!(array.host()?.sum(), 16.0);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Fault {
    pub(super) call: u64,
    pub(super) late: bool,
    pub(super) kind: Option<CallKind>,
}

impl Fault {
    /// The `call`-th call, counted from 1, is refused. There is no call 0.
    pub fn nth(call: u64) -> Self {
        Self { call, late: false, kind: None }
    }

    /// Calls of this kind alone are counted: the third launch, whatever is called in between.
    pub fn of(self, kind: CallKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// The call succeeds, and its work fails when it runs.
    pub fn late(self) -> Self {
        Self { late: true, ..self }
    }
}
