//! Where an array's contents are valid.

use std::fmt;

use smallvec::SmallVec;

use crate::device::Device;

/// The state of an array, or of a part of one, in one memory: the host's or a device's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Validity {
    /// The array, or none of the part, has memory there.
    Absent,
    /// The array has memory there, but no element is valid: the contents are old, were never
    /// written, or are a constant with which this memory is not filled yet.
    Stale,
    /// Some elements are valid there.
    Partial {
        /// The number of valid bytes.
        valid_bytes: u64,
    },
    /// All elements are valid there.
    Valid,
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Stale => f.write_str("stale"),
            Self::Partial { valid_bytes } => write!(f, "{valid_bytes} bytes valid"),
            Self::Valid => f.write_str("valid"),
        }
    }
}

/// Where an array's contents were valid when
/// [`SmartArray::residency`](crate::SmartArray::residency) was called. Its `Display` is one line.
///
/// ```
/// use resident::{Device, SmartArray, Validity};
///
/// let (device, other) = (Device::cpu(), Device::emulated(Default::default()));
/// let mut array = SmartArray::from(vec![1_u32; 10]);
/// array.gpu_mut_on(&device.stream())?;
/// let residency = array.residency();
/// assert_eq!((residency.host(), residency.on(&device)), (Validity::Stale, Validity::Valid));
/// assert_eq!(residency.on(&other), Validity::Absent);
/// assert_eq!(residency.to_string(), "host stale, cpu:0 valid");
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residency {
    host: Validity,
    devices: Devices,
}

/// The devices with their validity. Usually there is one, which takes no heap.
type Devices = SmallVec<[(Device, Validity); 1]>;

impl Residency {
    pub(crate) fn new(host: Validity, devices: Devices) -> Self {
        Self { host, devices }
    }

    /// The host's copy.
    #[must_use]
    pub fn host(&self) -> Validity {
        self.host
    }

    /// A device's copy: absent if the array was never used there, or its memory there was freed.
    #[must_use]
    pub fn on(&self, device: &Device) -> Validity {
        self.devices
            .iter()
            .find(|(known, _)| known == device)
            .map_or(Validity::Absent, |(_, validity)| *validity)
    }

    /// The devices that have or had a copy, in the order of their first use.
    pub fn devices(&self) -> impl Iterator<Item = (&Device, Validity)> {
        self.devices.iter().map(|(device, validity)| (device, *validity))
    }
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.host)?;
        self.devices.iter().try_for_each(|(device, validity)| write!(f, ", {device} {validity}"))
    }
}
