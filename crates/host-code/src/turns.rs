//! When a thread that may be waiting for memory lets the others run.
//!
//! A loop such as `while (atomicAdd(x, 0) < n);` ends only if others run meanwhile, as on a GPU. So
//! the compiled code calls `may_wait` (`cuda_on_host.hpp`) wherever such a loop comes by: at atomic
//! operations that change nothing, fences, `__nanosleep`, `__ldcv`, in the rounds of loops where a
//! source has `volatile` (`waiting_loops`), and in checked code at volatile and atomic accesses.
//! That counts down, and asks here when it comes to 0. A thread that has run for long by then gives
//! the others a turn. From then on its launch is one whose threads wait, and they do so soon.
//!
//! Signals could stop a thread anywhere instead, and would need none of these calls. But only code
//! that stores the indices of its threads one by one can be stopped, which makes the loop over the
//! threads of a block slower in all kernels; and they differ from system to system. Nor does a
//! thread that watches the time start with each launch.

use std::cell::Cell;
use std::ffi::c_uint;
use std::time::{Duration, Instant};

use super::launch_timeout;
use super::waiting::{self, Suspended};

/// A thread runs for so long before the others do, if no thread of the launch has waited yet.
const RUN_TIME: Duration = Duration::from_millis(2);

/// After so many calls a thread looks at the time.
const CALLS: c_uint = 1 << 12;

/// After so many calls a thread of a launch whose threads wait lets the others run.
const CALLS_OF_WAITING: c_uint = 1 << 6;

thread_local! {
    /// A thread of the grid that runs here, and when it first asked.
    static ASKED: Cell<Option<(u64, Instant)>> = const { Cell::new(None) };
    /// Whether threads of the launch that runs here have waited.
    static HAVE_WAITED: Cell<bool> = const { Cell::new(false) };
}

/// A launch begins on this thread of the machine, none of whose threads has waited yet.
pub(super) fn begin() {
    ASKED.set(None);
    HAVE_WAITED.set(false);
}

/// After how many calls a thread of the grid is to ask again; 0 if the others are to run now.
pub(super) fn patience(thread: u64) -> c_uint {
    if HAVE_WAITED.get() {
        return 0;
    }
    match ASKED.get() {
        Some((same, since)) if same == thread && since.elapsed() >= RUN_TIME => {
            HAVE_WAITED.set(true);
            return 0;
        }
        Some((same, _)) if same == thread => {}
        _ => ASKED.set(Some((thread, Instant::now()))),
    }
    CALLS
}

/// Lets the others run. Returns after how many calls the thread is to do so again.
unsafe extern "C" fn give_turn(stack_pointer: usize) -> c_uint {
    if let Some(text) = launch_timeout::overrun() {
        waiting::fail(text);
    }
    waiting::wait_for_turn(Suspended { stack_pointer });
    CALLS_OF_WAITING
}

/// `resident_runtime.turn`. Puts the registers that the caller keeps on its stack: so all that it
/// keeps is there. One of them stands there twice, which aligns the stack.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn turn() -> c_uint {
    std::arch::naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push r15",
        "mov rdi, rsp",
        "call {give_turn}",
        "pop r15",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        give_turn = sym give_turn,
    )
}

/// `resident_runtime.turn`. It is not known here what the caller keeps.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe extern "C" fn turn() -> c_uint {
    // SAFETY: it may be called as this function is.
    unsafe { give_turn(0) }
}
