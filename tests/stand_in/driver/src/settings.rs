//! What the machine that the stand-in driver drives is like.

use std::time::Duration;

/// The machine: its devices, its driver, its links. Made with [`Settings::new`] and the methods
/// below, and given to [`load`](crate::load).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Settings {
    pub(crate) devices: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) is_seeded: bool,
    pub(crate) seed: u64,
    pub(crate) has_pools: bool,
    pub(crate) driver_version: i32,
    pub(crate) compute_capability: [i32; 2],
    pub(crate) peers_reach: bool,
    /// 0: as fast as the machine.
    pub(crate) link_bytes_per_second: f64,
    pub(crate) latency_ns: u64,
    pub(crate) poisons: bool,
    pub(crate) numa_node: i32,
    pub(crate) max_pitch_bytes: u64,
    pub(crate) locks_whole_pages: bool,
}

impl Settings {
    /// One device of 1 GiB with compute capability 9.0, memory pools and a driver of CUDA 13.5, a
    /// thread for each stream.
    pub fn new() -> Self {
        Self {
            devices: 1,
            memory_bytes: 1 << 30,
            is_seeded: false,
            seed: 0,
            has_pools: true,
            driver_version: 13_050,
            compute_capability: [9, 0],
            peers_reach: true,
            link_bytes_per_second: 0.0,
            latency_ns: 0,
            poisons: true,
            numa_node: 0,
            max_pitch_bytes: 0x7FFF_FFFF,
            locks_whole_pages: false,
        }
    }

    /// So many devices. With 0, `cuInit` says that there is none.
    pub fn devices(self, devices: u32) -> Self {
        Self { devices, ..self }
    }

    /// Bytes of each device.
    pub fn memory(self, len_bytes: u64) -> Self {
        Self { memory_bytes: len_bytes, ..self }
    }

    /// Nothing runs by itself: whoever waits or polls runs ready work, in an order drawn from
    /// `seed`.
    pub fn seed(self, seed: u64) -> Self {
        Self { is_seeded: true, seed, ..self }
    }

    /// Devices without memory pools: the calls of pools and of stream-ordered allocation are not
    /// supported.
    pub fn without_pools(self) -> Self {
        Self { has_pools: false, ..self }
    }

    /// What `cuDriverGetVersion` says: 13050 for CUDA 13.5. What PTX it takes, and which functions
    /// it has, follow.
    pub fn driver_version(self, driver_version: i32) -> Self {
        Self { driver_version, ..self }
    }

    /// Compute capability of each device.
    pub fn compute_capability(self, major: i32, minor: i32) -> Self {
        Self { compute_capability: [major, minor], ..self }
    }

    /// Whether devices reach each other's memory directly.
    pub fn peers(self, reach: bool) -> Self {
        Self { peers_reach: reach, ..self }
    }

    /// What copies between a device and the host cost: modelled time with a seed, real time
    /// without. A speed of 0 bytes per second means that length costs nothing.
    pub fn link(self, bytes_per_second: f64, latency: Duration) -> Self {
        Self {
            link_bytes_per_second: bytes_per_second,
            latency_ns: u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX),
            ..self
        }
    }

    /// Whether fresh and freed memory is filled with a pattern (all bits set). The default is yes.
    pub fn poison(self, poisons: bool) -> Self {
        Self { poisons, ..self }
    }

    /// The NUMA node of the host that devices say they are near to; -1 for none.
    pub fn numa_node(self, numa_node: i32) -> Self {
        Self { numa_node, ..self }
    }

    /// The largest pitch of a 2-D or 3-D copy.
    pub fn max_pitch(self, len_bytes: u64) -> Self {
        Self { max_pitch_bytes: len_bytes, ..self }
    }

    /// Registering host memory takes whole pages, so that two ranges on one page conflict.
    /// By default it takes only the bytes that are asked for, as current drivers do.
    pub fn locks_whole_pages(self) -> Self {
        Self { locks_whole_pages: true, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
