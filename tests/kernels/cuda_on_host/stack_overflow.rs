//! Threads of a block that overflow their stacks, and the signals that the library handles for
//! this. Tests that change how the process handles signals run in processes of their own.

use resident::{Device, Grid, InOut, SmartArray};
use support::own_process;
use support::test_name;

use crate::one_of;

/// Takes some bytes of the stack for each step down, or a large array at once.
const DEEP: &str = r#"
    __device__ __noinline__ int down(int steps) {
        volatile int here[64];
        here[steps & 63] = steps;
        return steps == 0 ? 0 : down(steps - 1) + (here[steps & 63] == steps);
    }
    extern "C" __global__ void deep(int steps, int *x) {
        __syncthreads();
        if (threadIdx.x == 1) x[0] = down(steps);
    }
    __device__ __noinline__ int sum(int at) {
        volatile int large[1 << 20];
        large[at] = at;
        return large[at];
    }
    extern "C" __global__ void large(int at, int *x) { if (threadIdx.x == 1) x[0] = sum(at); }
"#;

#[test]
#[ignore = "ends its process: run in processes of its own by the test below"]
fn overflows_another_stack() {
    fn down(steps: u64) -> u64 {
        let here = std::hint::black_box([steps; 64]);
        if steps == 0 { 0 } else { down(steps - 1) + here[(steps % 64) as usize] }
    }
    let deep = one_of::<(i32, InOut<i32>)>(DEEP, "deep");
    let mut x = SmartArray::<i32, _>::zeros(1);
    deep.launch_on(&Device::cpu().stream(), Grid::new(1, 4), (9, &mut x)).expect("a launch");
    assert_eq!(x.get(0).expect("a number"), 9);
    println!("{}", down(std::hint::black_box(1 << 40)));
}

