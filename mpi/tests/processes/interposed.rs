//! MPI's tests of requests, as the library calls them in this program: slower, or failing, once a
//! test asks for it. MPI has each function under a second name for this (`PMPI_`).

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// `MPI_ERR_BUFFER` of both libraries; any error but that of a message which is too long.
const FAILURE: c_int = 1;

static IS_SLOW: AtomicBool = AtomicBool::new(false);
static IS_FAILING: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Slows tests down, so that messages often arrive between two of them.
pub(crate) fn slow_down() {
    IS_SLOW.store(true, Ordering::SeqCst);
}

/// Makes the next test fail.
pub(crate) fn fail_once() {
    IS_FAILING.store(true, Ordering::SeqCst);
}

unsafe extern "C" {
    fn PMPI_Test(request: *mut c_void, flag: *mut c_int, status: *mut c_void) -> c_int;
}

/// # Safety
///
/// As that of MPI.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPI_Test(
    request: *mut c_void,
    flag: *mut c_int,
    status: *mut c_void,
) -> c_int {
    if IS_FAILING.swap(false, Ordering::SeqCst) {
        return FAILURE;
    }
    // Not each, so that some messages arrive in the middle of a fast sequence.
    if IS_SLOW.load(Ordering::SeqCst) && CALLS.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
        thread::sleep(Duration::from_micros(10));
    }
    // SAFETY: it is the same function; the caller vouches for its arguments.
    unsafe { PMPI_Test(request, flag, status) }
}
