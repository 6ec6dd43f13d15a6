//! Where an array's contents can be read.

use std::fmt;

use smallvec::SmallVec;

use crate::device::Device;

/// What one place holds of an array, or of a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Validity {
    /// It has no memory there.
    Absent,
    /// It has memory there, whose contents are all old or were never written; or a constant that
    /// was not filled in there yet.
    Stale,
    /// So many bytes there are the newest.
    Partial {
        /// Bytes of the part that was asked for.
        valid_bytes: u64,
    },
    /// All of it is the newest there.
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

/// Where an array's contents could be read at the moment of asking, by
/// [`SmartArray::residency`](crate::SmartArray::residency). Its `Display` is one line.
///
/// ```
/// use resident::{Device, SmartArray, Validity};
///
/// let (device, other) = (Device::cpu(), Device::emulated(Default::default()));
/// let mut array = SmartArray::from(vec![1_u32; 10]);
/// array.gpu_mut_on(&device.stream())?;
/// let residency = array.residency();
/// assert_eq!((residency.host(), residency.on(&device), residency.on(&other)), (Validity::Stale, Validity::Valid, Validity::Absent));
/// assert_eq!(residency.to_string(), "host stale, cpu:0 valid");
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residency {
    host: Validity,
    devices: Devices,
}

/// One as a rule, which takes no heap.
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

    /// A device's copy: absent where the array was never used, or has no memory any more.
    #[must_use]
    pub fn on(&self, device: &Device) -> Validity {
        self.devices
            .iter()
            .find(|(known, _)| known == device)
            .map_or(Validity::Absent, |(_, validity)| *validity)
    }

    /// The devices that hold or held a copy, in the order in which they first did.
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
