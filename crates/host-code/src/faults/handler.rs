//! The handler of `SIGSEGV`, `SIGFPE` and `SIGILL`, and of `SIGURG`, by which threads are
//! interrupted whose launch takes too long (`time_limit`).

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use corosensei::trap::TrapHandlerRegs;
use libc::{
    REG_RBP, REG_RDI, REG_RIP, REG_RSI, REG_RSP, SIGFPE, SIGILL, SIGSEGV, SIGURG, c_int, c_void,
    siginfo_t, ucontext_t,
};

use super::{Ended, RUNNING, RunningStack, code, division};
use crate::launch_timeout;

/// The `si_code` of a fault that has no address.
const SI_KERNEL: c_int = 0x80;

/// What handled a signal before. Null is the default action.
struct Before(AtomicPtr<libc::sigaction>);

static BEFORE_SEGV: Before = Before(AtomicPtr::new(std::ptr::null_mut()));
static BEFORE_FPE: Before = Before(AtomicPtr::new(std::ptr::null_mut()));
static BEFORE_ILL: Before = Before(AtomicPtr::new(std::ptr::null_mut()));
static BEFORE_URG: Before = Before(AtomicPtr::new(std::ptr::null_mut()));

/// Installs the handler, once in the process.
pub(in super::super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        [SIGSEGV, SIGFPE, SIGILL].into_iter().for_each(install_for);
        if launch_timeout::limit().is_ok_and(|limit| limit.is_some()) {
            install_for(SIGURG);
        }
    });
}

/// Lets this thread be interrupted, also in a program that blocks signals.
pub(super) fn accept_interruptions() {
    // SAFETY: zeros are a valid value of this structure of C.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid.
    unsafe { libc::sigaddset(&raw mut signals, SIGURG) };
    // SAFETY: the first pointer is valid, and the other one asks for nothing.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut()) };
}

