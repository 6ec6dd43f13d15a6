//! The stand-in with seventeen devices; a gate for streams; the codes of refused calls.

use std::ffi::c_void;
use std::sync::{Arc, mpsc};

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::driver::{CudaContext, CudaStream, DriverError};
use resident_stand_in::Settings;

/// Loads the stand-in with seventeen devices; tests that lose a device use their own.
pub(crate) fn load() {
    resident_stand_in::load(Settings::new().devices(17)).expect("the stand-in loads");
}

pub(crate) fn context(ordinal: usize) -> Arc<CudaContext> {
    load();
    CudaContext::new(ordinal).expect("a device")
}

/// The code of a refused call.
#[track_caller]
pub(crate) fn code<T>(outcome: Result<T, DriverError>) -> CUresult {
    match outcome {
        Ok(_) => panic!("it was not refused"),
        Err(DriverError(code)) => code,
    }
}

/// Fails unless a call succeeded.
#[track_caller]
pub(crate) fn done(outcome: CUresult) {
    assert_eq!(outcome, CUresult::CUDA_SUCCESS);
}

/// The outcome of a call as a result.
pub(crate) fn ok(outcome: CUresult) -> Result<(), DriverError> {
    outcome.result()
}

/// Work in a stream that waits until the test opens the gate.
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
