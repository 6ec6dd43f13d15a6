//! The settings of the simulated machine.

use std::marker::PhantomData;

/// The number of bytes of an architecture's name, and one for the zero behind it.
const ARCHITECTURE_BYTES_MAX: usize = 64;

/// The devices of the simulated machine, and its driver or version of HIP. Create them with
/// [`Settings::new`] and the methods below, and pass them to `load`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[must_use]
pub struct Settings<Vendor> {
    values: Values,
    vendor: PhantomData<Vendor>,
}

/// The settings of the stand-in for CUDA's driver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cuda {}

/// The settings of the stand-in for HIP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Hip {}

/// What was set, as client and shared object exchange it. What the other vendor alone has is not
/// used.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Values {
    pub devices: u32,
    pub memory_bytes: u64,
    pub is_seeded: bool,
    pub seed: u64,
    pub has_pools: bool,
    pub page_bytes: u64,
    pub version: i32,
    pub compute_capability: [i32; 2],
    pub can_access_peers: bool,
    pub poisons: bool,
    pub numa_node: i32,
    pub max_pitch_bytes: u64,
    pub locks_whole_pages: bool,
    pub is_concurrent: bool,
    pub registers_read_only: bool,
    pub stages_pageable: bool,
    pub reaches_pageable: bool,
    pub says_idle: bool,
    pub has_priorities: bool,
    pub has_function_attributes: bool,
    pub alignment_bytes: u64,
    pub waits_for_events: bool,
    pub keeps_registered: bool,
    /// A text, followed by zeros.
    architecture: [u8; ARCHITECTURE_BYTES_MAX],
}

impl Values {
    /// The name of the devices' architecture.
    #[must_use]
    pub fn architecture_name(&self) -> &str {
        let end = self.architecture.iter().position(|byte| *byte == 0);
        let name = &self.architecture[..end.unwrap_or(ARCHITECTURE_BYTES_MAX)];
        std::str::from_utf8(name).unwrap_or_default()
    }
}

impl Settings<Cuda> {
    /// One device with 1 GiB, compute capability 9.0 and memory pools, a CUDA 13.5 driver, and a
    /// thread for each stream.
    pub fn new() -> Self {
        Self::of_version(13_050).compute_capability(9, 0)
    }

    /// The result of `cuDriverGetVersion`: 13050 for CUDA 13.5. It determines the accepted PTX
    /// versions and the available functions.
    pub fn driver_version(self, version: i32) -> Self {
        self.with(|values| values.version = version)
    }

    /// The compute capability of each device.
    pub fn compute_capability(self, major: i32, minor: i32) -> Self {
        self.with(|values| values.compute_capability = [major, minor])
    }

    /// The NUMA node of the host that devices report as near; -1 for none.
    pub fn numa_node(self, numa_node: i32) -> Self {
        self.with(|values| values.numa_node = numa_node)
    }
}

impl Settings<Hip> {
    /// One device with 1 GiB and memory pools, for gfx90a; HIP 6.3; a thread for each stream.
    pub fn new() -> Self {
        Self::of_version(60_300_000).architecture("gfx90a:sramecc+:xnack-")
    }

    /// The result of `hipRuntimeGetVersion`: 60300000 for HIP 6.3, 50221153 for Debian's HIP 5.2.
    /// The library has only the functions that this version has. A later `change` does not add or
    /// remove functions.
    pub fn version(self, version: i32) -> Self {
        self.with(|values| values.version = version)
    }

    /// The `gcnArchName` of each device, with the state of each feature: `gfx90a:sramecc+:xnack-`.
    ///
    /// # Panics
    ///
    /// If the name has 64 bytes or more.
    pub fn architecture(self, name: &str) -> Self {
        assert!(name.len() < ARCHITECTURE_BYTES_MAX, "{name} is too long for an architecture");
        self.with(|values| {
            values.architecture = [0; ARCHITECTURE_BYTES_MAX];
            values.architecture[..name.len()].copy_from_slice(name.as_bytes());
        })
    }
}

/// What HIP leaves to a runtime, where others than AMD's differ.
impl Settings<Hip> {
    /// All that follows up to [`alignment`](Self::alignment), with 128 bytes.
    pub fn sparse(self) -> Self {
        self.copies_pageable_late()
            .without_priorities()
            .without_function_attributes()
            .alignment(128)
    }

    /// Copies with pageable memory are as asynchronous as those with pinned memory.
    pub fn copies_pageable_late(self) -> Self {
        self.with(|values| values.stages_pageable = false)
    }

    /// All streams have the same priority: the range is from 0 to 0.
    pub fn without_priorities(self) -> Self {
        self.with(|values| values.has_priorities = false)
    }

    /// A runtime without `hipFuncGetAttribute`.
    pub fn without_function_attributes(self) -> Self {
        self.with(|values| values.has_function_attributes = false)
    }