/// The handler passes on what is not an overflow of a kernel: here, to that of std.
#[cfg(target_os = "linux")]
#[test]
fn other_overflows_end_the_process_as_before() {
    let output = own_process::run(test_name!(overflows_another_stack), &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("has overflowed its stack"), "{text}");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod signals {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Output;
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    use libc::{SIGSEGV, c_int, c_void, sigaction, siginfo_t};
    use resident::{Device, Emulation, Error, Grid, InOut, Kernel, SmartArray};
    use support::{own_process, test_name};

    use super::DEEP;
    use crate::{kernel, one_of};

    type Deep = Kernel<(i32, InOut<i32>)>;

    /// Launches a kernel of `DEEP` on a device, and says why that failed.
    fn launch(deep: &Deep, device: &Device, steps: i32) -> Option<String> {
        let mut x = SmartArray::<i32, _>::zeros(1);
        deep.launch_on(&device.stream(), Grid::new(3, 4), (steps, &mut x)).expect("queued");
        match x.host().map(|x| x[0]) {
            Ok(value) => {
                assert_eq!(value, steps);
                None
            }
            Err(Error::Lost { cause, .. }) => Some(cause.to_string()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Overflows the stack of a thread of a block.
    fn overflow(deep: &Deep, device: &Device) {
        let cause = launch(deep, device, 1 << 19).expect("it fails");
        assert!(cause.contains("overflows its stack") && cause.contains("smaller"), "{cause}");
    }

    #[test]
    fn a_thread_that_overflows_its_stack_fails_the_launch() {
        let deep = one_of(DEEP, "deep");
        let large = one_of(DEEP, "large");
        let device = crate::device();
        for _ in 0..3 {
            overflow(&deep, &device);
            overflow(&large, &device);
            assert_eq!(launch(&deep, &device, 1000), None, "the stacks are used again");
        }
    }

    /// The thread that waits for a seeded device runs its kernels.
    fn seeded() -> Device {
        Device::emulated(Emulation::new().seed(1))
    }

    /// As in a program that std did not start.
    #[test]
    fn threads_without_a_stack_for_signals_get_one_and_free_it() {
        let deep = one_of(DEEP, "deep");
        let without_stack = || {
            let none = libc::stack_t {
                ss_sp: std::ptr::null_mut(),
                ss_flags: libc::SS_DISABLE,
                ss_size: 0,
            };
            // SAFETY: this thread goes on without one.
            assert_eq!(unsafe { libc::sigaltstack(&raw const none, std::ptr::null_mut()) }, 0);
            let device = seeded();
            overflow(&deep, &device);
            overflow(&deep, &device);
        };
        for _ in 0..3 {
            std::thread::scope(|scope| scope.spawn(without_stack).join()).expect("it went on");
        }
    }

    /// What is installed as a handler of `SIGSEGV`, and what was before.
    fn install(handler: usize) -> sigaction {
        // SAFETY: zeros are a valid value of this structure of C.
        let [mut new, mut before]: [sigaction; 2] = unsafe { std::mem::zeroed() };
        new.sa_sigaction = handler;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handlers of these tests have the type that the flag says.
        let code = unsafe { sigaction(SIGSEGV, &raw const new, &raw mut before) };
        assert_eq!(code, 0);
        before
    }

    fn raise() {
        // SAFETY: the tests say what happens.
        unsafe { libc::raise(SIGSEGV) };
    }

    static SENT: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn count(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: the system passes it.
        let is_sent = unsafe { &*info }.si_code <= 0;
        if !is_sent {
            // SAFETY: it ends the process, with a code that the test knows.
            unsafe { libc::_exit(17) };
        }
        SENT.fetch_add(1, Ordering::Relaxed);
    }

    /// The handler, then a kernel, then a signal, and then what `also` does.
    fn with_a_handler_before(handler: usize, also: impl FnOnce(&Deep)) {
        install(handler);
        let deep = one_of(DEEP, "deep");
        overflow(&deep, &crate::device());
        raise();
        also(&deep);
        println!("still here");
    }

    #[test]
    fn signals_that_a_program_sends_go_to_the_handler_before() {
        own_process!();
        with_a_handler_before(count as *const () as usize, |_| {
            assert_eq!(SENT.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    #[ignore = "handles the process's signals: run in processes of its own by the test below"]
    fn sends_to_nobody() {
        with_a_handler_before(libc::SIG_DFL, |_| ());
    }

    #[test]
    fn signals_that_a_program_sends_are_ignored_as_before() {
        own_process!();
        with_a_handler_before(libc::SIG_IGN, |_| ());
    }

    /// Writes to the first page, from a kernel.
    fn write_to_nothing() {
        let source = "extern \"C\" __global__ void wild(unsigned long long at, int *x) {
            *reinterpret_cast<volatile int *>(at) = *x;
        }";
        let wild = kernel::<(u64, InOut<i32>)>("wild", source);
        let mut x = SmartArray::<i32, _>::zeros(1);
        let _ends = wild.launch_on(&seeded().stream(), Grid::new(1, 1), (8, &mut x));
        let _ends = x.to_vec();
    }

    #[test]
    #[ignore = "ends its process: run in processes of its own by the test below"]
    fn clears_nothing() {
        let source = "extern \"C\" __global__ void wild(unsigned long long at, int *x) {
            memset(reinterpret_cast<void *>(at), 1, 4096 + *x);
        }";
        let wild = kernel::<(u64, InOut<i32>)>("wild", source);
        let mut x = SmartArray::<i32, _>::zeros(1);
        let _ends = wild.launch_on(&seeded().stream(), Grid::new(1, 1), (8, &mut x));
        let _ends = x.to_vec();
        println!("still here");
    }

    #[test]
    #[ignore = "ends its process: run in processes of its own by the test below"]
    fn overflows_another_stack_here() {
        super::overflows_another_stack();
    }

    #[test]
    #[ignore = "handles the process's signals: run in processes of its own by the test below"]
    fn ignores_and_writes_to_nothing() {
        with_a_handler_before(libc::SIG_IGN, |_| write_to_nothing());
    }

    #[test]
    #[ignore = "handles the process's signals: run in processes of its own by the test below"]
    fn handles_a_write_to_nothing() {
        with_a_handler_before(count as *const () as usize, |_| write_to_nothing());
    }

    static LIBRARY: AtomicPtr<sigaction> = AtomicPtr::new(std::ptr::null_mut());

    /// A later handler, which passes everything on to the library's.
    extern "C" fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the test stores it before it installs this handler.
        let before = unsafe { &*LIBRARY.load(Ordering::Acquire) };
        // SAFETY: the library's handler has this type.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(before.sa_sigaction) };
        SENT.fetch_add(1, Ordering::Relaxed);
        handler(signal, info, context);
    }

    extern "C" fn exit(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: it ends the process, with a code that the test knows.
        unsafe { libc::_exit(17) };
    }

    #[test]
    #[ignore = "handles the process's signals: run in processes of its own by the test below"]
    fn overflows_below_later_handlers() {
        let deep = one_of(DEEP, "deep");
        // The first takes the library's handler as the one before, the second is above it.
        let library = install(exit as *const () as usize);
        LIBRARY.store(Box::leak(Box::new(library)), Ordering::Release);
        install(pass_on as *const () as usize);
        overflow(&deep, &crate::device());
        assert_eq!(SENT.load(Ordering::Relaxed), 1);
        install(exit as *const () as usize);
        launch(&deep, &crate::device(), 1 << 19);
        println!("still here");
    }

    /// Runs a test that ends its process, after an overflow that did not.
    fn run_to_its_end(test: &str) -> Output {
        let output = own_process::run(test, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && !text.contains("still here"), "{test}: {output:?}");
        output
    }

    #[test]
    fn signals_that_a_program_sends_end_it_without_a_handler() {
        let ended = run_to_its_end(test_name!(sends_to_nobody));
        assert_eq!(ended.status.signal(), Some(SIGSEGV), "{ended:?}");
    }

    #[test]
    fn other_faults_of_kernels_go_to_the_handler_before() {
        let ended = run_to_its_end(test_name!(handles_a_write_to_nothing));
        assert_eq!(ended.status.code(), Some(17), "{ended:?}");
        // The access would happen again, for ever.
        let ended = run_to_its_end(test_name!(ignores_and_writes_to_nothing));
        assert_eq!(ended.status.signal(), Some(SIGSEGV), "{ended:?}");
    }

    /// The kernel that `write_to_nothing` launches, and one that writes through a function of C.
    #[test]
    fn other_faults_of_kernels_name_the_kernel_and_the_checker() {
        for test in [
            test_name!(handles_a_write_to_nothing),
            test_name!(ignores_and_writes_to_nothing),
            test_name!(clears_nothing),
        ] {
            let ended = run_to_its_end(test);
            let errors = String::from_utf8_lossy(&ended.stderr);
            assert!(
                errors
                    .contains("a kernel in CUDA C, \"wild\", accesses memory that is none of its")
                    && errors.contains(" at 0x8 ")
                    && errors.contains("RESIDENT_SANITIZE=1"),
                "{test}: {errors}"
            );
        }
        let ended = own_process::run(test_name!(overflows_another_stack_here), &[]);
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!errors.contains("a kernel"), "{errors}");
    }

    #[test]
    fn later_handlers_decide_what_they_pass_on() {
        let ended = run_to_its_end(test_name!(overflows_below_later_handlers));
        assert_eq!(ended.status.code(), Some(17), "{ended:?}");
    }
}
