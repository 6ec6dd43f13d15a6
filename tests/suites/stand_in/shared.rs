//! Code that the tests of the stand-in driver share.

#![allow(dead_code, reason = "each program of tests uses some of it")]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, mpsc};

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::{Access, Length, Parameter, Settings};

/// A kernel `scale(float* memory, float factor)`.
pub(crate) const SCALE: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(
.param .u64 scale_0,
.param .f32 scale_1
)
{
ret;
}
";

/// Loads the driver with thirteen devices. A test that loses a device uses one that no other test
/// uses.
pub(crate) fn load() {
    let settings = Settings::new().devices(13).locks_whole_pages();
    resident_stand_in::load(settings).expect("the stand-in loads");
}

pub(crate) fn context(ordinal: usize) -> Arc<CudaContext> {
    load();
    CudaContext::new(ordinal).expect("a device")
}

pub(crate) fn register_scale() {
    let memory = Parameter::Pointer { access: Access::ReadWrite, length: Length::ToEnd };
    resident_stand_in::register("scale", &[memory, Parameter::Scalar { len_bytes: 4 }], |launch| {
        let factor: f32 = launch.scalar(1);
        // SAFETY: the only memory of this kernel; the tests order its launches.
        unsafe { launch.slice_mut::<f32>(0) }.iter_mut().for_each(|element| *element *= factor);
        Ok(())
    });
}

pub(crate) fn scale_function(context: &Arc<CudaContext>) -> CudaFunction {
    register_scale();
    let module = context.load_module(Ptx::from_src(SCALE)).expect("a module");
    module.load_function("scale").expect("a function")
}

/// The code of a refused call.
#[track_caller]
pub(crate) fn code<T>(outcome: Result<T, DriverError>) -> CUresult {
    match outcome {
        Ok(_) => panic!("it was not refused"),
        Err(DriverError(code)) => code,
    }
}

/// A message from a host function to the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<String>>);

impl Seen {
    pub(crate) fn set(&self, text: String) {
        *self.0.lock().expect("no panic") = text;
    }

    pub(crate) fn get(&self) -> String {
        self.0.lock().expect("no panic").clone()
    }
}

/// A gate: work in a stream that waits until the test opens the gate.
pub(crate) struct Gate(mpsc::Sender<()>);

impl Gate {
    /// Queues the gate: later work of the stream waits for it.
    pub(crate) fn in_front_of(stream: &CudaStream) -> Self {
        let (sender, receiver) = mpsc::channel::<()>();
        let data = Box::into_raw(Box::new(receiver)).cast();
        stream.context().bind_to_thread().expect("a context");
        // SAFETY: the driver calls the function once, and the function takes ownership of the box.
        unsafe {
            resident::cudarc::driver::result::stream::launch_host_function(
                stream.cu_stream(),
                wait_at_gate,
                data,
            )
        }
        .expect("a host function");
        Self(sender)
    }

    /// Opens the gate, as dropping it also does.
    pub(crate) fn open(self) {
        drop(self.0);
    }
}

unsafe extern "C" fn wait_at_gate(data: *mut c_void) {
    // SAFETY: `in_front_of` passed this box, and the driver calls the function once.
    let receiver = unsafe { Box::from_raw(data.cast::<mpsc::Receiver<()>>()) };
    let _opened = receiver.recv();
}
