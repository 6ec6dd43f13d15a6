//! Where the text goes that kernels print, and what the checker finds.

use std::io::Write;
use std::panic::catch_unwind;
use std::sync::OnceLock;

/// Who is told.
#[derive(Clone, Copy)]
pub struct Listener {
    /// Takes what a kernel prints, given the name of its function. Returns whether it has taken it.
    pub printed: fn(kernel: &str, text: &str) -> bool,
    /// Takes a finding of the checker in a kernel.
    pub found: fn(kernel: &str, is_error: bool, text: &str),
}

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// From now on kernels print to this listener, and to standard output what it does not take; the
/// checker tells it what it finds. Only the first call has an effect.
pub fn tell(listener: Listener) {
    let _is_first = LISTENER.set(listener);
}

/// Prints what one call of `printf` wrote.
pub(super) fn print(kernel: &str, text: &[u8]) {
    let lossy = String::from_utf8_lossy(text);
    // A panic must not unwind the compiled code, which calls this.
    let is_taken = LISTENER.get().is_some_and(|listener| {
        catch_unwind(|| (listener.printed)(kernel, &lossy)).unwrap_or(false)
    });
    if !is_taken {
        // If standard output is closed, the text is lost, as for a program in C.
        let _unwritten = std::io::stdout().write_all(text);
    }
}

/// Tells of a finding in a kernel.
pub(super) fn report(kernel: &str, is_error: bool, text: &str) {
    if let Some(listener) = LISTENER.get() {
        // A panic must not replace the launch's own failure.
        let _panicked = catch_unwind(|| (listener.found)(kernel, is_error, text));
    }
}
