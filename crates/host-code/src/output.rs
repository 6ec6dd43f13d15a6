//! Where output goes: the text that kernels print, and what the checker finds.
//!
//! Listeners run code of the program's, which may compute in parallel, wait, or run kernels. So
//! none is called on a thread that runs blocks: what a launch prints for a listener is kept, and
//! passed on by the launching thread once all blocks are over.

use std::cell::Cell;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::sanitizer::finding::Finding;
use resident_backend::unwinding::contain_panic;

/// The text that is kept of one launch, in bytes. Further calls are only counted.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The functions that get output. None is called while this thread runs blocks.
#[derive(Clone, Copy)]
pub struct OutputListener {
    /// Whether `printed` is to get what a launch prints. Asked before the launch runs.
    pub wants_printed: fn() -> bool,
    /// Takes what a kernel prints, given the name of its function.
    pub printed: fn(kernel: &str, text: &str),
    /// Takes a finding of the checker. Returns whether anything wants it.
    pub found: fn(&Finding) -> bool,
}

static LISTENER: OnceLock<OutputListener> = OnceLock::new();

/// Sets the listener. What kernels print and it does not want goes to standard output at once. Only
/// the first call has an effect.
pub fn set_listener(listener: OutputListener) {
    let _is_first = LISTENER.set(listener);
}

/// What a launch prints for the listener.
pub(super) struct LaunchOutput(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    texts: Vec<PrintedText>,
    len_bytes: usize,
    /// The calls of which nothing is kept, since there is too much already.
    left_out: u64,
}

/// What one call of `printf` wrote.
struct PrintedText {
    kernel: String,
    text: String,
}

thread_local! {
    /// Where the blocks that this thread runs print; null for standard output.
    static OUTPUT: Cell<*const LaunchOutput> = const { Cell::new(std::ptr::null()) };
}

impl LaunchOutput {
    /// For a launch that is about to run; `None` if no listener wants what it prints.
    pub(super) fn of_launch() -> Option<Self> {
        let listener = LISTENER.get()?;
        // A panic must not fail the launch.
        let is_wanted = contain_panic(listener.wants_printed).unwrap_or(false);
        is_wanted.then(|| Self(Mutex::default()))
    }

    /// Passes everything to the listener. The blocks are over, and the caller holds no lock.
    pub(super) fn pass_on(self) {
        let Some(listener) = LISTENER.get() else { return };
        let kept = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A panic must not fail the launch, nor keep the rest from the listener.
        let pass = |kernel: &str, text: &str| {
            let _panicked = contain_panic(|| (listener.printed)(kernel, text));
        };
        kept.texts.iter().for_each(|PrintedText { kernel, text }| pass(kernel, text));
        if let (Some(last), 1..) = (kept.texts.last(), kept.left_out) {
            pass(&last.kernel, &left_out(kept.left_out));
        }
    }

    fn keep(&self, kernel: &str, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len_bytes + text.len() > KEPT_BYTES_MAX {
            kept.left_out += 1;
            return;
        }
        kept.len_bytes += text.len();
        kept.texts.push(PrintedText { kernel: kernel.to_owned(), text });
    }
}

fn left_out(calls: u64) -> String {
    format!(
        "({calls} further calls of printf are left out: a subscriber gets at most {KEPT_BYTES_MAX} \
         bytes of one launch)"
    )
}

/// While this lives, blocks that this thread runs print to a launch's output.
pub(super) struct Printing {
    before: *const LaunchOutput,
}

impl Printing {
    /// # Safety
    ///
    /// The output outlives the value.
    pub(super) unsafe fn to(output: Option<&LaunchOutput>) -> Self {
        let output = output.map_or(std::ptr::null(), std::ptr::from_ref);
        Self { before: OUTPUT.replace(output) }
    }
}

impl Drop for Printing {
    fn drop(&mut self) {
        OUTPUT.set(self.before);
    }
}

/// Prints what one call of `printf` wrote. Called inside a kernel, so it runs no code of the
/// program's.
pub(super) fn print(kernel: &str, text: &[u8]) {
    // SAFETY: null, or what the caller of `Printing::to` keeps alive until the pointer is replaced.
    match unsafe { OUTPUT.get().as_ref() } {
        Some(output) => output.keep(kernel, String::from_utf8_lossy(text).into_owned()),
        None => {
            // If standard output is closed, the text is lost, as for a program in C.
            let _unwritten = std::io::stdout().write_all(text);
        }
    }
}

/// Passes a finding to the listener. Returns whether anything wants it. The caller holds no lock,
/// and runs no block.
pub(super) fn report(finding: &Finding) -> bool {
    let Some(listener) = LISTENER.get() else { return false };
    // A panic must not replace the launch's own failure.
    contain_panic(|| (listener.found)(finding)).unwrap_or(true)
}
