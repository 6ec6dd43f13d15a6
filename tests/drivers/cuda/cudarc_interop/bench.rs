//! Fixtures of these tests: a GPU, kernels that wait at a gate, the
//! record of calls.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Condvar, Mutex};

use resident::Device;
use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg, sys,
};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::{self as stand_in, Access, Length, Parameter, Settings};

/// The first GPU of a test with a process of its own.
pub(crate) struct Bench {
    pub(crate) gpu: Device,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_devices(2)
    }

    /// With so many devices; a process has one number of them.
    pub(crate) fn with_devices(count: u32) -> Self {
        stand_in::load(Settings::new().devices(count)).expect("the stand-in driver loads");
        stand_in::take_calls();
        stand_in::take_hazards();
        Self { gpu: Device::cuda(0).expect("the stand-in's first device") }
    }

    /// The calls since `new` or the last call of this function.
    pub(crate) fn calls(&self) -> Vec<String> {
        stand_in::take_calls().into_iter().map(|call| call.name).collect()
    }

    /// The calls so far, which stay in the record.
    pub(crate) fn calls_so_far(&self) -> Vec<String> {
        stand_in::calls().into_iter().map(|call| call.name).collect()
    }

    /// Waits for all queued work, and asserts that it was ordered. The bench must live longer than
    /// all objects that were made after it.
    #[track_caller]
    pub(crate) fn finish(&self) {
        self.gpu.synchronize().expect("nothing failed");
        assert_eq!(stand_in::take_hazards(), Vec::<String>::new());
    }
}

/// A context of a GPU besides its primary one, as other libraries may create.
pub(crate) fn other_context(gpu: &Device) -> Arc<CudaContext> {
    type Create =
        unsafe extern "C" fn(*mut sys::CUcontext, *mut c_void, c_uint, c_int) -> sys::CUresult;
    let device = gpu.cuda_context().expect("a GPU").cu_device();
    // The function is looked up by name, because its version in the bindings depends on CUDA's
    // version.
    // SAFETY: the driver is loaded, since the GPU is open.
    let driver = unsafe { sys::culib() };
    // SAFETY: the type is that of the driver function.
    let create = unsafe { driver.get::<Create>(b"cuCtxCreate_v4\0") }.expect("the driver has it");
    let mut context = std::ptr::null_mut();
    // SAFETY: the driver writes one handle, and reads no parameters.
    unsafe { create(&raw mut context, std::ptr::null_mut(), 0, device) }
        .result()
        .expect("a context");
    // SAFETY: the context was just created for this device, and only this object has it.
    unsafe { CudaContext::from_raw_context(0, device, context) }.expect("cudarc takes it")
}

/// A gate at which kernels wait, so that a test knows which work is not complete.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("not poisoned") = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().expect("not poisoned");
        drop(self.0.1.wait_while(open, |open| !*open).expect("not poisoned"));
    }

    /// Opens the gate on a separate thread once the driver function `call` has been called.
    pub(crate) fn open_after(&self, call: &'static str) -> std::thread::JoinHandle<()> {
        let gate = self.clone();
        std::thread::spawn(move || {
            while !stand_in::calls().iter().any(|known| known.name == call) {
                std::thread::yield_now();
            }
            gate.open();
        })
    }
}

/// The kernel `name` with this number of parameters of eight bytes, loaded in the context object
/// that user code gets.
pub(crate) fn function(gpu: &Device, name: &str, parameters: usize) -> CudaFunction {
    let list: Vec<String> =
        (0..parameters).map(|index| format!(".param .u64 {name}_param_{index}")).collect();
    let list = list.join(",\n");
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {name}(\n{list}\n)\n{{\n\
         ret;\n}}\n"
    );
    let module =
        gpu.cuda_context().expect("a GPU").load_module(Ptx::from_src(text)).expect("a module");
    module.load_function(name).expect("an entry")
}

/// A kernel that waits at the gate and accesses no memory.
pub(crate) fn gated(gpu: &Device, name: &str, gate: &Gate) -> CudaFunction {
    let gate = gate.clone();
    stand_in::register(name, &[], move |_launch| {
        gate.pass();
        Ok(())
    });
    function(gpu, name, 0)
}

/// A kernel that waits at the gate, then doubles each element.
pub(crate) fn doubling(gpu: &Device, name: &str, gate: &Gate) -> CudaFunction {
    let gate = gate.clone();
    stand_in::register(
        name,
        &[Parameter::Pointer { access: Access::ReadWrite, length: Length::ToEnd }],
        move |launch| {
            gate.pass();
            // SAFETY: the driver keeps the memory during the launch and reports other accesses.
            unsafe { launch.slice_mut::<f32>(0) }.iter_mut().for_each(|element| *element *= 2.0);
            Ok(())
        },
    );
    function(gpu, name, 1)
}

/// Launches a kernel without arguments.
pub(crate) fn launch(stream: &CudaStream, function: &CudaFunction) {
    // SAFETY: the host function accesses no memory.
    unsafe { stream.launch_builder(function).launch(LaunchConfig::for_num_elems(1)) }
        .expect("a launch");
}

/// Launches a kernel with one argument.
pub(crate) fn launch_with<'a, A>(stream: &'a CudaStream, function: &'a CudaFunction, argument: A)
where
    LaunchArgs<'a>: PushKernelArg<A>,
{
    let mut builder = stream.launch_builder(function);
    builder.arg(argument);
    // SAFETY: the host function accesses only the memory of its argument, which the caller owns.
    unsafe { builder.launch(LaunchConfig::for_num_elems(1)) }.expect("a launch");
}
