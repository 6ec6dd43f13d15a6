//! Totals: how many copies, how many bytes, which way.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use super::report::grouped;
use crate::sync::ShortLock;

/// One kind of movement: how many copies, how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flow {
    /// Planned copies: one per array, source, destination and request, however many parts or driver
    /// calls it takes.
    pub count: u64,
    /// Bytes, exactly.
    pub bytes: u64,
}

impl Flow {
    pub(crate) const fn of(bytes: u64) -> Self {
        Self { count: 1, bytes }
    }
}

impl AddAssign for Flow {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

impl Add for Flow {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// What is more than in `other`, and 0 where nothing is.
impl Sub for Flow {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// `4_000 bytes in 1 copy`.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = if self.count == 1 { "copy" } else { "copies" };
        write!(f, "{} bytes in {} {copies}", grouped(self.bytes), self.count)
    }
}

/// What an array, a device or a capture has moved so far. Several add up, and what was there before
/// is taken away.
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
/// arrays[0].gpu()?;                                                       // it is there
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
    /// What a launcher that copies each argument in and out would have moved at the launches so
    /// far, and was not moved.
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

/// What was moved since `other` was counted: what is more than there, and 0 where nothing is.
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

/// What was moved, in words: `4_000 bytes in 1 copy to devices, 400 bytes in 2 copies to the host`,
/// or `nothing moved`.
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
    /// Everything that was moved, whichever way. What was avoided is no part of it.
    #[must_use]
    pub fn moved(&self) -> Flow {
        self.to_device + self.to_host + self.between_devices
    }

    pub(crate) fn of(direction: Direction, bytes: u64) -> Self {
        let mut traffic = Self::default();
        *match direction {
            Direction::ToDevice => &mut traffic.to_device,
            Direction::ToHost => &mut traffic.to_host,
            Direction::BetweenDevices => &mut traffic.between_devices,
        } = Flow::of(bytes);
        traffic
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Direction {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
    /// Device to device.
    BetweenDevices,
}

impl Direction {
    /// As in the field `direction` of the tracing event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToDevice => "to_device",
            Self::ToHost => "to_host",
            Self::BetweenDevices => "between_devices",
        }
    }
}

/// As [`as_str`](Self::as_str).
impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What made a copy necessary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A kernel's argument, by `launch` and `launch_on`.
    Launch,
    /// `host`, `host_mut`, `Kernel::call`, `into_array`.
    Host,
    /// `gpu`, `gpu_mut` and their like, `into_cuda_slice`.
    Gpu,
    /// `prefetch`, `prefetch_host`.
    Prefetch,
    /// `assign`, `assign_on`, `get`, `snapshot_on`, the results of `Kernel::compare`: asked for by
    /// name.
    Explicit,
    /// `release_on`.
    Evict,
}

impl Cause {
    /// As in the field `cause` of the tracing event.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Host => "host",
            Self::Gpu => "gpu",
            Self::Prefetch => "prefetch",
            Self::Explicit => "explicit",
            Self::Evict => "evict",
        }
    }
}

/// As [`as_str`](Self::as_str).
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A device's totals. One short lock rather than a locked instruction per number, and counts that
/// fit their bytes.
#[derive(Debug, Default)]
pub(crate) struct SharedTraffic(ShortLock<Traffic>);

impl SharedTraffic {
    pub(crate) fn add(&self, traffic: &Traffic) {
        *self.0.lock() += *traffic;
    }

    #[inline]
    pub(crate) fn add_avoided(&self, flow: Flow) {
        if flow.count != 0 {
            self.0.lock().avoided += flow;
        }
    }

    pub(crate) fn get(&self) -> Traffic {
        *self.0.lock()
    }
}
