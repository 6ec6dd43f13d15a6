//! Copies and fills of rows and slices, and copies between devices.

use resident::cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUmemorytype, CUresult};
use resident::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, result};
use std::sync::Arc;

use crate::driver::choice::{not_done, two_contexts, with_stream};
use crate::shared::{code, done};

fn address<T>(memory: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    memory.device_ptr(stream).0
}

fn row(len: u8) -> Vec<u8> {
    (0..len).collect()
}

/// A 2-D copy of this width and height between two ranges of memory, each given by its kind,
/// address and pitch. All offsets are 0; tests change them.
pub(super) fn copy_2d(
    source: (CUmemorytype, u64, usize),
    destination: (CUmemorytype, u64, usize),
    width: usize,
    height: usize,
) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: source.0,
        srcHost: std::ptr::with_exposed_provenance(source.1 as usize),
        srcDevice: source.1,
        srcArray: std::ptr::null_mut(),
        srcPitch: source.2,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: destination.0,
        dstHost: std::ptr::with_exposed_provenance_mut(destination.1 as usize),
        dstDevice: destination.1,
        dstArray: std::ptr::null_mut(),
        dstPitch: destination.2,
        WidthInBytes: width,
        Height: height,
    }
}

fn submit_2d(
    copy: &CUDA_MEMCPY2D,
    stream: &CudaStream,
) -> Result<(), resident::cudarc::driver::DriverError> {
    // SAFETY: the copy describes live memory of the test, or the driver refuses it.
    unsafe { sys::cuMemcpy2DAsync_v2(copy, stream.cu_stream()) }.result()
}

pub(super) use CUmemorytype::CU_MEMORYTYPE_DEVICE as DEVICE;
use CUmemorytype::{CU_MEMORYTYPE_HOST as HOST, CU_MEMORYTYPE_UNIFIED as UNIFIED};

#[test]
fn a_box_of_two_dimensions_is_uploaded_and_downloaded() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let source = row(24);
    let memory = stream.alloc_zeros::<u8>(64).expect("memory");
    // Rows 1 and 2 of four rows of six bytes, three bytes each, starting at byte 2, to row 1 of
    // rows of sixteen bytes, starting at byte 4.
    let up = copy_2d(
        (HOST, source.as_ptr().expose_provenance() as u64, 6),
        (DEVICE, address(&memory, &stream), 16),
        3,
        2,
    );
    let up = CUDA_MEMCPY2D { srcXInBytes: 2, srcY: 1, dstXInBytes: 4, dstY: 1, ..up };
    submit_2d(&up, &stream).expect("a copy");
    let whole = stream.clone_dtoh(&memory).expect("a copy");
    let mut expected = vec![0; 64];
    expected[20..23].copy_from_slice(&[8, 9, 10]);
    expected[36..39].copy_from_slice(&[14, 15, 16]);
    assert_eq!(whole, expected);
    let mut down = vec![0_u8; 10];
    let place = down.as_mut_ptr().expose_provenance() as u64;
    let copy = copy_2d((UNIFIED, address(&memory, &stream), 16), (HOST, place, 5), 3, 2);
    submit_2d(&CUDA_MEMCPY2D { srcXInBytes: 4, srcY: 1, ..copy }, &stream).expect("a copy");
    assert_eq!(
        down,
        [8, 9, 10, 0, 0, 14, 15, 16, 0, 0],
        "the copy has waited, and wrote only the box"
    );
}

#[test]
fn pitches_have_limits() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let memory = stream.alloc_zeros::<u8>(64).expect("memory");
    let here = address(&memory, &stream);
    let refused = |source_pitch, destination_pitch| {
        let copy =
            copy_2d((DEVICE, here, source_pitch), (DEVICE, here + 32, destination_pitch), 4, 2);
        code(submit_2d(&copy, &stream))
    };
    assert_eq!(refused(3, 8), CUresult::CUDA_ERROR_INVALID_VALUE, "narrower than a row");
    assert_eq!(refused(8, 1 << 31), CUresult::CUDA_ERROR_INVALID_VALUE, "above the device's limit");
    let nothing = copy_2d((DEVICE, here, 1), (DEVICE, here, 1), 4, 0);
    submit_2d(&nothing, &stream).expect("a copy of nothing");
}

/// A 3-D copy between these kinds of memory. All other fields are 0; tests set them.
pub(super) fn copy_3d(source: CUmemorytype, destination: CUmemorytype) -> CUDA_MEMCPY3D {
    let mut copy = std::mem::MaybeUninit::<CUDA_MEMCPY3D>::zeroed();
    // SAFETY: all zeros are a valid value of each field except the two kinds, which are set.
    unsafe {
        (&raw mut (*copy.as_mut_ptr()).srcMemoryType).write(source);
        (&raw mut (*copy.as_mut_ptr()).dstMemoryType).write(destination);
        copy.assume_init()
    }
}

