//! `exit` from wherever the library calls code of the program's, and from wherever the program is
//! in a call of the library: the process ends with that code, and `RESIDENT_AUDIT` has its report.
//! Each place is tried in a process of its own, which is ended if it hangs.

use std::future::Future;
use std::pin::pin;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use std::{env, fs, thread};

use resident::ndarray::{Array1, Ix1};
use resident::{
    Device, Emulation, Grid, InOut, Kernel, SmartArray, audit, ops, with_mapped, with_pinned,
};
use support::own_process;
use support::test_name;
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

/// Names the place, for a process that ends there.
const VARIABLE: &str = "RESIDENT_TEST_EXIT_FROM";

/// The code with which it ends.
const CODE: i32 = 3;

fn moved() -> SmartArray<u8, Ix1> {
    let array = SmartArray::from(vec![1_u8; 1234]).named("moved");
    array.prefetch(&Device::cpu().stream()).expect("queued");
    array
}

fn leave() {
    exit(CODE);
}

/// A kernel whose body ends the process.
fn ending() -> Kernel<(InOut<u8>,)> {
    Kernel::new("ending").host(|_, (_,): (&mut [u8],)| leave())
}

fn launch(kernel: &Kernel<(InOut<u8>,)>, device: &Device) {
    let (mut array, _moved) = (SmartArray::from(vec![1_u8; 10]), moved());
    kernel.launch_on(&device.stream(), Grid::cover(1), (&mut array,)).expect("queued");
    let _ended = array.host();
}

/// A kernel in CUDA C that prints.
fn printing() -> Kernel<(InOut<u8>,)> {
    let source = "extern \"C\" __global__ void printing(unsigned char *x) { printf(\"here\"); }";
    // SAFETY: it accesses nothing.
    unsafe { Kernel::<(InOut<u8>,)>::new("printing").cuda(source) }
}

/// Ends the process at the first event of a target.
struct Ending(&'static str);

impl<S: tracing::Subscriber> Layer<S> for Ending {
    fn on_event(&self, event: &tracing::Event<'_>, _context: LayerContext<'_, S>) {
        if event.metadata().target() == self.0 {
            exit(CODE);
        }
    }
}

fn subscribe(target: &'static str) {
    let subscriber = tracing_subscriber::registry().with(Ending(target));
    tracing::subscriber::set_global_default(subscriber).expect("the first");
}

struct EndingWaker;

impl Wake for EndingWaker {
    fn wake(self: Arc<Self>) {
        exit(CODE);
    }
}

/// Uses the library when it drops.
struct Using;

impl Drop for Using {
    fn drop(&mut self) {
        use_library();
    }
}

thread_local! {
    static USING: Using = const { Using };
}

fn use_library() {
    let stream = Device::cpu().stream();
    let mut array = SmartArray::from(vec![1_u8; 10]);
    array.fill_on(&stream, 3).expect("queued");
    assert_eq!(array.to_vec().expect("it ran"), [3; 10]);
    assert_eq!(stream.launch_host_function(|| 4).expect("queued").wait().expect("it ran"), 4);
}

extern "C" fn use_library_at_exit() {
    use_library();
}

/// Threads that go on using the library while the process ends.
fn start_busy_threads() {
    static HAVE_BEGUN: AtomicBool = AtomicBool::new(false);
    for _ in 0..3 {
        thread::spawn(|| {
            loop {
                use_library();
                audit::capture_all(use_library);
                HAVE_BEGUN.store(true, Ordering::Relaxed);
            }
        });
    }
    while !HAVE_BEGUN.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

fn leave_from_a_waker() {
    let (stream, mut array) = (Device::cpu().stream(), moved());
    let slow = Kernel::<(InOut<u8>,)>::new("slow")
        .host(|_, (_,): (&mut [u8],)| thread::sleep(Duration::from_millis(200)));
    slow.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("queued");
    let pending = array.snapshot_on(&stream).expect("queued");
    let waker = Waker::from(Arc::new(EndingWaker));
    let _pending = pin!(pending).as_mut().poll(&mut Context::from_waker(&waker));
    thread::sleep(Duration::from_secs(60));
}

fn leave_while_a_kernel_runs() {
    let mut array = moved();
    let endless = Kernel::<(InOut<u8>,)>::new("endless").host(|_, (_,): (&mut [u8],)| {
        loop {
            thread::yield_now();
        }
    });
    let stream = Device::cpu().stream();
    endless.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("queued");
    leave();
}

fn leave_behind_forgotten_guards() {
    let (mut one, other) = (moved(), moved());
    std::mem::forget(one.gpu_mut_on(&Device::cpu().stream()).expect("it is there"));
    std::mem::forget(other.host().expect("copied"));
    std::mem::forget(audit::deny(audit::Implicit::ALL));
    std::mem::forget(Device::cpu().enter());
    leave();
}

/// Functions that use the library at exit: one runs before the library's own, one behind it, and
/// the destructor of a thread-local before both.
fn leave_with_functions_at_exit() {
    // SAFETY: the function is one of this program; a panic of it ends the process.
    assert_eq!(unsafe { libc::atexit(use_library_at_exit) }, 0);
    let _moved = moved();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::atexit(use_library_at_exit) }, 0);
    USING.with(|_| ());
    leave();
}

