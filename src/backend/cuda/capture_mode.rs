//! Keeps this library's calls from disturbing captures of other code. While any thread captures a
//! stream in global mode, the driver refuses some calls of all other threads, and ends the capture,
//! unless the calling thread is in relaxed mode: allocations, registrations, queries, new streams.
//! None of the library's calls refers to a captured stream, so relaxed mode is right for them.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;

use cudarc::driver::sys::{CUresult, CUstreamCaptureMode};

use super::library::DRIVER;

/// `cuThreadExchangeStreamCaptureMode`.
type ExchangeMode = unsafe extern "C" fn(*mut CUstreamCaptureMode) -> CUresult;

thread_local! {
    /// Whether this library has put the thread into relaxed mode.
    static IS_RELAXED: Cell<bool> = const { Cell::new(false) };
}

/// Relaxed mode of this thread, which ends with the value. No user code runs meanwhile. Within
/// another such value it makes no driver call.
#[must_use]
pub(super) struct Relaxed {
    previous: Option<CUstreamCaptureMode>,
    /// The mode is that of a thread.
    not_send: PhantomData<*const ()>,
}

impl Relaxed {
    pub(super) fn enter() -> Self {
        let mut previous = None;
        if !IS_RELAXED.get() {
            previous = exchange(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
            IS_RELAXED.set(previous.is_some());
        }
        Self { previous, not_send: PhantomData }
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(previous) = self.previous.take() {
            let _relaxed = exchange(previous);
            IS_RELAXED.set(false);
        }
    }
}

/// Puts a thread of this library into relaxed mode for good.
pub(super) fn relax_this_thread() {
    std::mem::forget(Relaxed::enter());
}

/// Sets this thread's mode. Returns the previous one, or `None` if the driver has no modes.
fn exchange(mut mode: CUstreamCaptureMode) -> Option<CUstreamCaptureMode> {
    static FUNCTION: OnceLock<Option<ExchangeMode>> = OnceLock::new();
    // SAFETY: `ExchangeMode` is the type of this driver function.
    let look_up = || unsafe { DRIVER.function("cuThreadExchangeStreamCaptureMode") };
    let function = (*FUNCTION.get_or_init(look_up))?;
    // SAFETY: the driver reads one mode, and writes another, each a valid value of the type.
    let outcome = unsafe { function(&raw mut mode) };
    (outcome == CUresult::CUDA_SUCCESS).then_some(mode)
}
