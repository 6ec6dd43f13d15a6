//! Totals of copies: how many, how many bytes, in which direction.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use resident_backend::sync::ShortLock;

pub use resident_documents::Flow;
pub(crate) use resident_documents::grouped;

/// The copies of an array, a device or a capture so far. Totals can be added and subtracted.
///
/// ```
/// use resident::{Device, SmartArray, Traffic};
///
/// let _here = Device::cpu().enter();
/// let arrays = [100, 200].map(|len| SmartArray::from(vec![0_u8; len]));
/// for array in &arrays {
///     array.gpu()?;
/// }
/// let all: Traffic = arrays.iter().map(|array| array.traffic()).sum();
/// assert_eq!((all.to_device.count, all.to_device.bytes), (2, 300));
/// assert_eq!(all.to_string(), "300 bytes in 2 copies to devices");
///
/// let before = arrays[0].traffic();
/// arrays[0].gpu()?;                                                 // already there
/// assert_eq!((arrays[0].traffic() - before).moved().bytes, 0);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Traffic {
    /// From the host to a device.
    pub to_device: Flow,
    /// From a device to the host.
    pub to_host: Flow,
    /// From one device to another.
    pub between_devices: Flow,
    /// What launches saved so far, compared with a launcher that copies each array argument in and
    /// out: its copies, minus those that were made of the arrays of launches, whatever call made
    /// them; 0 if as much was moved. Explicit arrays ([`DeviceArray`](crate::DeviceArray)) are in
    /// neither number.
    pub avoided: Flow,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.to_device += other.to_device;
        self.to_host += other.to_host;
        self.between_devices += other.between_devices;
        self.avoided += other.avoided;
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// The copies since `other`; a number is 0 if that of `other` is larger.
impl Sub for Traffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            to_device: self.to_device - other.to_device,
            to_host: self.to_host - other.to_host,
            between_devices: self.between_devices - other.between_devices,
            avoided: self.avoided - other.avoided,
        }
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// The copies as text, such as `4_000 bytes in 1 copy to devices, 400 bytes in 2 copies to the
/// host`, or `nothing moved`.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = [
            (self.to_device, "to devices"),
            (self.to_host, "to the host"),
            (self.between_devices, "between devices"),
        ];
        let mut separator = "";
        for (flow, way) in ways.iter().filter(|(flow, _)| flow.count > 0) {
            write!(f, "{separator}{flow} {way}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("nothing moved") } else { Ok(()) }
    }
}

impl Traffic {
    /// The copies of all directions, without the avoided ones.
    #[must_use]
    pub fn moved(&self) -> Flow {
        self.to_device + self.to_host + self.between_devices
    }

    pub(crate) fn of(direction: Direction, bytes: u64) -> Self {
        Self::of_flow(direction, Flow::of(bytes))
    }

    /// Bytes that other processes get or have sent are none of these copies.
    pub(crate) fn of_flow(direction: Direction, flow: Flow) -> Self {
        let mut traffic = Self::default();
        match direction {
            Direction::ToDevice => traffic.to_device = flow,
            Direction::ToHost => traffic.to_host = flow,
            Direction::BetweenDevices => traffic.between_devices = flow,
            Direction::Sent | Direction::Received => {}
        }
        traffic
    }
}

/// The direction of a copy, or of a message between processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Direction {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
    /// Device to device.
    BetweenDevices,
    /// To another process, by `resident-mpi`, or by NCCL.
    Sent,
    /// From another process.
    Received,
}