fn with_moved(leave: impl FnOnce()) {
    let _moved = moved();
    leave();
}

/// The places, and what ends the process there.
const PLACES: &[(&str, fn())] = &[
    ("a body", || launch(&ending(), &Device::cpu())),
    ("a body on a seeded device", || {
        launch(&ending(), &Device::emulated(Emulation::new().seed(1)));
    }),
    ("a host function", || {
        with_moved(|| {
            let queued = Device::cpu().stream().launch_host_function(leave);
            let _ended = queued.map(|function| function.wait());
        });
    }),
    ("a capture", || drop(audit::capture(|| with_moved(leave)))),
    ("a capture of all", || drop(audit::capture_all(|| with_moved(leave)))),
    ("a loan of pinned memory", || {
        with_moved(|| {
            let (mut host, stream) = (Array1::<u8>::zeros(10), Device::cpu().stream());
            let _ended = with_pinned(&mut host, |lent| lent.fill_on(&stream, 3).map(|()| leave()));
        });
    }),
    ("a loan of mapped memory", || {
        with_moved(|| {
            let (mut host, stream) = (Array1::<u8>::zeros(10), Device::cpu().stream());
            let _ended = with_mapped(&mut host, |lent| lent.fill_on(&stream, 3).map(|()| leave()));
        });
    }),
    ("a subscriber of copies", || {
        subscribe("resident::transfer");
        drop(moved());
    }),
    ("a subscriber of prints", || {
        subscribe("resident::printf");
        if cfg!(cxx) {
            launch(&printing(), &Device::cpu());
        } else {
            with_moved(leave);
        }
    }),
    ("a waker", leave_from_a_waker),
    ("main, while a kernel runs", leave_while_a_kernel_runs),
    ("main, while other threads work", || {
        let _moved = moved();
        start_busy_threads();
        let ones = SmartArray::<f32, _>::ones(4 << 20);
        ops::sum_on(&Device::cpu().stream(), &ones, &mut SmartArray::zeros(())).expect("queued");
        leave();
    }),
    ("another thread, while other threads work", || {
        let _moved = moved();
        start_busy_threads();
        thread::spawn(leave).join().expect("it never returns");
    }),
    ("main, with functions at exit", leave_with_functions_at_exit),
    ("main, behind forgotten guards", leave_behind_forgotten_guards),
    ("two threads at once", || {
        let _moved = moved();
        thread::spawn(leave);
        leave();
    }),
];

#[test]
#[ignore = "ends its process: run in processes of its own by the test below"]
fn ends_somewhere() {
    let place = env::var(VARIABLE).expect("the test below sets it");
    let (_, leave) = PLACES.iter().find(|(name, _)| *name == place).expect("one of the places");
    leave();
    panic!("it has not ended");
}

#[test]
fn the_process_ends_with_its_report_wherever_it_ends() {
    let folder = env::temp_dir().join(format!("resident-exits-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let mut failed = Vec::new();
    for (number, (place, _)) in PLACES.iter().enumerate() {
        let file = folder.join(format!("{number}.json"));
        let value = format!("summary,contents,json:{}", file.display());
        let variables = [("RESIDENT_AUDIT", &*value), (VARIABLE, place)];
        let output = own_process::run_within(
            Duration::from_secs(60),
            test_name!(ends_somewhere),
            &variables,
        );
        let report = fs::read_to_string(file).unwrap_or_default();
        if output.status.code() != Some(CODE) || !report.contains("moved") {
            let errors = String::from_utf8_lossy(&output.stderr);
            failed.push(format!("{place}: {}, {} bytes\n{errors}", output.status, report.len()));
        }
    }
    fs::remove_dir_all(folder).expect("a folder");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
