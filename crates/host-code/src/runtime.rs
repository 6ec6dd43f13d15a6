//! The functions that compiled code calls, and the structures that it shares with the library: the
//! other side of `cuda_on_host.hpp`.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use super::{heap, launch_timeout, output, turns, waiting};

/// The number of threads of a warp.
pub(super) const LANES: usize = 32;

/// What the lanes of a warp passed, and behind that the mask of the lanes that came.
pub(super) type Exchanged = [u64; LANES + 1];

/// What one launch runs: `resident_launch`.
#[repr(C)]
pub struct LaunchParameters {
    pub parameters: *const *mut c_void,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    /// The name of its function.
    pub kernel: *const c_char,
}

impl LaunchParameters {
    /// The number of blocks of the grid; `u64::MAX`, which no launch ends, if it is larger.
    pub(super) fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |count: u64, extent| count.saturating_mul(u64::from(*extent)))
    }

    /// The number of threads of a block, which `GridLimits` bounds.
    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// How far the blocks of a thread have come: `resident_progress`. Compiled code writes it too.
#[derive(Default)]
#[repr(C)]
pub struct BlockProgress {
    pub(super) block: Cell<c_ulonglong>,
    pub(super) next: Cell<c_uint>,
    /// The thread of the block that runs, in checked code.
    pub(super) running: Cell<c_uint>,
}

/// The functions of the library: `resident_runtime`.
#[repr(C)]
pub struct Runtime {
    barrier: unsafe extern "C" fn(c_uint) -> c_uint,
    warp_barrier: unsafe extern "C" fn(c_uint),
    exchange: unsafe extern "C" fn(c_uint, c_ulonglong) -> *const c_ulonglong,
    active: unsafe extern "C" fn() -> c_uint,
    dynamic_shared: unsafe extern "C" fn() -> *mut c_void,
    patience: unsafe extern "C" fn(c_ulonglong) -> c_uint,
    turn: unsafe extern "C" fn() -> c_uint,
    poll: unsafe extern "C" fn(),
    fail: unsafe extern "C" fn(*const c_char),
    format: Format,
    print: unsafe extern "C" fn(*const c_char, *const c_char),
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    release: unsafe extern "C" fn(*mut c_void),
}

pub(super) static RUNTIME: Runtime = Runtime {
    barrier,
    warp_barrier,
    exchange,
    active,
    dynamic_shared,
    patience,
    turn: turns::turn,
    poll,
    fail,
    format: snprintf,
    print,
    allocate: heap::allocate,
    release: heap::release,
};

type Format = unsafe extern "C" fn(*mut c_char, usize, *const c_char, ...) -> c_int;

unsafe extern "C" {
    fn snprintf(text: *mut c_char, bytes_max: usize, format: *const c_char, ...) -> c_int;
}

/// `resident_host_run`.
pub type RunBlocks = unsafe extern "C" fn(
    *const LaunchParameters,
    *const Runtime,
    *const BlockProgress,
    c_ulonglong,
    c_uint,
);

unsafe extern "C" fn barrier(predicate: c_uint) -> c_uint {
    waiting::wait_for_block(predicate)
}

unsafe extern "C" fn warp_barrier(mask: c_uint) {
    waiting::wait_at_warp_barrier(mask);
}

unsafe extern "C" fn exchange(mask: c_uint, value: c_ulonglong) -> *const c_ulonglong {
    waiting::wait_for_lanes(mask, value)
}

unsafe extern "C" fn active() -> c_uint {
    waiting::wait_for_active()
}

unsafe extern "C" fn dynamic_shared() -> *mut c_void {
    waiting::dynamic_shared().cast()
}

unsafe extern "C" fn patience(thread: c_ulonglong) -> c_uint {
    turns::patience(thread)
}

unsafe extern "C" fn poll() {
    if let Some(text) = launch_timeout::overrun() {
        waiting::fail(text);
    }
}

unsafe extern "C" fn fail(text: *const c_char) {
    // SAFETY: the header passes a C string.
    let text = unsafe { CStr::from_ptr(text) };
    waiting::fail(text.to_string_lossy().into_owned());
}

unsafe extern "C" fn print(kernel: *const c_char, text: *const c_char) {
    // SAFETY: the header passes a C string.
    let kernel = unsafe { CStr::from_ptr(kernel) };
    // SAFETY: as above.
    let text = unsafe { CStr::from_ptr(text) };
    output::print(&kernel.to_string_lossy(), text.to_bytes());
}