/// Interrupts a thread of this process, which has not ended.
pub(super) fn interrupt(thread: libc::pthread_t) {
    // SAFETY: the thread is in the list of those that run blocks, which the caller has locked, and
    // leaves it before it ends.
    unsafe { libc::pthread_kill(thread, SIGURG) };
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
    let restarts = if signal == SIGURG { libc::SA_RESTART } else { 0 };
    action.sa_flags = libc::SA_SIGINFO
        | libc::SA_ONSTACK
        | restarts
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
        match signal {
            SIGFPE => &BEFORE_FPE,
            SIGILL => &BEFORE_ILL,
            SIGURG => &BEFORE_URG,
            _ => &BEFORE_SEGV,
        }
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
    let is_over = match signal {
        SIGURG => end_in_time(registers),
        _ if !is_fault => false,
        SIGFPE => finish_division(registers),
        SIGILL => end_at_trap(registers),
        // Of the kernel of the system, without the address: that of a vector is not aligned, or no
        // address has these bits. The access has not happened.
        _ if information.si_code == SI_KERNEL => end_at_refusal(registers),
        _ => end_at_overflow(address(), registers),
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

/// If a kernel's code overflowed the stack that runs, ends its thread.
fn end_at_overflow(address: usize, context: &mut ucontext_t) -> bool {
    if code::kernel_at(register(context, REG_RIP)).is_none() {
        return false;
    }
    let Some(stack) = running() else { return false };
    let is_overflow =
        address.wrapping_sub(stack.addresses.start) < stack.page_bytes && runs(context, stack);
    if is_overflow {
        end_thread(stack, Ended::Overflowed, context);
    }
    is_overflow
}

/// If a kernel's code came to an instruction that no processor has, ends its thread. So does a
/// function that it called, when it returns, if the time is over.
fn end_at_trap(context: &mut ucontext_t) -> bool {
    let at = register(context, REG_RIP);
    let is_out_of_time = at == return_to_end as *const () as usize;
    if !is_out_of_time && code::kernel_at(at).is_none() {
        return false;
    }
    let Some(stack) = running().filter(|stack| runs(context, stack)) else { return false };
    end_thread(stack, if is_out_of_time { Ended::OutOfTime } else { Ended::Trapped }, context);
    true
}

/// If a kernel's code made an access that the processor refuses, ends its thread.
fn end_at_refusal(context: &mut ucontext_t) -> bool {
    if code::kernel_at(register(context, REG_RIP)).is_none() {
        return false;
    }
    let Some(stack) = running().filter(|stack| runs(context, stack)) else { return false };
    end_thread(stack, Ended::Refused, context);
    true
}

/// If the time of the launch is over that runs here, ends its thread: now in a kernel's own code,
/// and when it returns there in that of others, which may hold a lock.
fn end_in_time(context: &mut ucontext_t) -> bool {
    let Some(stack) = running().filter(|stack| runs(context, stack)) else { return false };
    if !launch_timeout::is_over() {
        return false;
    }
    if code::kernel_at(register(context, REG_RIP)).is_some() {
        end_thread(stack, Ended::OutOfTime, context);
        return true;
    }
    let end = return_to_end as *const () as usize;
    for word in words_of(stack, context) {
        // SAFETY: the word is in the used part of a stack of this thread, which is mapped and which
        // only the interrupted code uses.
        if is_return_address(unsafe { word.read() }) {
            // SAFETY: as above. The code that would go on there has no destructors, and what it
            // wrote counts as lost.
            unsafe { word.write(end) };
        }
    }
    true
}

/// Where code goes on that a kernel has called, once the time is over. The handler ends the thread.
#[unsafe(naked)]
unsafe extern "C" fn return_to_end() {
    std::arch::naked_asm!("ud2")
}

/// Whether code of a kernel called a function from just before an address. Other words that look so
/// are those that functions left behind which have returned.
fn is_return_address(address: usize) -> bool {
    /// The longest instruction that calls, in bytes.
    const CALL_BYTES_MAX: usize = 7;

    let first = address.wrapping_sub(CALL_BYTES_MAX);
    if code::kernel_at(address).is_none() || code::kernel_at(first).is_none() {
        return false;
    }
    let code: *const [u8; CALL_BYTES_MAX] = std::ptr::with_exposed_provenance(first);
    // SAFETY: both ends are in the code of one library, which can be read.
    let bytes = unsafe { code.read() };
    let is_indirect = |call: &[u8]| call[0] == 0xff && call[1] >> 3 & 7 == 2;
    bytes[2] == 0xe8 || (0..=CALL_BYTES_MAX - 2).any(|at| is_indirect(&bytes[at..at + 2]))
}

fn register(context: &ucontext_t, register: c_int) -> usize {
    context.uc_mcontext.gregs[register as usize] as usize
}

/// The stack that runs on this thread of the machine.
fn running() -> Option<&'static RunningStack> {
    // SAFETY: `while_running` borrows the stack as long as the pointer is set, and the handler
    // returns before.
    unsafe { RUNNING.get().as_ref() }
}

/// Whether code was interrupted that runs on a stack.
fn runs(context: &ucontext_t, stack: &RunningStack) -> bool {
    stack.trap.stack_ptr_in_bounds(register(context, REG_RSP))
}

/// Lets a kernel's code go on behind the end of its thread.
fn end_thread(stack: &RunningStack, how: Ended, context: &mut ucontext_t) {
    // SAFETY: the stack pointer is in the stack. The kernel's code runs there, which has no
    // destructors and holds no lock of the library; what it wrote counts as lost, since the launch
    // fails. The registers are set below.
    let go_on = unsafe { stack.trap.setup_trap_handler(move || how) };
    let TrapHandlerRegs { rip, rsp, rbp, rdi, rsi } = go_on;
    for (register, value) in
        [(REG_RIP, rip), (REG_RSP, rsp), (REG_RBP, rbp), (REG_RDI, rdi), (REG_RSI, rsi)]
    {
        context.uc_mcontext.gregs[register as usize] = value as i64;
    }
}

/// The words of the used part of a stack, from the last one on.
fn words_of(stack: &RunningStack, context: &ucontext_t) -> impl Iterator<Item = *mut usize> {
    let top = register(context, REG_RSP).next_multiple_of(size_of::<usize>());
    let count = stack.addresses.end.saturating_sub(top) / size_of::<usize>();
    let first = std::ptr::with_exposed_provenance_mut::<usize>(top);
    (0..count).map(move |index| first.wrapping_add(index))
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

    code::kernel_at(register(context, REG_RIP)).or_else(|| {
        let stack = running().filter(|stack| runs(context, stack))?;
        words_of(stack, context).take(WORDS_MAX).find_map(|word| {
            // SAFETY: the word is in the used part of a stack of this thread, which is mapped and
            // which only the interrupted code writes.
            code::kernel_at(unsafe { word.read() })
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
        // By default nothing happens.
        None | Some((libc::SIG_DFL, _)) if signal == SIGURG => {}
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