    /// What the addresses of device memory are multiples of, at most 256, and of no larger power of
    /// two.
    pub fn alignment(self, len_bytes: u64) -> Self {
        self.with(|values| values.alignment_bytes = len_bytes)
    }

    /// A runtime that breaks a promise: `hipStreamQuery` does not say that work is complete before
    /// something waits for it.
    pub fn never_says_idle(self) -> Self {
        self.with(|values| values.says_idle = false)
    }

    /// A runtime that breaks a promise: a stream does not wait for an event.
    pub fn ignores_waits(self) -> Self {
        self.with(|values| values.waits_for_events = false)
    }

    /// A runtime that breaks a promise: when a kernel ends, memory that the caller registered gets
    /// the bytes back that it had when the kernel was launched.
    pub fn restores_registered_memory(self) -> Self {
        self.with(|values| values.keeps_registered = false)
    }
}

impl<Vendor> Settings<Vendor> {
    fn of_version(version: i32) -> Self {
        let values = Values {
            devices: 1,
            memory_bytes: 1 << 30,
            is_seeded: false,
            seed: 0,
            has_pools: true,
            page_bytes: 2 << 20,
            version,
            compute_capability: [0; 2],
            can_access_peers: true,
            poisons: true,
            numa_node: 0,
            max_pitch_bytes: 0x7FFF_FFFF,
            locks_whole_pages: false,
            is_concurrent: true,
            registers_read_only: true,
            stages_pageable: true,
            reaches_pageable: false,
            says_idle: true,
            has_priorities: true,
            has_function_attributes: true,
            alignment_bytes: 256,
            waits_for_events: true,
            keeps_registered: true,
            architecture: [0; ARCHITECTURE_BYTES_MAX],
        };
        Self { values, vendor: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut Values)) -> Self {
        change(&mut self.values);
        self
    }

    /// What was set.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The number of devices. With 0, `cuInit` returns that there is no device, and most functions
    /// of HIP return `hipErrorInvalidDevice`.
    pub fn devices(self, devices: u32) -> Self {
        self.with(|values| values.devices = devices)
    }

    /// The memory of each device in bytes.
    pub fn memory(self, len_bytes: u64) -> Self {
        self.with(|values| values.memory_bytes = len_bytes)
    }

    /// Makes execution deterministic: work runs only when a thread waits or polls, in an order
    /// drawn from `seed`.
    pub fn seed(self, seed: u64) -> Self {
        self.with(|values| (values.is_seeded, values.seed) = (true, seed))
    }

    /// Devices without memory pools: pool functions and stream-ordered allocation are not
    /// supported.
    pub fn without_pools(self) -> Self {
        self.with(|values| values.has_pools = false)
    }

    /// The smallest piece of memory that can be mapped to reserved addresses, in bytes: 2 MiB by
    /// default, as on GPUs. With 0 the devices do not support it.
    pub fn page_bytes(self, len_bytes: u64) -> Self {
        self.with(|values| values.page_bytes = len_bytes)
    }

    /// Whether devices can access each other's memory directly.
    pub fn peers(self, reach: bool) -> Self {
        self.with(|values| values.can_access_peers = reach)
    }

    /// Whether new and freed memory is filled with a pattern (all bits set). The default is yes.
    pub fn poison(self, poisons: bool) -> Self {
        self.with(|values| values.poisons = poisons)
    }

    /// The largest pitch of a 2-D or 3-D copy in bytes.
    pub fn max_pitch(self, len_bytes: u64) -> Self {
        self.with(|values| values.max_pitch_bytes = len_bytes)
    }

    /// Registers host memory by whole pages, so that two ranges on one page conflict. By default it
    /// registers only the requested bytes, as current drivers do.
    pub fn locks_whole_pages(self) -> Self {
        self.with(|values| values.locks_whole_pages = true)
    }

    /// Devices that access the host's pageable memory at its own addresses, by the host's page
    /// tables, as GH200 and MI300A do. A kernel that accesses what no allocation has ends the
    /// process, as on the host.
    pub fn reaches_pageable(self) -> Self {
        self.with(|values| values.reaches_pageable = true)
    }

    /// Devices beside which the host must not access managed memory: as on Windows and Jetson
    /// (`CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS` is 0), or without XNACK
    /// (`hipDeviceAttributeConcurrentManagedAccess` is 0).
    pub fn without_concurrent_managed_access(self) -> Self {
        self.with(|values| values.is_concurrent = false)
    }

    /// Devices that register no host memory which the process may only read
    /// (`CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED` is 0).
    pub fn without_read_only_registration(self) -> Self {
        self.with(|values| values.registers_read_only = false)
    }
}

impl Default for Settings<Cuda> {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Settings<Hip> {
    fn default() -> Self {
        Self::new()
    }
}
