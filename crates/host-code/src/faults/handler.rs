//! The handler of `SIGSEGV` and `SIGFPE`.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use corosensei::trap::TrapHandlerRegs;
use libc::{
    REG_RBP, REG_RDI, REG_RIP, REG_RSI, REG_RSP, SIGFPE, SIGSEGV, c_int, c_void, siginfo_t,
    ucontext_t,
};

use super::{Ended, RUNNING, code, division};

/// What handled a signal before. Null is the default action.
struct Before(AtomicPtr<libc::sigaction>);

static BEFORE_SEGV: Before = Before(AtomicPtr::new(std::ptr::null_mut()));
static BEFORE_FPE: Before = Before(AtomicPtr::new(std::ptr::null_mut()));

/// Installs the handler, once in the process.
pub(in super::super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| [SIGSEGV, SIGFPE].into_iter().for_each(install_for));
}

fn install_for(signal: c_int) {
    // SAFETY: zeros are a valid value of this structure of C.
    let [mut action, mut before]: [libc::sigaction; 2] = unsafe { std::mem::zeroed() };
    // Known before the handler can be called.
    // SAFETY: both pointers are valid; none is the request to change nothing.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
    if asked != 0 {
        return;
    }
    Before::of(signal).keep(before);
    let own: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_signal;
    action.sa_sigaction = own as usize;
    action.sa_mask = before.sa_mask;
    // On the stack for signals: the thread's own is full.
    action.sa_flags = libc::SA_SIGINFO
        | libc::SA_ONSTACK
        | before.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
    // SAFETY: the handler has the type that `SA_SIGINFO` asks for, and stays loaded.
    // If the call fails, faults end the process, as without a handler.
    let installed = unsafe { libc::sigaction(signal, &raw const action, &raw mut before) };
    if installed == 0 {
        // Another thread may have installed one in between.
        Before::of(signal).keep(before);
    }
}

impl Before {
    fn of(signal: c_int) -> &'static Self {
        if signal == SIGFPE { &BEFORE_FPE } else { &BEFORE_SEGV }
    }

    /// Keeps what handled the signal before, for ever: the handler may be reading it.
    fn keep(&self, before: libc::sigaction) {
        self.0.store(Box::leak(Box::new(before)), Ordering::Release);
    }
}

/// Only reads memory of this thread, and the code on the stack has no destructors: so it may
/// interrupt that code anywhere.
unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes it, and nobody else uses it meanwhile.
    let information = unsafe { &*info };
    // SAFETY: as above.
    let registers = unsafe { &mut *context.cast::<ucontext_t>() };
    // Else it was sent by a program, and has no address.
    let is_fault = information.si_code > 0;
    // SAFETY: these signals have an address if the system sends them.
    let address = || unsafe { information.si_addr() }.addr();
    let is_over = is_fault
        && match signal {
            SIGFPE => finish_division(registers),
            _ => end_thread(address(), registers),
        };
    if !is_over {
        if is_fault && signal == SIGSEGV {
            say_if_of_a_kernel(address(), registers);
        }
        // SAFETY: the arguments are passed on.
        unsafe { pass_on(signal, info, context, is_fault) };
    }
}

/// If a kernel's code divided by zero, gives it what a GPU gives.
fn finish_division(context: &mut ucontext_t) -> bool {
    let registers = &mut context.uc_mcontext.gregs;
    let is_of_kernel = code::kernel_at(registers[REG_RIP as usize] as usize).is_some();
    // SAFETY: the registers are those at a `SIGFPE` of the system.
    is_of_kernel && unsafe { division::finish(registers) }
}

/// If a kernel's code overflowed the stack that runs, lets it go on behind its end.
fn end_thread(address: usize, context: &mut ucontext_t) -> bool {
    let registers = &mut context.uc_mcontext.gregs;
    let at = |register: c_int, registers: &[i64]| registers[register as usize] as usize;
    if code::kernel_at(at(REG_RIP, registers)).is_none() {
        return false;
    }
    // SAFETY: `while_running` borrows the stack as long as the pointer is set.
    let Some(stack) = (unsafe { RUNNING.get().as_ref() }) else { return false };
    let is_overflow = address.wrapping_sub(stack.addresses.start) < stack.page_bytes
        && stack.trap.stack_ptr_in_bounds(at(REG_RSP, registers));
    if is_overflow {
        // SAFETY: the stack pointer is in the stack. The kernel's code runs there, which has no
        // destructors and holds no lock of the library; what it wrote counts as lost, since the
        // launch fails. The registers are set below.
        let go_on = unsafe { stack.trap.setup_trap_handler(|| Ended::Overflowed) };
        let TrapHandlerRegs { rip, rsp, rbp, rdi, rsi } = go_on;
        for (register, value) in
            [(REG_RIP, rip), (REG_RSP, rsp), (REG_RBP, rbp), (REG_RDI, rdi), (REG_RSI, rsi)]
        {
            registers[register as usize] = value as i64;
        }
    }
    is_overflow
}

