//! The stand-in driver, by the real cudarc: what a test may rely on when our backend runs against it.

#![cfg(all(target_os = "linux", feature = "cuda"))]

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use resident_stand_in::{Access, Length, Parameter, Settings};

const SCALE: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry scale(\n.param .u64 scale_0,\n.param .f32 scale_1\n)\n{\nret;\n}\n";

#[test]
fn a_first_program() {
    resident_stand_in::load(Settings::new()).expect("it loads");
    let memory = Parameter::Pointer { access: Access::ReadWrite, length: Length::ToEnd };
    resident_stand_in::register("scale", &[memory, Parameter::Scalar { len_bytes: 4 }], |launch| {
        let factor: f32 = launch.scalar(1);
        // SAFETY: the only memory of this kernel, of which the test launches one at a time.
        unsafe { launch.slice_mut::<f32>(0) }.iter_mut().for_each(|element| *element *= factor);
        Ok(())
    });
    let context = CudaContext::new(0).expect("a device");
    let stream = context.new_stream().expect("a stream");
    let module = context.load_module(Ptx::from_src(SCALE)).expect("a module");
    let scale = module.load_function("scale").expect("a function");
    let mut memory = stream.clone_htod(&[1.0_f32, 2.0, 3.0]).expect("a copy");
    let mut launch = stream.launch_builder(&scale);
    launch.arg(&mut memory).arg(&2.0_f32);
    // SAFETY: the host function touches the memory that it is given.
    unsafe { launch.launch(LaunchConfig::for_num_elems(3)) }.expect("a launch");
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [2.0, 4.0, 6.0]);
}
