//! What ends a kernel anywhere in its code: a thread of a block that overflows its stack, or comes
//! to an instruction that no processor has, or makes an access that is not aligned as its
//! instruction needs it, ends, and with it the launch, instead of the process; so does one that
//! runs when the launch's time is over; a division by zero has a result. All on Linux on x86-64.
//! Elsewhere, and where an overflow is found in code of a library that the kernel calls, the
//! process ends, as it does for any other stack, and compiled code looks at the time itself
//! (`launch_timeout`).
//!
//! A handler of the whole process is much for a rare case, but nothing cheaper names the kernel and
//! ends its launch alone. The handler of std knows only the stacks of threads, so that the process
//! would end with `Segmentation fault` and no other word. A mark at the end of the stack, looked at
//! when threads change, says it only after other memory was overwritten. A check in each function
//! that a kernel calls is paid by all kernels, and a larger stack moves the limit.
//!
//! The page behind a stack cannot be accessed (`corosensei`), and compiled code touches each page
//! of a large frame (`-fstack-clash-protection`). A handler of `SIGSEGV` looks whether the access
//! was to that page and came from a kernel's own code. All other signals go to the handler that
//! was there before. It looks at the code first: only a thread that runs a kernel has certainly got
//! its thread-local variables, which the system may allocate at their first use.
//!
//! A handler that the program installs later is called first. If it passes on what does not concern
//! it, overflows still fail the launch; otherwise it handles them as it handles any other fault.
//! Handlers are never removed, so this library must not be unloaded, nor may it because of its
//! threads.
//!
//! | file | purpose |
//! |---|---|
//! | `code` | where the code of kernels is |
//! | `division` | the results of divisions by zero |
//! | `handler` | the handler, of `SIGFPE`, `SIGILL` and `SIGURG` too |
//! | `signal_stack` | the stack on which it runs |
//! | `time_limit` | interrupts threads whose launch takes too long, by `SIGURG` |

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod division;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod handler;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod signal_stack;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod time_limit;

use std::cell::Cell;
use std::ops::Range;

use corosensei::trap::CoroutineTrapHandler;

/// How the code of a stack ended.
#[derive(Clone, Copy)]
pub(super) enum Ended {
    Returned,
    Overflowed,
    /// At an instruction that no processor has, which compilers put where no code should come.
    Trapped,
    /// At an access that the processor refuses, whatever memory is there.
    Refused,
    OutOfTime,
}

/// A stack on which a thread of a block runs.
pub(super) struct RunningStack {
    /// From the page that cannot be accessed, which is the lowest, to the end.
    pub(super) addresses: Range<usize>,
    pub(super) page_bytes: usize,
    pub(super) trap: CoroutineTrapHandler<Ended>,
}

thread_local! {
    /// The stack that runs on this thread of the machine, if any.
    static RUNNING: Cell<*const RunningStack> = const { Cell::new(std::ptr::null()) };
}

/// Runs `resume` while `stack` counts as the one that runs.
#[inline]
pub(super) fn while_running<R>(stack: &RunningStack, resume: impl FnOnce() -> R) -> R {
    // What a kernel calls counts as a body, in which no thread waits for work or runs it
    // (`backend::scope`).
    debug_assert!(RUNNING.get().is_null(), "no kernel runs inside a kernel");
    RUNNING.set(stack);
    let result = resume();
    RUNNING.set(std::ptr::null());
    result
}

/// The start and the end of the running stack; no addresses if none runs.
pub(super) fn running_bounds() -> (usize, usize) {
    // SAFETY: `while_running` borrows the stack as long as the pointer is set.
    let stack = unsafe { RUNNING.get().as_ref() };
    stack.map_or((0, 0), |stack| (stack.addresses.start, stack.addresses.end))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) use self::{
    code::LoadedCode, handler::install, signal_stack::prepare_thread, time_limit::Watched,
};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(super) use self::elsewhere::{LoadedCode, Watched, install, prepare_thread};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod elsewhere {
    use std::ops::Range;

    #[derive(Debug)]
    pub(in super::super) struct LoadedCode;

    impl LoadedCode {
        pub(in super::super) fn new(_addresses: Range<usize>, _kernel: &str) -> Self {
            Self
        }
    }

    pub(in super::super) struct Watched;

    impl Watched {
        pub(in super::super) fn new() -> Option<Self> {
            None
        }
    }

    pub(in super::super) fn install() {}

    pub(in super::super) fn prepare_thread() {}
}
