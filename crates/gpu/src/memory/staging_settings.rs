//! How copies with pageable memory are staged, as environment variables say: how much memory a
//! process pins for them, and into which chunks large copies are split.

use std::ops::RangeInclusive;

use resident_backend::environment;

/// The limit on the staging memory that a process pins, or an eighth of the machine's memory.
const LIMIT_VARIABLE: &str = "RESIDENT_PINNED_MAX";

/// The largest number of bytes that are staged as one operation.
const CHUNK_VARIABLE: &str = "RESIDENT_CHUNK_BYTES";

/// The largest number of these operations in flight.
const IN_FLIGHT_VARIABLE: &str = "RESIDENT_CHUNKS_MAX";

/// Large enough that the cost of a driver call is negligible, small enough that the chunks in
/// flight stay in the host's caches.
const CHUNK_BYTES: u64 = 4 << 20;

/// Half of them are packed, by several threads, while the device copies the other half.
const CHUNKS_IN_FLIGHT: usize = 8;

const CHUNK_BYTES_RANGE: RangeInclusive<u64> = 64 << 10..=1 << 30;
const CHUNKS_IN_FLIGHT_RANGE: RangeInclusive<usize> = 1..=1024;

/// See the variables above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StagingSettings {
    /// For all devices together.
    pub limit_bytes: u64,
    pub chunk_bytes_max: u64,
    pub chunks_in_flight_max: usize,
}

impl StagingSettings {
    /// The settings of this process. The error says which variable has a value that cannot be used.
    pub(crate) fn read() -> Result<Self, String> {
        let limit = environment::number_of_bytes(LIMIT_VARIABLE, 0..=u64::MAX)?;
        let limit_or_default =
            || limit.unwrap_or_else(|| machine_bytes().map_or(1 << 30, |bytes| bytes / 8));
        let chunk_bytes = environment::number_of_bytes(CHUNK_VARIABLE, CHUNK_BYTES_RANGE)?;
        let in_flight = environment::number(IN_FLIGHT_VARIABLE, CHUNKS_IN_FLIGHT_RANGE)?;
        Ok(Self {
            limit_bytes: limit_or_default(),
            chunk_bytes_max: chunk_bytes.unwrap_or(CHUNK_BYTES),
            chunks_in_flight_max: in_flight.unwrap_or(CHUNKS_IN_FLIGHT),
        })
    }
}

/// The memory that this process may use, if the system reports it: the memory of the machine, or
/// the limit of the container.
fn machine_bytes() -> Option<u64> {
    const CONTAINER_LIMITS: [&str; 2] =
        ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    // Without a limit the file contains "max", or a number larger than any machine's memory.
    let limits = CONTAINER_LIMITS
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.chain(installed_bytes()).min()
}

fn installed_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
