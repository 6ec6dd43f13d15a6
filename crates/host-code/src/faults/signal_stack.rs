//! The stack on which a thread of the machine handles signals. std gives one to the threads of a
//! Rust program, but not to those of a Python interpreter, or of another program in C.

use std::mem::MaybeUninit;

/// The size of the stack. A frame of a signal with the registers of AVX-512 takes about 3 KiB, and
/// the handler of the program may be called on it.
const BYTES: usize = 64 << 10;

thread_local! {
    static OWN: Option<SignalStack> = SignalStack::of_this_thread();
}

/// Gives this thread a stack for signals if it has none, until the thread ends.
#[inline]
pub(in super::super) fn prepare_thread() {
    // At the thread's end there is none, and an overflow ends the process.
    let _is_ended = OWN.try_with(|_| ());
}

struct SignalStack {
    /// The system writes to it by this address.
    memory: *mut [MaybeUninit<u8>],
}

impl SignalStack {
    /// `None` if the thread has one already, or if the system refuses it.
    fn of_this_thread() -> Option<Self> {
        let has_none = current().is_some_and(|stack| stack.ss_flags & libc::SS_DISABLE != 0);
        has_none.then(Self::new).filter(|own| set(own.memory.cast(), 0))
    }

    fn new() -> Self {
        Self { memory: Box::into_raw(Box::new_uninit_slice(BYTES)) }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let is_own = current().is_some_and(|stack| stack.ss_sp.addr() == self.memory.addr());
        if !is_own || set(std::ptr::null_mut(), libc::SS_DISABLE) {
            // SAFETY: `new` has made it of a box, and the system does not use it any more.
            drop(unsafe { Box::from_raw(self.memory) });
        }
    }
}

/// This thread's stack for signals.
fn current() -> Option<libc::stack_t> {
    // SAFETY: zeros are a valid value of this structure of C.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid; none is the request to change nothing.
    let code = unsafe { libc::sigaltstack(std::ptr::null(), &raw mut stack) };
    (code == 0).then_some(stack)
}

/// Sets this thread's stack for signals. Returns whether the system accepts it.
fn set(memory: *mut libc::c_void, flags: libc::c_int) -> bool {
    let stack = libc::stack_t { ss_sp: memory, ss_flags: flags, ss_size: BYTES };
    // SAFETY: the memory has so many bytes and stays in place until `drop` disables the stack.
    unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) == 0 }
}
