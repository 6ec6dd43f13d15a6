//! Stream captures: which exist, each thread's mode, and the calls that they forbid.
//!
//! The stand-in records nothing during a capture: a capturing stream rejects work, and the capture
//! yields no graph. The rules of CUDA's manual about other calls hold:
//!
//! * Beside a capture in global mode, and on the thread of a capture that is not relaxed, calls
//!   that are potentially unsafe return an error and invalidate the capture, unless the mode of the
//!   calling thread allows them. CUDA does not list these calls;
//!   [`potentially_unsafe`](crate::interface::Rules::potentially_unsafe) has those that are known
//!   to be among them, or may be. HIP treats a wait for an event like a query.
//! * `cuCtxSynchronize` waits for the captured streams too, so no mode allows it.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::code::{Code, Outcome};
use crate::handle::Handle;
use crate::interface::rules;

/// `CU_STREAM_CAPTURE_MODE_GLOBAL`, `_THREAD_LOCAL` and `_RELAXED`.
const GLOBAL: u32 = 0;
const RELAXED: u32 = 2;

/// A capture that has not ended.
#[derive(Clone, Copy, Debug)]
struct Capture {
    stream: Handle,
    context: Handle,
    thread: ThreadId,
    mode: u32,
    is_invalid: bool,
}

static CAPTURES: Mutex<Vec<Capture>> = Mutex::new(Vec::new());

thread_local! {
    /// This thread's mode.
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

/// The status of a stream: none, active, or invalidated.
pub fn status(stream: Handle) -> u32 {
    captures()
        .iter()
        .find(|capture| capture.stream == stream)
        .map_or(0, |capture| 1 + u32::from(capture.is_invalid))
}

/// Begins a capture on this thread.
pub fn begin(stream: Handle, context: Handle, mode: u32) -> Outcome {
    if mode > RELAXED || status(stream) != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let thread = thread::current().id();
    captures().push(Capture { stream, context, thread, mode, is_invalid: false });
    Ok(())
}

/// Ends a capture. Returns an error if a call of another thread has invalidated it.
pub fn end(stream: Handle) -> Outcome {
    let mut captures = captures();
    let place = captures
        .iter()
        .position(|capture| capture.stream == stream)
        .ok_or(Code::STREAM_CAPTURE_UNMATCHED)?;
    if captures.remove(place).is_invalid {
        return Err(Code::STREAM_CAPTURE_INVALIDATED);
    }
    Ok(())
}

/// Replaces this thread's mode. Returns the previous one.
pub fn exchange_mode(mode: u32) -> Outcome<u32> {
    if mode > RELAXED { Err(Code::INVALID_VALUE) } else { Ok(MODE.replace(mode)) }
}

/// The error of a call that a capture forbids. The call invalidates the captures that forbid it.
pub fn check_call(name: &str) -> Outcome {
    let mut captures = captures();
    let is_safe = || !rules().potentially_unsafe.split_whitespace().any(|known| known == name);
    if captures.is_empty() || is_safe() {
        return Ok(());
    }
    let (this, mode) = (thread::current().id(), MODE.get());
    let forbids = |capture: &Capture| {
        let is_own = capture.thread == this && capture.mode != RELAXED && mode != RELAXED;
        is_own || capture.thread != this && capture.mode == GLOBAL && mode == GLOBAL
    };
    invalidate(&mut captures, forbids)
}

/// The error of a wait for a whole context in which a stream is being captured.
pub fn check_wait(context: Handle) -> Outcome {
    invalidate(&mut captures(), |capture| capture.context == context)
}

/// The error of a query or wait for one stream that is being captured.
pub fn check_stream(stream: Handle) -> Outcome {
    invalidate(&mut captures(), |capture| capture.stream == stream)
}

fn invalidate(captures: &mut [Capture], is_concerned: impl Fn(&Capture) -> bool) -> Outcome {
    let mut outcome = Ok(());
    for capture in captures.iter_mut().filter(|capture| is_concerned(capture)) {
        capture.is_invalid = true;
        outcome = Err(Code::STREAM_CAPTURE_UNSUPPORTED);
    }
    outcome
}

fn captures() -> MutexGuard<'static, Vec<Capture>> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}