#[test]
fn a_box_of_three_dimensions_is_uploaded_and_downloaded() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let (source, mut down) = (row(24), vec![0_u8; 24]);
    let memory = stream.alloc_zeros::<u8>(8).expect("memory");
    // Of two slices of three rows of four bytes: rows 1 and 2, bytes 2 and 3 of both slices.
    let mut up = copy_3d(HOST, DEVICE);
    (up.srcXInBytes, up.srcY) = (2, 1);
    (up.srcHost, up.srcPitch, up.srcHeight) = (source.as_ptr().cast(), 4, 3);
    (up.dstDevice, up.dstPitch, up.dstHeight) = (address(&memory, &stream), 2, 2);
    (up.WidthInBytes, up.Height, up.Depth) = (2, 2, 2);
    let mut back = copy_3d(DEVICE, HOST);
    (back.srcDevice, back.srcPitch, back.srcHeight) = (up.dstDevice, 2, 2);
    (back.dstXInBytes, back.dstY) = (2, 1);
    (back.dstHost, back.dstPitch, back.dstHeight) = (down.as_mut_ptr().cast(), 4, 3);
    (back.WidthInBytes, back.Height, back.Depth) = (2, 2, 2);
    // SAFETY: all boxes lie in live memory.
    unsafe {
        sys::cuMemcpy3DAsync_v2(&raw const up, stream.cu_stream()).result().expect("a copy");
        sys::cuMemcpy3DAsync_v2(&raw const back, stream.cu_stream()).result().expect("a copy");
    }
    let mut expected = vec![0_u8; 24];
    [6, 7, 10, 11, 18, 19, 22, 23].into_iter().for_each(|index| expected[index] = index as u8);
    assert_eq!(down, expected);
}

#[test]
fn a_box_of_three_dimensions_moves_within_a_device() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let source = stream.clone_htod(&row(60)).expect("a copy");
    let destination = stream.alloc_zeros::<u8>(8).expect("memory");
    // Of three slices of four rows of five bytes: slices 1 and 2, rows 2 and 3, bytes 1 and 2.
    let mut copy = copy_3d(DEVICE, DEVICE);
    (copy.srcXInBytes, copy.srcY, copy.srcZ) = (1, 2, 1);
    (copy.srcDevice, copy.srcPitch, copy.srcHeight) = (address(&source, &stream), 5, 4);
    (copy.dstDevice, copy.dstPitch, copy.dstHeight) = (address(&destination, &stream), 2, 2);
    (copy.WidthInBytes, copy.Height, copy.Depth) = (2, 2, 2);
    // SAFETY: both boxes lie in live memory.
    done(unsafe { sys::cuMemcpy3DAsync_v2(&raw const copy, stream.cu_stream()) });
    assert_eq!(stream.clone_dtoh(&destination).expect("a copy"), [31, 32, 36, 37, 51, 52, 56, 57]);
    copy.srcHeight = 3;
    // SAFETY: the driver refuses the copy.
    let refused = unsafe { sys::cuMemcpy3DAsync_v2(&raw const copy, stream.cu_stream()) }.result();
    assert_eq!(code(refused), CUresult::CUDA_ERROR_INVALID_VALUE, "slices lower than the box");
}

#[test]
fn fills_repeat_their_pattern() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let memory = stream.alloc_zeros::<u8>(16).expect("memory");
    let here = address(&memory, &stream);
    // SAFETY: the bytes lie within the memory, or the driver refuses the call.
    unsafe {
        done(sys::cuMemsetD2D16Async(here, 8, 0x0201, 2, 2, stream.cu_stream()));
        sys::cuMemsetD8Async(here + 15, 9, 1, stream.cu_stream()).result().expect("a fill");
        assert_eq!(
            code(sys::cuMemsetD32Async(here + 2, 0, 1, stream.cu_stream()).result()),
            CUresult::CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(
        stream.clone_dtoh(&memory).expect("a copy"),
        [1, 2, 1, 2, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 9]
    );
}

/// Copies between two devices on the stream of either one; the later copy to the host, on the same
/// stream, gets the result.
fn cross(from: &Arc<CudaContext>, to: &Arc<CudaContext>, on_source: bool) -> Vec<u8> {
    let (near, far) = (from.new_stream().expect("a stream"), to.new_stream().expect("a stream"));
    let source = near.clone_htod(&row(8)).expect("a copy");
    let destination = far.alloc_zeros::<u8>(8).expect("memory");
    near.synchronize().expect("it is there");
    far.synchronize().expect("it is there");
    let stream = if on_source { &near } else { &far };
    stream.context().bind_to_thread().expect("a context");
    let (source, destination) = (address(&source, &near), address(&destination, &far));
    stream.context().bind_to_thread().expect("a context");
    let mut seen = vec![0; 8];
    // SAFETY: each address is that of live memory of eight bytes.
    unsafe {
        result::memcpy_peer_async(
            to.cu_ctx(),
            destination,
            from.cu_ctx(),
            source,
            8,
            stream.cu_stream(),
        )
        .expect("a copy");
        done(sys::cuMemcpyDtoHAsync_v2(
            seen.as_mut_ptr().cast(),
            destination,
            8,
            stream.cu_stream(),
        ));
    }
    seen
}

#[test]
fn devices_copy_to_each_other_on_either_ones_stream() {
    let Some([one, other]) = on_either_driver!(Gpu; two_contexts()) else { return };
    assert_eq!(cross(&one, &other, true), row(8));
    assert_eq!(cross(&one, &other, false), row(8));
}

#[test]
fn peers_are_enabled_once() {
    let Some([one, other]) = on_either_driver!(Gpu; two_contexts()) else { return };
    one.bind_to_thread().expect("a context");
    let mut can = 0;
    // SAFETY: the pointer's target lives during the call.
    done(unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, one.cu_device(), other.cu_device()) });
    if can == 0 {
        return not_done("the GPUs of this machine cannot access each other's memory");
    }
    let enable = |context: &CudaContext| {
        // SAFETY: the context is live.
        unsafe { sys::cuCtxEnablePeerAccess(context.cu_ctx(), 0) }.result()
    };
    enable(&other).expect("peer access is possible");
    assert_eq!(code(enable(&other)), CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    assert_eq!(code(enable(&one)), CUresult::CUDA_ERROR_INVALID_CONTEXT, "it is current");
    // SAFETY: the context is live.
    unsafe { sys::cuCtxDisablePeerAccess(other.cu_ctx()) }.result().expect("it was enabled");
}
