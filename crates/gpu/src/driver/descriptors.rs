//! The structs that describe memory, copies and nodes of graphs to the drivers.

use std::ffi::{c_int, c_uint, c_void};

use super::FunctionHandle;

/// `CUmemLocation`, with the layout of the driver's ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLocation {
    pub kind: c_int,
    pub id: c_int,
}

impl MemoryLocation {
    /// The memory of a device.
    pub(crate) fn device(id: c_int) -> Self {
        const DEVICE: c_int = 1;
        Self { kind: DEVICE, id }
    }
}

/// `CUmemAccessDesc`, `hipMemAccessDesc`: what a device may do with memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAccess {
    location: MemoryLocation,
    flags: c_int,
}

impl DeviceAccess {
    pub(crate) fn read_write(device: c_int) -> Self {
        const READ_WRITE: c_int = 3;
        Self { location: MemoryLocation::device(device), flags: READ_WRITE }
    }
}

/// `CUmemAllocationProp`, `hipMemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location: MemoryLocation,
    security_attributes: *mut c_void,
    /// Compression, access by other hardware, and usage: none is wished for.
    flags: [u8; 8],
}

impl AllocationProperties {
    /// Memory of a device that is not shared with other processes.
    pub(crate) fn of_device(device: c_int) -> Self {
        const PINNED: c_int = 1;
        Self {
            allocation_type: PINNED,
            handle_types: 0,
            location: MemoryLocation::device(device),
            security_attributes: std::ptr::null_mut(),
            flags: [0; 8],
        }
    }
}

/// `CUDA_MEMCPY2D`. An array of the driver (`array`) is not used here.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CopyDescriptor2d {
    pub(super) source: PlaneEnd,
    pub(super) destination: PlaneEnd,
    pub(super) width_bytes: usize,
    pub(super) height: usize,
}

#[repr(C)]
#[derive(Debug)]
pub(super) struct PlaneEnd {
    pub(super) x_bytes: usize,
    pub(super) y: usize,
    pub(super) kind: c_uint,
    pub(super) host: *mut c_void,
    pub(super) device: u64,
    pub(super) array: *mut c_void,
    pub(super) line_bytes: usize,
}

/// `CUDA_MEMCPY3D`; as `CUDA_MEMCPY3D_PEER` its ends have a context in place of `reserved`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CopyDescriptor3d {
    pub(super) source: VolumeEnd,
    pub(super) destination: VolumeEnd,
    pub(super) width_bytes: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

/// `CUDA_MEMCPY3D_PEER`, which has the layout of `CUDA_MEMCPY3D`.
pub(super) type PeerDescriptor3d = CopyDescriptor3d;

#[repr(C)]
#[derive(Debug)]
pub(super) struct VolumeEnd {
    pub(super) x_bytes: usize,
    pub(super) y: usize,
    pub(super) z: usize,
    pub(super) level_of_detail: usize,
    pub(super) kind: c_uint,
    pub(super) host: *mut c_void,
    pub(super) device: u64,
    pub(super) array: *mut c_void,
    /// Null, or the context of the memory.
    pub(super) context: *mut c_void,
    pub(super) line_bytes: usize,
    pub(super) plane_lines: usize,
}

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct VolumeOfHip {
    pub(super) source_array: *mut c_void,
    pub(super) source_position: [usize; 3],
    pub(super) source: PitchedPointer,
    pub(super) destination_array: *mut c_void,
    pub(super) destination_position: [usize; 3],
    pub(super) destination: PitchedPointer,
    /// Width in bytes, height, depth.
    pub(super) extents: [usize; 3],
    pub(super) kind: c_int,
}

/// `hipPitchedPtr`: the lines of an allocation have `line_bytes`, and its planes `plane_lines`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct PitchedPointer {
    pub(super) start: u64,
    pub(super) line_bytes: usize,
    pub(super) width_bytes: usize,
    pub(super) plane_lines: usize,
}

/// `CUmemcpyAttributes`, with the layout of the driver's ABI since CUDA 12.8. The bindings have it
/// only for newer versions.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Batch {
    pub source_access_order: c_int,
    pub source: MemoryLocation,
    pub destination: MemoryLocation,
    pub flags: u32,
}

/// `CUDA_KERNEL_NODE_PARAMS` in its first version, which all drivers know: the function's context
/// is that of the launch.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LaunchNode {
    pub(super) function: FunctionHandle,
    pub(super) blocks: [c_uint; 3],
    pub(super) threads: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) parameters: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
}

/// `hipKernelNodeParams`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LaunchNodeOfHip {
    pub(super) threads: [c_uint; 3],
    pub(super) extra: *mut *mut c_void,
    pub(super) function: FunctionHandle,
    pub(super) blocks: [c_uint; 3],
    pub(super) parameters: *mut *mut c_void,
    pub(super) shared_bytes: c_uint,
}

/// `CUDA_MEMSET_NODE_PARAMS`, and `hipMemsetParams` since HIP 7.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FillNode {
    pub(super) address: u64,
    pub(super) pitch_bytes: usize,
    pub(super) value: c_uint,
    pub(super) element_bytes: c_uint,
    /// In elements.
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `hipMemsetParams` before HIP 7.
#[repr(C)]
#[derive(Debug)]
pub(super) struct OldFillNodeOfHip {
    pub(super) address: u64,
    pub(super) element_bytes: c_uint,
    pub(super) height: usize,
    pub(super) pitch_bytes: usize,
    pub(super) value: c_uint,
    pub(super) width: usize,
}

#[cfg(feature = "cuda")]
const _: () = {
    use cudarc::driver::sys;
    assert!(size_of::<LaunchNode>() == size_of::<sys::CUDA_KERNEL_NODE_PARAMS_st>());
    assert!(size_of::<FillNode>() == size_of::<sys::CUDA_MEMSET_NODE_PARAMS_st>());
    assert!(size_of::<DeviceAccess>() == size_of::<sys::CUmemAccessDesc>());
    assert!(size_of::<AllocationProperties>() == size_of::<sys::CUmemAllocationProp>());
    assert!(size_of::<CopyDescriptor2d>() == size_of::<sys::CUDA_MEMCPY2D>());
    assert!(size_of::<CopyDescriptor3d>() == size_of::<sys::CUDA_MEMCPY3D>());
    assert!(size_of::<PeerDescriptor3d>() == size_of::<sys::CUDA_MEMCPY3D_PEER>());
};
const _: () = {
    assert!(size_of::<VolumeOfHip>() == 160, "as in hip_runtime_api.h");
    assert!(size_of::<DeviceAccess>() == 12, "as in hip_runtime_api.h");
    assert!(size_of::<AllocationProperties>() == 32, "as in hip_runtime_api.h");
    assert!(size_of::<LaunchNodeOfHip>() == 64, "as in hip_runtime_api.h");
    assert!(size_of::<OldFillNodeOfHip>() == 48, "as in hip_runtime_api.h");
};
