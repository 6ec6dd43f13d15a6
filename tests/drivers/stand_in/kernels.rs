//! The kernels: as PTX for a real driver, and as host functions for the stand-in.

use std::sync::{Arc, Once};

use resident::cudarc::driver::{CudaContext, CudaFunction, LaunchConfig};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::{Access, Fault, Length, Parameter, register};

/// * `scale(float* memory, float factor)` multiplies one element per thread.
/// * `shaped(unsigned* seen)` writes the grid, the block and the bytes of dynamic shared memory.
/// * `counted(unsigned* count)` adds one.
/// * `astray()` writes to an address at which there is no memory.
pub(crate) const PTX: &str = include_str!("kernels.ptx");

/// A kernel, whose host function is registered on the stand-in.
pub(crate) fn registered(context: &Arc<CudaContext>, name: &str) -> CudaFunction {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register_all);
    loaded(context, name)
}

/// A kernel.
pub(crate) fn loaded(context: &Arc<CudaContext>, name: &str) -> CudaFunction {
    let module = context.load_module(Ptx::from_src(PTX)).expect("a module");
    module.load_function(name).expect("a function")
}

/// One block of as many threads.
pub(crate) fn threads(count: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (count, 1, 1), shared_mem_bytes: 0 }
}

fn register_all() {
    let memory = Parameter::Pointer { access: Access::ReadWrite, length: Length::ToEnd };
    register("scale", &[memory, Parameter::Scalar { len_bytes: 4 }], |launch| {
        let factor: f32 = launch.scalar(1);
        // SAFETY: the only memory of this kernel; the tests order its launches.
        unsafe { launch.slice_mut::<f32>(0) }.iter_mut().for_each(|element| *element *= factor);
        Ok(())
    });
    register("shaped", &[memory], |launch| {
        let ([x, y, z], [width, height, depth]) = (launch.grid(), launch.block());
        let seen = [x, y, z, width, height, depth, launch.shared_bytes()];
        // SAFETY: as above.
        let memory = unsafe { launch.slice_mut::<u32>(0) };
        memory[..seen.len()].copy_from_slice(&seen);
        Ok(())
    });
    register("counted", &[memory], |launch| {
        // SAFETY: as above.
        let memory = unsafe { launch.slice_mut::<u32>(0) };
        memory[0] += 1;
        Ok(())
    });
    register("astray", &[], |_| Err(Fault::IllegalAddress));
}
