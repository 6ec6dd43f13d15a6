//! The programs, written by hand with cudarc, with its tracking off.

use std::sync::Arc;

use resident::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use resident::cudarc::nvrtc::Ptx;

use super::kernels::{LEN, STEPS, THREADS, entry, ptx};
use super::ours::Program;

const GRID: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };

fn context() -> Arc<CudaContext> {
    resident_free_driver::load().expect("the free driver loads");
    let context = CudaContext::new(0).expect("a device");
    // SAFETY: the free driver runs no work, so there is none to order.
    unsafe { context.disable_event_tracking() };
    context
}

fn function(context: &Arc<CudaContext>, arrays: usize) -> CudaFunction {
    let module = context.load_module(Ptx::from_src(ptx(arrays))).expect("a module");
    module.load_function(&entry(arrays)).expect("an entry")
}

fn zeros(stream: &Arc<CudaStream>) -> CudaSlice<f32> {
    stream.alloc_zeros(LEN).expect("memory")
}

fn launch_with(
    stream: &Arc<CudaStream>,
    function: &CudaFunction,
    inputs: &[CudaSlice<f32>],
    output: &mut CudaSlice<f32>,
) {
    let mut launch = stream.launch_builder(function);
    for input in inputs {
        launch.arg(input);
    }
    launch.arg(output);
    // SAFETY: the entry has this number of pointers, and the free driver runs no code.
    unsafe { launch.launch(GRID) }.expect("a launch");
}

/// A launch with this number of arrays.
pub fn launch(count: usize) -> Program {
    let context = context();
    let stream = context.new_stream().expect("a stream");
    let function = function(&context, count);
    if count == 0 {
        return Box::new(move || {
            let mut launch = stream.launch_builder(&function);
            launch.arg(&7_u32);
            // SAFETY: as in `launch_with`.
            unsafe { launch.launch(GRID) }.expect("a launch");
        });
    }
    let inputs: Vec<CudaSlice<f32>> = (1..count).map(|_| zeros(&stream)).collect();
    let mut output = zeros(&stream);
    Box::new(move || launch_with(&stream, &function, &inputs, &mut output))
}

/// A graph of [`STEPS`] launches with one array, which a capture has made.
pub fn chain() -> Program {
    let context = context();
    let stream = context.new_stream().expect("a stream");
    let (function, mut output) = (function(&context, 1), zeros(&stream));
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).expect("a capture");
    (0..STEPS).for_each(|_| launch_with(&stream, &function, &[], &mut output));
    let graph = stream.end_capture(CUgraphInstantiate_flags(0)).expect("a graph").expect("a graph");
    Box::new(move || {
        let _kept = &output;
        graph.launch().expect("a launch");
    })
}

/// A launch that writes an array, and a copy of the array's first element.
pub fn launch_and_get() -> Program {
    let context = context();
    let stream = context.new_stream().expect("a stream");
    let (function, mut output) = (function(&context, 1), zeros(&stream));
    Box::new(move || {
        launch_with(&stream, &function, &[], &mut output);
        let mut number = [0.0_f32];
        stream.memcpy_dtoh(&output.slice(0..1), &mut number).expect("a copy");
        stream.synchronize().expect("a wait");
        std::hint::black_box(number);
    })
}

/// An array of 16 KiB, written on the host and read by a launch. The driver stages the copy.
pub fn write_and_launch() -> Program {
    let context = context();
    let stream = context.new_stream().expect("a stream");
    let (function, mut memory) = (function(&context, 1), zeros(&stream));
    let mut host = vec![0.0_f32; LEN];
    Box::new(move || {
        std::hint::black_box(&mut host).fill(1.0);
        stream.memcpy_htod(&host, &mut memory).expect("a copy");
        launch_with(&stream, &function, &[], &mut memory);
    })
}
