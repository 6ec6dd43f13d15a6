//! What runs when the process ends.

use std::sync::OnceLock;

use super::outputs::{VARIABLE, say};
use resident_backend::unwinding::contain_panic;

/// Calls a function when the process ends by `main`'s return, a panic of it, or `exit`.
pub(in crate::audit) fn at_exit(run: fn()) {
    static RUN: OnceLock<fn()> = OnceLock::new();
    extern "C" fn run_caught() {
        // A panic must not leave a function that C calls.
        contain_panic(|| RUN.get().into_iter().for_each(|run| run()));
    }
    if RUN.set(run).is_ok() {
        // SAFETY: `run_caught` is a function of the program and does not unwind. The library is
        // part of the program, or of a shared library, whose unloading runs the function first.
        let refused = unsafe { libc::atexit(run_caught) } != 0;
        if refused {
            say(format_args!("{VARIABLE}: the system refused to call back at exit"));
        }
    }
}
