//! The settings of the simulated machine.

/// The devices of the simulated machine, and its version of HIP. Create it with [`Settings::new`]
/// and the methods below, and pass it to [`load`](crate::load).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Settings {
    pub(crate) devices: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) is_seeded: bool,
    pub(crate) seed: u64,
    pub(crate) has_pools: bool,
    pub(crate) version: i32,
    pub(crate) can_access_peers: bool,
    pub(crate) poisons: bool,
    pub(crate) max_pitch_bytes: u64,
    pub(crate) locks_whole_pages: bool,
    pub(crate) is_concurrent: bool,
    /// A text, followed by zeros.
    architecture: [u8; ARCHITECTURE_BYTES_MAX],
}

const ARCHITECTURE_BYTES_MAX: usize = 64;

impl Settings {
    /// One device with 1 GiB and memory pools, for gfx90a; HIP 6.3; a thread for each stream.
    pub fn new() -> Self {
        let settings = Self {
            devices: 1,
            memory_bytes: 1 << 30,
            is_seeded: false,
            seed: 0,
            has_pools: true,
            version: 60_300_000,
            can_access_peers: true,
            poisons: true,
            max_pitch_bytes: 0x7FFF_FFFF,
            locks_whole_pages: false,
            is_concurrent: true,
            architecture: [0; ARCHITECTURE_BYTES_MAX],
        };
        settings.architecture("gfx90a:sramecc+:xnack-")
    }

    /// The number of devices. With 0, most functions return `hipErrorInvalidDevice`.
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

    /// Devices without memory pools: pool functions are not supported.
    pub fn without_pools(self) -> Self {
        Self { has_pools: false, ..self }
    }

    /// The result of `hipRuntimeGetVersion`: 60300000 for HIP 6.3, 50221153 for Debian's HIP 5.2.
    /// The library has only the functions that this version has. A later
    /// [`change`](crate::change) does not add or remove functions.
    pub fn version(self, version: i32) -> Self {
        Self { version, ..self }
    }

    /// The `gcnArchName` of each device, with the state of each feature: `gfx90a:sramecc+:xnack-`.
    ///
    /// # Panics
    ///
    /// If the name has 64 bytes or more.
    pub fn architecture(self, name: &str) -> Self {
        let mut architecture = [0; ARCHITECTURE_BYTES_MAX];
        assert!(name.len() < ARCHITECTURE_BYTES_MAX, "{name} is too long for an architecture");
        architecture[..name.len()].copy_from_slice(name.as_bytes());
        Self { architecture, ..self }
    }

    /// Whether devices can access each other's memory directly.
    pub fn peers(self, reach: bool) -> Self {
        Self { can_access_peers: reach, ..self }
    }

    /// Whether new and freed memory is filled with a pattern (all bits set). The default is yes.
    pub fn poison(self, poisons: bool) -> Self {
        Self { poisons, ..self }
    }

    /// The largest pitch of a 2-D or 3-D copy in bytes.
    pub fn max_pitch(self, len_bytes: u64) -> Self {
        Self { max_pitch_bytes: len_bytes, ..self }
    }

    /// Registers host memory by whole pages, so that two ranges on one page conflict. By default it
    /// registers only the requested bytes.
    pub fn locks_whole_pages(self) -> Self {
        Self { locks_whole_pages: true, ..self }
    }

    /// Devices beside which the host must not access managed memory
    /// (`hipDeviceAttributeConcurrentManagedAccess` is 0), as without XNACK.
    pub fn without_concurrent_managed_access(self) -> Self {
        Self { is_concurrent: false, ..self }
    }

    /// The name of the devices' architecture.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there are no devices"))]
    pub(crate) fn architecture_name(&self) -> &str {
        let end = self.architecture.iter().position(|byte| *byte == 0);
        let name = &self.architecture[..end.unwrap_or(ARCHITECTURE_BYTES_MAX)];
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
