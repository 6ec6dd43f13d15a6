//! Where output goes: the text that kernels print, and what the checker finds.

use std::io::Write;
use std::sync::OnceLock;

use super::sanitizer::finding::Finding;
use resident_backend::unwinding::contain_panic;

/// The functions that get output.
#[derive(Clone, Copy)]
pub struct OutputListener {
    /// Takes what a kernel prints, given the name of its function. Returns whether it has taken it.
    pub printed: fn(kernel: &str, text: &str) -> bool,
    /// Takes a finding of the checker.
    pub found: fn(&Finding),
}

static LISTENER: OnceLock<OutputListener> = OnceLock::new();

/// Sets the listener. What kernels print and it does not take goes to standard output. Only the
/// first call has an effect.
pub fn set_listener(listener: OutputListener) {
    let _is_first = LISTENER.set(listener);
}

/// Prints what one call of `printf` wrote.
pub(super) fn print(kernel: &str, text: &[u8]) {
    let lossy = String::from_utf8_lossy(text);
    // A panic must not unwind the compiled code, which calls this.
    let is_taken = LISTENER.get().is_some_and(|listener| {
        contain_panic(|| (listener.printed)(kernel, &lossy)).unwrap_or(false)
    });
    if !is_taken {
        // If standard output is closed, the text is lost, as for a program in C.
        let _unwritten = std::io::stdout().write_all(text);
    }
}

/// Passes a finding to the listener.
pub(super) fn report(finding: &Finding) {
    if let Some(listener) = LISTENER.get() {
        // A panic must not replace the launch's own failure.
        contain_panic(|| (listener.found)(finding));
    }
}
