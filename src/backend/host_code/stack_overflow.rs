//! A thread of a block that overflows its stack ends, and with it the launch, instead of the
//! process: on Linux on x86-64. Elsewhere, and where the overflow is found in code of a library
//! that the kernel calls, the process ends, as it does for any other stack.
//!
//! The page behind a stack cannot be accessed (`corosensei`), and compiled code touches each page
//! of a large frame (`-fstack-clash-protection`). A handler of `SIGSEGV` looks whether the access
//! was to that page and came from the kernel's own code. All other signals go to the handler that
//! was there before.

use std::cell::Cell;

use corosensei::trap::CoroutineTrapHandler;

use super::runtime::Progress;

/// How the code of a stack ended.
#[derive(Clone, Copy)]
pub(super) enum Ended {
    Returned,
    Overflowed,
}

/// A stack on which a thread of a block runs.
pub(super) struct RunningStack {
    /// The lowest address, that of the page that cannot be accessed, and the end.
    pub(super) bounds: (usize, usize),
    pub(super) trap: CoroutineTrapHandler<Ended>,
    /// Names the kernel's code.
    pub(super) progress: *const Progress,
}

thread_local! {
    /// The stack that runs on this thread of the machine, if any.
    static RUNNING: Cell<*const RunningStack> = const { Cell::new(std::ptr::null()) };
}

/// Runs `resume` while `stack` counts as the one that runs.
#[inline]
pub(super) fn while_running<R>(stack: &RunningStack, resume: impl FnOnce() -> R) -> R {
    RUNNING.set(stack);
    let result = resume();
    RUNNING.set(std::ptr::null());
    result
}

/// The addresses of the running stack; no addresses if none runs.
pub(super) fn running_bounds() -> (usize, usize) {
    // SAFETY: `while_running` borrows the stack as long as the pointer is set.
    unsafe { RUNNING.get().as_ref() }.map_or((0, 0), |stack| stack.bounds)
}

pub(super) use handler::install;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod handler {
    use std::sync::OnceLock;

    use corosensei::trap::TrapHandlerRegs;
    use libc::{REG_RBP, REG_RDI, REG_RIP, REG_RSI, REG_RSP, c_int, c_void, siginfo_t, ucontext_t};

    use super::{Ended, RUNNING};

    /// What handled the signal before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// Installs the handler, once in the process.
    pub(in super::super) fn install() {
        BEFORE.get_or_init(|| {
            let own: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_signal;
            // SAFETY: zeros are a valid value of this structure of C.
            let [mut action, mut before]: [libc::sigaction; 2] = unsafe { std::mem::zeroed() };
            action.sa_sigaction = own as usize;
            // On the stack for signals, which std gives its threads: the thread's own is full.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: the handler has the type that `SA_SIGINFO` asks for, and stays loaded.
            // If the call fails, overflows end the process, as without a handler.
            unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before) };
            before
        });
    }

    /// Only reads memory of this thread, and the code on the stack has no destructors: so it may
    /// interrupt that code anywhere.
    unsafe extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the system passes it, and nobody else uses it meanwhile.
        let information = unsafe { &*info };
        // SAFETY: as above.
        let registers = unsafe { &mut *context.cast::<ucontext_t>() };
        // SAFETY: a `SIGSEGV` has an address.
        let address = unsafe { information.si_addr() }.addr();
        if !end_thread(address, registers) {
            // SAFETY: the arguments are passed on.
            unsafe { pass_on(signal, info, context) };
        }
    }

    /// If the kernel's code overflowed the stack that runs, lets it go on behind its end.
    fn end_thread(address: usize, context: &mut ucontext_t) -> bool {
        // SAFETY: `while_running` borrows the stack as long as the pointer is set.
        let Some(stack) = (unsafe { RUNNING.get().as_ref() }) else { return false };
        // SAFETY: the progress outlives the stacks that run (`BlockRunner::run`).
        let code = unsafe { &*stack.progress }.code();
        let registers = &mut context.uc_mcontext.gregs;
        let at = |register: c_int, registers: &[i64]| registers[register as usize] as usize;
        let page = stack.bounds.0..stack.bounds.0 + rustix::param::page_size();
        let is_overflow = page.contains(&address)
            && code.contains(&at(REG_RIP, registers))
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

    /// Does what the handler before would do.
    ///
    /// # Safety
    ///
    /// The arguments are those of a signal handler.
    unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let before = BEFORE.get().copied();
        match before.map(|before| (before.sa_sigaction, before)) {
            None | Some((libc::SIG_DFL | libc::SIG_IGN, _)) => {
                // SAFETY: the default action is valid. The access happens again, and ends the
                // process.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Some((handler, before)) if before.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: the flag says that the handler has this type.
                let handler: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(handler) };
                // SAFETY: the arguments are those of the signal.
                unsafe { handler(signal, info, context) };
            }
            Some((handler, _)) => {
                // SAFETY: without the flag the handler has this type.
                let handler: unsafe extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
                // SAFETY: the argument is the signal's.
                unsafe { handler(signal) };
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod handler {
    pub(in super::super) fn install() {}
}
