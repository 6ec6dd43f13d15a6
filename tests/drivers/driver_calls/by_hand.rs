//! What the hand-written cudarc programs share: cudarc's own objects, with its tracking off, as in
//! a program that orders its streams by hand.

use std::sync::Arc;

use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtrMut, LaunchConfig, PushKernelArg,
    sys,
};
use resident::cudarc::nvrtc::Ptx;

use crate::touches;

pub(crate) const GRID: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };

/// A context without cudarc's tracking.
pub(crate) fn context() -> Arc<CudaContext> {
    let context = CudaContext::new(0).expect("a device");
    // SAFETY: the programs order their streams by their own events.
    unsafe { context.disable_event_tracking() };
    context
}

pub(crate) fn function(context: &Arc<CudaContext>, arrays: usize) -> CudaFunction {
    let module = context.load_module(Ptx::from_src(touches::ptx(arrays))).expect("a module");
    module.load_function(&format!("touch{arrays}")).expect("an entry")
}

pub(crate) fn zeros(stream: &Arc<CudaStream>, len: usize) -> CudaSlice<f32> {
    stream.alloc_zeros(len).expect("memory")
}

/// Writes one value into all of the memory.
pub(crate) fn fill(stream: &Arc<CudaStream>, memory: &mut CudaSlice<f32>, value: f32) {
    let len = memory.len();
    let (address, _order) = memory.device_ptr_mut(stream);
    stream.context().bind_to_thread().expect("a context");
    // SAFETY: the memory has this many floats.
    unsafe { sys::cuMemsetD32Async(address, value.to_bits(), len, stream.cu_stream()) }
        .result()
        .expect("a fill");
}

/// Launches a kernel with the inputs and the output.
pub(crate) fn launch(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    inputs: &[&CudaSlice<f32>],
    output: &mut CudaSlice<f32>,
) {
    let mut launch = stream.launch_builder(function);
    inputs.iter().for_each(|input| {
        launch.arg(*input);
    });
    launch.arg(output);
    // SAFETY: the entry takes this number of pointers to floats.
    unsafe { launch.launch(GRID) }.expect("a launch");
}

/// Copies the face of a cube across its middle axis, to or from the device.
pub(crate) fn face(
    stream: &Arc<CudaStream>,
    cube: &mut CudaSlice<f32>,
    face: &mut [f32],
    side: usize,
    index: usize,
    goes_up: bool,
) {
    let (address, _order) = cube.device_ptr_mut(stream);
    let row = side * size_of::<f32>();
    let (host, device) =
        (sys::CUmemorytype::CU_MEMORYTYPE_HOST, sys::CUmemorytype::CU_MEMORYTYPE_DEVICE);
    let start = address + (index * row) as u64;
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: if goes_up { host } else { device },
        srcHost: face.as_ptr().cast(),
        srcDevice: start,
        srcArray: std::ptr::null_mut(),
        srcPitch: if goes_up { row } else { side * row },
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: if goes_up { device } else { host },
        dstHost: face.as_mut_ptr().cast(),
        dstDevice: start,
        dstArray: std::ptr::null_mut(),
        dstPitch: if goes_up { side * row } else { row },
        WidthInBytes: row,
        Height: side,
    };
    stream.context().bind_to_thread().expect("a context");
    // SAFETY: the face has `side` rows, and so does the cube with that pitch. When the call
    // returns, it no longer accesses the pageable memory.
    unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.cu_stream()) }
        .result()
        .expect("a copy");
}

/// Copies columns of a square sheet to columns of another, on the device.
pub(crate) fn columns(
    stream: &Arc<CudaStream>,
    (from, from_column): (&mut CudaSlice<f32>, usize),
    (to, to_column): (&mut CudaSlice<f32>, usize),
    [side, count]: [usize; 2],
) {
    let (source, _order) = from.device_ptr_mut(stream);
    let (destination, _order) = to.device_ptr_mut(stream);
    let bytes = |floats: usize| floats * size_of::<f32>();
    let copy = sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: source + bytes(from_column) as u64,
        srcArray: std::ptr::null_mut(),
        srcPitch: bytes(side),
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: destination + bytes(to_column) as u64,
        dstArray: std::ptr::null_mut(),
        dstPitch: bytes(side),
        WidthInBytes: bytes(count),
        Height: side,
    };
    stream.context().bind_to_thread().expect("a context");
    // SAFETY: both sheets have `side` rows of that pitch, and the columns lie within them.
    unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.cu_stream()) }
        .result()
        .expect("a copy");
}
