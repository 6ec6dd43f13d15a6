//! Memory that kernels allocate. What is freed and was not allocated fails the launch: the C
//! library's `free` would end the process.

use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::waiting;

/// The addresses of what is allocated and not freed.
static LIVE: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

fn live() -> MutexGuard<'static, HashSet<usize>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `resident_runtime.allocate`: null if the system has not so much memory.
pub(super) unsafe extern "C" fn allocate(len_bytes: usize) -> *mut c_void {
    // SAFETY: the function has no preconditions.
    let memory = unsafe { libc::malloc(len_bytes) };
    if !memory.is_null() {
        live().insert(memory.addr());
    }
    memory
}

/// `resident_runtime.release`.
pub(super) unsafe extern "C" fn release(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // The lock is not held where the thread ends.
    let is_live = live().remove(&memory.addr());
    if is_live {
        // SAFETY: `allocate` got it from `malloc`, and it was not freed since.
        unsafe { libc::free(memory) };
    } else {
        waiting::fail(format!(
            "`free` gets {memory:?}, which is no memory that `malloc` gave a kernel, or is free \
             already"
        ));
    }
}
