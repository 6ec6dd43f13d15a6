//! What the hand-written cudarc programs share: cudarc's own objects, its tracking off, as somebody would who places the order by hand.

use std::sync::Arc;

use resident::cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use resident::cudarc::nvrtc::Ptx;

use crate::kernels;

pub(crate) const GRID: LaunchConfig = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };

/// A context without cudarc's tracking.
pub(crate) fn context() -> Arc<CudaContext> {
    let context = CudaContext::new(0).expect("a device");
    // SAFETY: the programs order their streams by events of their own.
    unsafe { context.disable_event_tracking() };
    context
}

pub(crate) fn function(context: &Arc<CudaContext>, arrays: usize) -> CudaFunction {
    kernels::stand_in_for(arrays);
    let module = context.load_module(Ptx::from_src(kernels::ptx(arrays))).expect("a module");
    module.load_function(&format!("touch{arrays}")).expect("an entry")
}

pub(crate) fn zeros(stream: &Arc<CudaStream>, len: usize) -> CudaSlice<f32> {
    stream.alloc_zeros(len).expect("memory")
}

/// Launches with the inputs and the output.
pub(crate) fn launch(stream: &Arc<CudaStream>, function: &CudaFunction, inputs: &[&CudaSlice<f32>], output: &mut CudaSlice<f32>) {
    let mut launch = stream.launch_builder(function);
    inputs.iter().for_each(|input| {
        launch.arg(*input);
    });
    launch.arg(output);
    // SAFETY: the entry takes so many pointers to floats.
    unsafe { launch.launch(GRID) }.expect("a launch");
}
