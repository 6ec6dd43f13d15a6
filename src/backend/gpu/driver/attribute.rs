//! Attributes of devices, which CUDA and HIP number differently.

use std::ffi::c_int;

/// An attribute of a device, with the numbers that `CUdevice_attribute` and `hipDeviceAttribute_t`
/// give it. HIP has kept its numbers from 5.2 to 6.3.
macro_rules! attributes {
    ($($name:ident = $cuda:literal, $hip:literal;)*) => {
        /// An attribute of a device.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Attribute {
            $($name,)*
        }

        impl Attribute {
            pub(super) fn number_in_cuda(self) -> c_int {
                match self {
                    $(Self::$name => $cuda,)*
                }
            }

            pub(super) fn number_in_hip(self) -> c_int {
                match self {
                    $(Self::$name => $hip,)*
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
    CapabilityMajor = 75, 23;
    CapabilityMinor = 76, 61;
    ConcurrentManagedAccess = 89, 9;
    SharedBytesPerBlockOptIn = 97, 75;
    MemoryPools = 115, 88;
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use cudarc::driver::sys::CUdevice_attribute as Of;

    use super::Attribute;

    #[test]
    fn the_numbers_of_cuda_are_those_of_the_bindings() {
        for (attribute, number) in [
            (Attribute::BlockExtentMaxX, Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            (Attribute::BlockExtentMaxZ, Of::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
            (Attribute::GridExtentMaxX, Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            (Attribute::GridExtentMaxZ, Of::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
            (Attribute::SharedBytesPerBlock, Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
            (Attribute::PitchBytesMax, Of::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
            (Attribute::PciBus, Of::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
            (Attribute::PciDevice, Of::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
            (Attribute::PciDomain, Of::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
            (Attribute::CapabilityMajor, Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            (Attribute::CapabilityMinor, Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
            (Attribute::ConcurrentManagedAccess, Of::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS),
            (
                Attribute::SharedBytesPerBlockOptIn,
                Of::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            ),
            (Attribute::MemoryPools, Of::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
        ] {
            assert_eq!(attribute.number_in_cuda(), number as i32, "{attribute:?}");
        }
    }
}