/// If a kernel made the access, or a function that it called, says so on standard error: what
/// handles the signal next cannot know. Makes one call of the system, as a handler may.
fn say_if_of_a_kernel(address: usize, context: &ucontext_t) {
    let Some(kernel) = kernel_of(context) else { return };
    let mut line = Line { text: [0; 512], len: 0 };
    let mut digits = [0; 16];
    for part in [
        "resident: a kernel in CUDA C, \"",
        kernel,
        "\", accesses memory that is none of its arrays', at 0x",
        hexadecimal(address, &mut digits),
        " (or it is its array's no more), and the process may end.\nresident: run it with \
         RESIDENT_SANITIZE=1 in the environment, or Emulation::sanitize, which name the line and \
         the array, unless an index of a thread's local array is out of bounds.\n",
    ] {
        line.push(part);
    }
    // SAFETY: so many bytes are there.
    let _unwritten =
        unsafe { libc::write(libc::STDERR_FILENO, line.text.as_ptr().cast(), line.len) };
}

/// The kernel whose code runs, or has called the code that runs: then a return address is near the
/// stack pointer.
fn kernel_of(context: &ucontext_t) -> Option<&'static str> {
    /// So many words of the stack are looked at.
    const WORDS_MAX: usize = 1 << 10;

    let at = |register: c_int| context.uc_mcontext.gregs[register as usize] as usize;
    code::kernel_at(at(REG_RIP)).or_else(|| {
        // SAFETY: `while_running` borrows the stack as long as the pointer is set.
        let stack = unsafe { RUNNING.get().as_ref() }?;
        let top = at(REG_RSP);
        if !stack.trap.stack_ptr_in_bounds(top) {
            return None;
        }
        let words = (stack.addresses.end - top) / size_of::<usize>();
        (0..words.min(WORDS_MAX)).find_map(|index| {
            let word = std::ptr::with_exposed_provenance::<usize>(top).wrapping_add(index);
            // SAFETY: the word is in the used part of a stack of this thread, which is mapped and
            // which only the interrupted code writes. Its address may be odd in code of others.
            code::kernel_at(unsafe { word.read_unaligned() })
        })
    })
}

/// A text that needs no heap. What does not fit is left out.
struct Line {
    text: [u8; 512],
    len: usize,
}

impl Line {
    fn push(&mut self, part: &str) {
        for byte in part.bytes().take(self.text.len() - self.len) {
            self.text[self.len] = byte;
            self.len += 1;
        }
    }
}

/// A number in hexadecimal digits.
fn hexadecimal(number: usize, digits: &mut [u8; 16]) -> &str {
    let count = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1) as usize;
    for (index, digit) in digits[..count].iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[number >> (4 * index) & 15];
    }
    str::from_utf8(&digits[..count]).unwrap_or_default()
}

/// Does what the handler before would do.
///
/// # Safety
///
/// The arguments are those of a signal handler.
unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
    // SAFETY: null, or what `keep` has leaked.
    let before = unsafe { Before::of(signal).0.load(Ordering::Acquire).as_ref() };
    match before.map(|before| (before.sa_sigaction, before.sa_flags)) {
        // A fault is not ignored: the access would happen again, for ever.
        Some((libc::SIG_IGN, _)) if !is_fault => {}
        None | Some((libc::SIG_DFL | libc::SIG_IGN, _)) => end_process(signal, is_fault),
        Some((handler, flags)) => {
            if flags & libc::SA_RESETHAND != 0 {
                Before::of(signal).0.store(std::ptr::null_mut(), Ordering::Release);
            }
            if flags & libc::SA_SIGINFO == 0 {
                // SAFETY: without the flag the handler has this type.
                let handler: unsafe extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
                // SAFETY: the argument is the signal's.
                unsafe { handler(signal) };
            } else {
                // SAFETY: the flag says that the handler has this type.
                let handler: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(handler) };
                // SAFETY: the arguments are those of the signal.
                unsafe { handler(signal, info, context) };
            }
        }
    }
}

/// The default action.
fn end_process(signal: c_int, is_fault: bool) {
    // SAFETY: the default action is valid.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // After a fault the access happens again, and ends the process.
    if !is_fault {
        // SAFETY: a handler may raise a signal. It arrives when this handler returns.
        unsafe { libc::raise(signal) };
    }
}
