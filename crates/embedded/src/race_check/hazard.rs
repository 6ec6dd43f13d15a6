//! Hazards: the reports of the race check.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use resident_backend::call_site::CallSite;

/// An error in the order of work, found by an emulated device. A hazard is a bug in this library,
/// or in external code that used a guard's memory after the guard dropped. A correct program has no
/// hazards.
///
/// Its `Display` names the operations, the memory and the bytes: `kernel "blur" (cpu:1, stream 0,
/// work 3, at src/main.rs:7:5) writes and download of "photo" (cpu:1, stream 1, work 1, at
/// src/main.rs:9:5) reads bytes 0..64 of "photo" on cpu:1, and nothing orders them`.
///
/// ```
/// use resident::{Device, Emulation};
///
/// let device = Device::emulated(Emulation::new().seed(3));
/// let log = device.emulation().expect("this device is emulated");
/// assert_eq!(log.hazards(), []);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Hazard {
    /// The kind of error.
    pub kind: HazardKind,
    /// The operation whose submission completed the hazard.
    pub operation: HazardOperation,
    /// The earlier operation with which it conflicts, if there is one.
    pub earlier: Option<HazardOperation>,
    /// The memory, by its label.
    pub memory: String,
    /// The bytes of that memory. If the bytes are not contiguous, this is their first range.
    pub bytes: Range<u64>,
}

/// The kinds of hazards.
///
/// ```
/// use resident::emulation::{Hazard, HazardKind};
///
/// fn is_race(hazard: &Hazard) -> bool {
///     hazard.kind == HazardKind::Unordered
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HazardKind {
    /// Two operations access the same bytes, at least one writes or frees them, and nothing orders
    /// the two.
    Unordered,
    /// An operation accesses memory after a free of it was queued.
    UseAfterFree,
    /// An operation accesses bytes beyond its memory.
    OutOfRange,
    /// An operation reads bytes that nothing has written.
    NeverWritten,
}

/// How an operation accesses the bytes.
///
/// ```
/// assert_eq!(resident::emulation::Touch::Frees.to_string(), "frees");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Touch {
    /// Reads only.
    Reads,
    /// Writes, possibly after reading.
    Writes,
    /// Frees the memory.
    Frees,
}

/// One operation of a hazard. Its `Display` is its name and the stream it was queued on.
///
/// ```
/// use resident::emulation::Hazard;
///
/// fn culprits(hazard: &Hazard) -> Vec<String> {
///     hazard.earlier.iter().chain([&hazard.operation]).map(ToString::to_string).collect()
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HazardOperation {
    /// Its label: `kernel "blur"`.
    pub name: Arc<str>,
    /// The number of its device.
    pub device: usize,
    /// The number of its stream on that device.
    pub stream: u32,
    /// Its position in that stream, from 1.
    pub position: u64,
    /// The source line that queued the operation.
    pub site: Option<CallSite>,
    /// How the operation accesses the bytes.
    pub touch: Touch,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, memory, start, end) =
            (&self.operation, &self.memory, self.bytes.start, self.bytes.end);
        if let Some(earlier) = &self.earlier {
            write!(f, "{earlier} {} and ", earlier.touch)?;
        }
        write!(f, "{operation} {} bytes {start}..{end} of {memory}", operation.touch)?;
        f.write_str(match self.kind {
            HazardKind::Unordered => ", and nothing orders them",
            HazardKind::UseAfterFree => ", which was freed before",
            HazardKind::OutOfRange => ", which ends before that",
            HazardKind::NeverWritten => ", which nothing has written",
        })
    }
}

impl fmt::Display for HazardOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (cpu:{}, stream {}, work {}",
            self.name, self.device, self.stream, self.position
        )?;
        if let Some(site) = self.site {
            write!(f, ", at {site}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Frees => "frees",
        })
    }
}
