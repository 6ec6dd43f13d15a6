//! What the hand-written cudarc programs share: cudarc's own objects, with its tracking off, as in
//! a program that orders its streams by hand.

use std::sync::Arc;

use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtrMut, LaunchConfig, PushKernelArg,
    sys,
};
use resident::cudarc::nvrtc::Ptx;
use resident_benches::gpu::twin::rows;

use crate::touches;

use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};

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

/// A new stream, and a kernel on so many arrays.
pub(crate) fn stream_and_function(arrays: usize) -> (Arc<CudaStream>, CudaFunction) {
    let context = context();
    (context.new_stream().expect("a stream"), function(&context, arrays))
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
    done(unsafe { sys::cuMemsetD32Async(address, value.to_bits(), len, stream.cu_stream()) });
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

/// Fails unless a call succeeded.
#[track_caller]
fn done(outcome: sys::CUresult) {
    assert_eq!(outcome, sys::CUresult::CUDA_SUCCESS);
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
    let host = (HOST, face.as_mut_ptr().expose_provenance() as u64, row);
    let device = (DEVICE, address + (index * row) as u64, side * row);
    let (from, to) = if goes_up { (host, device) } else { (device, host) };
    let copy = rows(from, to, [row, side]);
    stream.context().bind_to_thread().expect("a context");
    // SAFETY: the face has `side` rows, and so does the cube with that pitch. When the call
    // returns, it no longer accesses the pageable memory.
    done(unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.cu_stream()) });
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
    let from = (DEVICE, source + bytes(from_column) as u64, bytes(side));
    let to = (DEVICE, destination + bytes(to_column) as u64, bytes(side));
    let copy = rows(from, to, [bytes(count), side]);
    stream.context().bind_to_thread().expect("a context");
    // SAFETY: both sheets have `side` rows of that pitch, and the columns lie within them.
    done(unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream.cu_stream()) });
}
