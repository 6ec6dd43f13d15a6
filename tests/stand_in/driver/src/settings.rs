//! The settings of the simulated machine.

/// The devices and driver of the simulated machine. Create it with [`Settings::new`] and the
/// methods below, and pass it to [`load`](crate::load).
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
    pub(crate) can_access_peers: bool,
    pub(crate) poisons: bool,
    pub(crate) numa_node: i32,
    pub(crate) max_pitch_bytes: u64,
    pub(crate) locks_whole_pages: bool,
    pub(crate) is_concurrent: bool,
}

impl Settings {
    /// One device with 1 GiB, compute capability 9.0 and memory pools, a CUDA 13.5 driver, and a
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
            can_access_peers: true,
            poisons: true,
            numa_node: 0,
            max_pitch_bytes: 0x7FFF_FFFF,
            locks_whole_pages: false,
            is_concurrent: true,
        }
    }

    /// The number of devices. With 0, `cuInit` returns that there is no device.
    pub fn devices(self, devices: u32) -> Self {
        Self { devices, ..self }
    }

    /// The memory of each device in bytes.
    pub fn memory(self, len_bytes: u64) -> Self {
        Self { memory_bytes: len_bytes, ..self }
    }

    /// Makes execution deterministic: work runs only when a thread waits or polls, in an order
    /// drawn from `seed`.
    pub fn seed(self, seed: u64) -> Self {
        Self { is_seeded: true, seed, ..self }
    }

    /// Devices without memory pools: pool functions and stream-ordered allocation are not
    /// supported.
    pub fn without_pools(self) -> Self {
        Self { has_pools: false, ..self }
    }

    /// The result of `cuDriverGetVersion`: 13050 for CUDA 13.5. It determines the accepted PTX
    /// versions and the available functions.
    pub fn driver_version(self, driver_version: i32) -> Self {
        Self { driver_version, ..self }
    }

    /// The compute capability of each device.
    pub fn compute_capability(self, major: i32, minor: i32) -> Self {
        Self { compute_capability: [major, minor], ..self }
    }

    /// Whether devices can access each other's memory directly.
    pub fn peers(self, reach: bool) -> Self {
        Self { can_access_peers: reach, ..self }
    }

    /// Whether new and freed memory is filled with a pattern (all bits set). The default is yes.
    pub fn poison(self, poisons: bool) -> Self {
        Self { poisons, ..self }
    }

    /// The NUMA node of the host that devices report as near; -1 for none.
    pub fn numa_node(self, numa_node: i32) -> Self {
        Self { numa_node, ..self }
    }

    /// The largest pitch of a 2-D or 3-D copy in bytes.
    pub fn max_pitch(self, len_bytes: u64) -> Self {
        Self { max_pitch_bytes: len_bytes, ..self }
    }

    /// Registers host memory by whole pages, so that two ranges on one page conflict. By default it
    /// registers only the requested bytes, as current drivers do.
    pub fn locks_whole_pages(self) -> Self {
        Self { locks_whole_pages: true, ..self }
    }

    /// Devices beside which the host must not access managed memory, as on Windows and Jetson
    /// (`CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS` is 0).
    pub fn without_concurrent_managed_access(self) -> Self {
        Self { is_concurrent: false, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
