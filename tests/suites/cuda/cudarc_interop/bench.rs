//! What all of these tests work with: one GPU at a time, kernels that wait at a gate, and a look at
//! what was called.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use resident::Device;
use resident::cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg, sys,
};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::{self as stand_in, Access, Length, Parameter, Settings};

/// The first GPU. The record of calls and hazards belongs to the process.
pub(crate) struct Bench {
    pub(crate) gpu: Device,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        stand_in::load(Settings::new().devices(2)).expect("the stand-in driver loads");
        stand_in::take_calls();
        stand_in::take_hazards();
        Self { gpu: Device::cuda(0).expect("the stand-in's first device"), _alone: alone }
    }

    /// What was called since `new` or the last look.
    pub(crate) fn calls(&self) -> Vec<String> {
        stand_in::take_calls().into_iter().map(|call| call.name).collect()
    }

    /// The same, which stay there for others to see.
    pub(crate) fn calls_so_far(&self) -> Vec<String> {
        stand_in::calls().into_iter().map(|call| call.name).collect()
    }

    /// Everything that was queued is over, and was ordered. The bench stays this test's until all
    /// that was made after it is gone.
    #[track_caller]
    pub(crate) fn finish(&self) {
        self.gpu.synchronize().expect("nothing failed");
        assert_eq!(stand_in::take_hazards(), Vec::<String>::new());
    }
}

/// A context of a GPU beside its primary one, as other libraries may have one. cudarc destroys it
/// with the last handle.
pub(crate) fn other_context(gpu: &Device) -> Arc<CudaContext> {
    type Create =
        unsafe extern "C" fn(*mut sys::CUcontext, *mut c_void, c_uint, c_int) -> sys::CUresult;
    let device = gpu.cuda_context().expect("a GPU").cu_device();
    // Looked for by name: which versions of it the bindings have depends on the version of CUDA
    // that they are made for.
    // SAFETY: the driver is loaded, since the GPU is there.
    let driver = unsafe { sys::culib() };
    // SAFETY: this is the function's type.
    let create = unsafe { driver.get::<Create>(b"cuCtxCreate_v4\0") }.expect("the driver has it");
    let mut context = std::ptr::null_mut();
    // SAFETY: one handle is written; without parameters.
    unsafe { create(&raw mut context, std::ptr::null_mut(), 0, device) }
        .result()
        .expect("a context");
    // SAFETY: it was just made for this device, and only this object has it.
    unsafe { CudaContext::from_raw_context(0, device, context) }.expect("cudarc takes it")
}

/// A gate at which kernels wait: so that a test knows what is not over yet.
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

    /// Opens it once the driver was called by this name, in a thread of its own.
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

/// `name(float *data)` and `name(const float *data)`, loaded in the context that users share.
fn function(gpu: &Device, name: &str, parameters: usize) -> CudaFunction {
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

/// A kernel that waits at the gate and touches nothing.
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
            // SAFETY: the driver keeps the memory for the launch, and its check of ordering sees
            // that nothing else accesses it.
            unsafe { launch.slice_mut::<f32>(0) }.iter_mut().for_each(|element| *element *= 2.0);
            Ok(())
        },
    );
    function(gpu, name, 1)
}

/// Launches a kernel without arguments.
pub(crate) fn launch(stream: &CudaStream, function: &CudaFunction) {
    // SAFETY: what stands for the kernel touches nothing.
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
    // SAFETY: what stands for the kernel touches the memory that it is given, to its end, which is
    // the caller's.
    unsafe { builder.launch(LaunchConfig::for_num_elems(1)) }.expect("a launch");
}
