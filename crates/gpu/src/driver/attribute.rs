//! Attributes of devices, which CUDA and HIP number differently.

use std::ffi::c_int;

/// An attribute of a device, with the numbers that `CUdevice_attribute` and `hipDeviceAttribute_t`
/// give it. HIP has kept its numbers from 5.2 to 6.3.
macro_rules! attributes {
    ($($name:ident = $cuda:literal, $hip:literal;)*) => {
        /// An attribute of a device.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum DeviceAttribute {
            $($name,)*
        }

        impl DeviceAttribute {
            /// Its numbers in CUDA and in HIP.
            pub(super) fn numbers(self) -> [c_int; 2] {
                match self {
                    $(Self::$name => [$cuda, $hip],)*
                }
            }
        }
    };
}

attributes! {
    BlockExtentMaxX = 2, 26;
    BlockExtentMaxY = 3, 27;
    BlockExtentMaxZ = 4, 28;
    GridExtentMaxX = 5, 29;
    GridExtentMaxY = 6, 30;
    GridExtentMaxZ = 7, 31;
    SharedBytesPerBlock = 8, 74;
    PitchBytesMax = 11, 58;
    PciBus = 33, 67;
    PciDevice = 34, 68;
    PciDomain = 50, 69;
    PageableMemoryAccess = 88, 65;
    ConcurrentManagedAccess = 89, 9;
    SharedBytesPerBlockOptIn = 97, 75;
    HostPageTables = 100, 66;
    AddressManagement = 102, 89;
    MemoryPools = 115, 88;
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "cuda")]
    use cudarc::driver::sys::CUdevice_attribute as Of;

    use super::DeviceAttribute;

    /// The names of `hipDeviceAttribute_t` in the order of HIP 5.2's header, which begins with 0.
    /// Later headers have the last one too.
    const OF_HIP: &str = "
        EccEnabled AccessPolicyMaxWindowSize AsyncEngineCount CanMapHostMemory
        CanUseHostPointerForRegisteredMem ClockRate ComputeMode ComputePreemptionSupported
        ConcurrentKernels ConcurrentManagedAccess CooperativeLaunch
        CooperativeMultiDeviceLaunch DeviceOverlap DirectManagedMemAccessFromHost
        GlobalL1CacheSupported HostNativeAtomicSupported Integrated IsMultiGpuBoard
        KernelExecTimeout L2CacheSize LocalL1CacheSupported Luid LuidDeviceNodeMask
        ComputeCapabilityMajor ManagedMemory MaxBlocksPerMultiProcessor MaxBlockDimX
        MaxBlockDimY MaxBlockDimZ MaxGridDimX MaxGridDimY MaxGridDimZ MaxSurface1D
        MaxSurface1DLayered MaxSurface2D MaxSurface2DLayered MaxSurface3D MaxSurfaceCubemap
        MaxSurfaceCubemapLayered MaxTexture1DWidth MaxTexture1DLayered MaxTexture1DLinear
        MaxTexture1DMipmap MaxTexture2DWidth MaxTexture2DHeight MaxTexture2DGather
        MaxTexture2DLayered MaxTexture2DLinear MaxTexture2DMipmap MaxTexture3DWidth
        MaxTexture3DHeight MaxTexture3DDepth MaxTexture3DAlt MaxTextureCubemap
        MaxTextureCubemapLayered MaxThreadsDim MaxThreadsPerBlock MaxThreadsPerMultiProcessor
        MaxPitch MemoryBusWidth MemoryClockRate ComputeCapabilityMinor MultiGpuBoardGroupID
        MultiprocessorCount Name PageableMemoryAccess PageableMemoryAccessUsesHostPageTables
        PciBusId PciDeviceId PciDomainID PersistingL2CacheMaxSize MaxRegistersPerBlock
        MaxRegistersPerMultiprocessor ReservedSharedMemPerBlock MaxSharedMemoryPerBlock
        SharedMemPerBlockOptin SharedMemPerMultiprocessor SingleToDoublePrecisionPerfRatio
        StreamPrioritiesSupported SurfaceAlignment TccDriver TextureAlignment
        TexturePitchAlignment TotalConstantMemory TotalGlobalMem UnifiedAddressing Uuid
        WarpSize MemoryPoolsSupported VirtualMemoryManagementSupported
    ";

    #[test]
    fn the_numbers_of_hip_are_those_of_its_header() {
        for (attribute, name) in [
            (DeviceAttribute::BlockExtentMaxX, "MaxBlockDimX"),
            (DeviceAttribute::BlockExtentMaxY, "MaxBlockDimY"),
            (DeviceAttribute::BlockExtentMaxZ, "MaxBlockDimZ"),
            (DeviceAttribute::GridExtentMaxX, "MaxGridDimX"),
            (DeviceAttribute::GridExtentMaxY, "MaxGridDimY"),
            (DeviceAttribute::GridExtentMaxZ, "MaxGridDimZ"),
            (DeviceAttribute::SharedBytesPerBlock, "MaxSharedMemoryPerBlock"),
            (DeviceAttribute::PitchBytesMax, "MaxPitch"),
            (DeviceAttribute::PciBus, "PciBusId"),
            (DeviceAttribute::PciDevice, "PciDeviceId"),
            (DeviceAttribute::PciDomain, "PciDomainID"),
            (DeviceAttribute::PageableMemoryAccess, "PageableMemoryAccess"),
            (DeviceAttribute::ConcurrentManagedAccess, "ConcurrentManagedAccess"),
            (DeviceAttribute::HostPageTables, "PageableMemoryAccessUsesHostPageTables"),
            (DeviceAttribute::SharedBytesPerBlockOptIn, "SharedMemPerBlockOptin"),
            (DeviceAttribute::MemoryPools, "MemoryPoolsSupported"),
            (DeviceAttribute::AddressManagement, "VirtualMemoryManagementSupported"),
        ] {
            let number = OF_HIP.split_whitespace().position(|known| known == name);
            assert_eq!(Some(attribute.numbers()[1] as usize), number, "{attribute:?}");
        }
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn the_numbers_of_cuda_are_those_of_the_bindings() {
        for (attribute, number) in [
            (DeviceAttribute::BlockExtentMaxX, Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            (DeviceAttribute::BlockExtentMaxY, Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            (DeviceAttribute::BlockExtentMaxZ, Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
            (DeviceAttribute::GridExtentMaxX, Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            (DeviceAttribute::GridExtentMaxY, Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            (DeviceAttribute::GridExtentMaxZ, Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
            (
                DeviceAttribute::SharedBytesPerBlock,
                Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
            ),
            (DeviceAttribute::PitchBytesMax, Of::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
            (DeviceAttribute::PciBus, Of::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
            (DeviceAttribute::PciDevice, Of::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
            (DeviceAttribute::PciDomain, Of::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
            (DeviceAttribute::PageableMemoryAccess, Of::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS),
            (
                DeviceAttribute::HostPageTables,
                Of::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
            ),
            (
                DeviceAttribute::ConcurrentManagedAccess,
                Of::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
            ),
            (
                DeviceAttribute::SharedBytesPerBlockOptIn,
                Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            ),
            (DeviceAttribute::MemoryPools, Of::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
            (
                DeviceAttribute::AddressManagement,
                Of::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED,
            ),
        ] {
            assert_eq!(attribute.numbers()[0], number as i32, "{attribute:?}");
        }
    }
}