impl Direction {
    /// The name in reports and in the field `direction` of the tracing event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToDevice => "to_device",
            Self::ToHost => "to_host",
            Self::BetweenDevices => "between_devices",
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// As [`as_str`](Self::as_str).
impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What arguments of a launch add to the totals of its device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaunchedCopies {
    /// What a launcher would have copied that copies each argument in and out.
    pub(crate) launcher: Flow,
    /// What was copied, before their first launch, of arrays that are arrays of launches now.
    pub(crate) before: Flow,
}

/// A [`Flow`] to which threads add without a lock.
pub(crate) struct FlowCounter {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl FlowCounter {
    pub(crate) const fn new() -> Self {
        Self { count: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Flow {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Flow { count: of(&self.count), bytes: of(&self.bytes) }
    }
}

/// The totals of a device. The numbers are behind one lock, which costs less than an atomic
/// operation per number, and keeps counts and bytes consistent.
#[derive(Debug, Default)]
pub(crate) struct TrafficCounter {
    totals: ShortLock<DeviceTotals>,
    /// The launches whose arguments a launcher would copy, and the uses of copies that are no
    /// launches. Written with the lock held.
    uses: AtomicU64,
    /// The launches whose arguments a launcher would not copy, for which no lock is needed.
    other_launches: AtomicU64,
}

/// What a device has copied and launched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceTotals {
    /// Without avoided copies.
    moved: Traffic,
    /// The part of `moved` that is of arrays of launches.
    launched: Flow,
    /// The part of `launched` that went between devices, which both of them count.
    launched_between: Flow,
    /// What a launcher would have copied that copies each argument in and out.
    launcher: Flow,
    launches: u64,
    /// The uses of copies that are no launches.
    other_uses: u64,
}

impl TrafficCounter {
    pub(crate) fn add(&self, traffic: &Traffic, launched: Flow) {
        let mut totals = self.totals.lock();
        totals.moved += *traffic;
        totals.launched += launched;
        if traffic.between_devices.count != 0 {
            totals.launched_between += launched;
        }
    }

    #[inline]
    pub(crate) fn add_launch(&self, copies: &LaunchedCopies) {
        if copies.launcher.count != 0 {
            let mut totals = self.totals.lock();
            self.add_use();
            totals.launcher += copies.launcher;
            if copies.before.count != 0 {
                totals.launched += copies.before;
            }
        } else {
            self.other_launches.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Traffic {
        self.totals().traffic()
    }

    pub(crate) fn totals(&self) -> DeviceTotals {
        let locked = self.totals.lock();
        let launches = self.uses() - locked.other_uses;
        DeviceTotals { launches: launches + self.other_launches.load(Ordering::Relaxed), ..*locked }
    }

    /// Adds a use of a copy that is no launch, and returns how many uses there were before.
    pub(crate) fn add_other_use(&self) -> u64 {
        let mut totals = self.totals.lock();
        totals.other_uses += 1;
        self.add_use()
    }

    /// The launches whose arguments a launcher would copy, and the other uses of copies, so far.
    #[inline]
    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Returns how many uses there were before. The caller holds the lock, which excludes other
    /// writers.
    #[inline]
    fn add_use(&self) -> u64 {
        let before = self.uses();
        self.uses.store(before + 1, Ordering::Relaxed);
        before
    }
}

impl DeviceTotals {
    const NONE: Flow = Flow { count: 0, bytes: 0 };
    pub(crate) const ZERO: Self = Self {
        moved: Traffic {
            to_device: Self::NONE,
            to_host: Self::NONE,
            between_devices: Self::NONE,
            avoided: Self::NONE,
        },
        launched: Self::NONE,
        launched_between: Self::NONE,
        launcher: Self::NONE,
        launches: 0,
        other_uses: 0,
    };

    fn traffic(&self) -> Traffic {
        Traffic { avoided: self.launcher - self.launched, ..self.moved }
    }

    pub(crate) fn launches(&self) -> u64 {
        self.launches
    }

    /// What devices have copied whose totals were added up: each copy between two of them once.
    pub(crate) fn traffic_of_all(&self) -> Traffic {
        let half = |flow: Flow| Flow { count: flow.count / 2, bytes: flow.bytes / 2 };
        let launched = self.launched - half(self.launched_between);
        let between_devices = half(self.moved.between_devices);
        Traffic { between_devices, avoided: self.launcher - launched, ..self.moved }
    }
}

impl AddAssign for DeviceTotals {
    fn add_assign(&mut self, other: Self) {
        self.moved += other.moved;
        self.launched += other.launched;
        self.launched_between += other.launched_between;
        self.launcher += other.launcher;
        self.launches += other.launches;
        self.other_uses += other.other_uses;
    }
}
