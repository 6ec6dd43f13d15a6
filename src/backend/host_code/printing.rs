//! Where the text goes that kernels print.

use std::io::Write;
use std::panic::catch_unwind;
use std::sync::OnceLock;

/// Takes what a kernel prints, given the name of its function. Returns whether it has taken it.
pub(crate) type Printer = fn(kernel: &str, text: &str) -> bool;

static PRINTER: OnceLock<Printer> = OnceLock::new();

/// Kernels print to this function from now on, and to standard output what it does not take. Only
/// the first call has an effect.
pub(crate) fn print_by(printer: Printer) {
    let _is_first = PRINTER.set(printer);
}

/// Prints what one call of `printf` wrote.
pub(super) fn print(kernel: &str, text: &[u8]) {
    let lossy = String::from_utf8_lossy(text);
    // A panic must not unwind the compiled code, which calls this.
    let is_taken = PRINTER
        .get()
        .is_some_and(|printer| catch_unwind(|| printer(kernel, &lossy)).unwrap_or(false));
    if !is_taken {
        // If standard output is closed, the text is lost, as for a program in C.
        let _unwritten = std::io::stdout().write_all(text);
    }
}
