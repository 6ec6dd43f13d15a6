//! Keeps this library's calls from disturbing captures of other code. While any thread captures a
//! stream in global mode, the driver refuses some calls of all other threads, and ends the capture,
//! unless the calling thread is in relaxed mode: allocations, registrations, queries, new streams.
//! None of the library's calls refers to a captured stream, so relaxed mode is right for them.

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;

use super::driver::{Driver, status};
use resident_backend::DeviceKind;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`, `hipStreamCaptureModeRelaxed`.
const RELAXED: c_int = 2;

thread_local! {
    /// Whether this library has put the thread into relaxed mode, by the kind of device.
    static IS_RELAXED: [Cell<bool>; DeviceKind::COUNT] = const {
        [const { Cell::new(false) }; DeviceKind::COUNT]
    };
}

/// Relaxed mode of this thread, which ends with the value. No user code runs meanwhile. Within
/// another such value it makes no driver call.
#[must_use]
pub(super) struct Relaxed {
    previous: Option<(&'static Driver, c_int)>,
    /// The mode is that of a thread.
    not_send: PhantomData<*const ()>,
}

impl Relaxed {
    pub(super) fn enter(driver: &'static Driver) -> Self {
        let mut previous = None;
        if !is_relaxed(driver) {
            previous = exchange(driver, RELAXED).map(|mode| (driver, mode));
            set_relaxed(driver, previous.is_some());
        }
        Self { previous, not_send: PhantomData }
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some((driver, previous)) = self.previous.take() {
            let _relaxed = exchange(driver, previous);
            set_relaxed(driver, false);
        }
    }
}

/// Puts a thread of this library into relaxed mode for good.
pub(super) fn relax_this_thread(driver: &'static Driver) {
    std::mem::forget(Relaxed::enter(driver));
}

fn is_relaxed(driver: &Driver) -> bool {
    IS_RELAXED.with(|modes| modes[driver.vendor.kind as usize].get())
}

fn set_relaxed(driver: &Driver, is_relaxed: bool) {
    IS_RELAXED.with(|modes| modes[driver.vendor.kind as usize].set(is_relaxed));
}

/// Sets this thread's mode. Returns the previous one, or `None` if the driver has no modes.
fn exchange(driver: &Driver, mut mode: c_int) -> Option<c_int> {
    let exchange = driver.exchange_capture_mode.as_ref()?;
    // SAFETY: the driver reads one mode, and writes another.
    let outcome = unsafe { (exchange.function)(&raw mut mode) };
    (outcome == status::SUCCESS).then_some(mode)
}
