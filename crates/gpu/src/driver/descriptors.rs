//! The structs that describe copies to the drivers.

use std::ffi::{c_int, c_uint, c_void};

/// `CUmemLocation`, with the layout of the driver's ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLocation {
    pub kind: c_int,
    pub id: c_int,
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

#[cfg(feature = "cuda")]
const _: () = {
    use cudarc::driver::sys;
    assert!(size_of::<CopyDescriptor2d>() == size_of::<sys::CUDA_MEMCPY2D>());
    assert!(size_of::<CopyDescriptor3d>() == size_of::<sys::CUDA_MEMCPY3D>());
    assert!(size_of::<PeerDescriptor3d>() == size_of::<sys::CUDA_MEMCPY3D_PEER>());
};
const _: () = assert!(size_of::<VolumeOfHip>() == 160, "as in hip_runtime_api.h");
