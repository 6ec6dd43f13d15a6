//! Calls in destructors of thread-locals: the library's own may be destroyed already, or may be
//! made anew. Each call does what it does elsewhere, or is an error; none ends the process.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use resident::ops;
use support::prelude::*;

/// How many calls have been made, and which of them failed.
static MADE: AtomicUsize = AtomicUsize::new(0);
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Makes all calls when it drops.
struct Caller(&'static str);

thread_local! {
    static EARLY: RefCell<Option<Caller>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<Caller>> = const { RefCell::new(None) };
}

impl Drop for Caller {
    fn drop(&mut self) {
        for (name, call) in CALLS {
            MADE.fetch_add(1, Ordering::Relaxed);
            if catch_unwind(AssertUnwindSafe(call)).is_err() {
                FAILED.lock().expect("no panic").push(format!("{name}, {}", self.0));
            }
        }
    }
}

fn ones() -> SmartArray<f32, Ix1> {
    SmartArray::ones(10)
}

fn stream() -> Stream {
    Device::cpu().stream()
}

fn increment() -> Kernel<(InOut<f32>,)> {
    Kernel::new("increment").host(|_, (x,): (&mut [f32],)| x.iter_mut().for_each(|x| *x += 1.0))
}

/// An array whose newest contents are on the device.
fn on_device() -> SmartArray<f32, Ix1> {
    let mut array = ones();
    increment().launch_on(&stream(), Grid::cover(10), (&mut array,)).expect("queued");
    array
}

const CALLS: &[(&str, fn())] = &[
    ("current", || drop(Device::current().expect("a device"))),
    ("set_default", || Device::set_default(Device::cpu())),
    ("enter", || {
        let device = Device::emulated(Emulation::new());
        let entered = device.enter();
        assert_eq!(Device::current().expect("a device"), device);
        assert_eq!(ones().gpu().expect("uploaded").device(), device);
        drop(entered);
    }),
    ("launch", || assert_eq!(on_device().host().expect("it ran")[3], 2.0)),
    ("launch by scope", || {
        let (mut array, _entered) = (ones(), Device::cpu().enter());
        increment().launch(Grid::cover(10), (&mut array,)).expect("queued");
        assert_eq!(array.to_vec().expect("it ran"), [2.0; 10]);
    }),
    ("call", || increment().call(Grid::cover(10), (&mut ones(),)).expect("it ran")),
    ("compare", || {
        let compared = increment().compare(&Device::cpu(), Grid::cover(10), (&mut ones(),), 0.0);
        assert!(matches!(compared, Err(Error::NoKernelBody { .. })), "it has one body");
    }),
    ("prefetch", || ones().prefetch(&stream()).expect("queued")),
    ("into_array", || assert_eq!(on_device().into_array().expect("it ran")[0], 2.0)),
    ("try_clone", || drop(on_device().try_clone().expect("copied"))),
    ("fill", || on_device().fill(3.0).expect("filled")),
    ("set", || on_device().set(3, 3.0).expect("set")),
    ("error", || drop(ones().get(99).expect_err("there is no element 99").to_string())),
    ("set_name", || ones().set_name("named")),
    ("gpu_mut", || drop(ones().gpu_mut_on(&stream()).expect("uploaded"))),
    ("page_lock", || drop(ones().page_lock())),
    ("snapshot", || {
        let array = on_device();
        let pending = array.slice(s![..5]).snapshot_on(&stream()).expect("queued");
        assert_eq!(pending.wait().expect("copied").sum(), 10.0);
    }),
    ("watch", || {
        let mut array = ones();
        let watch = array.watch().expect("a watch");
        increment().launch_on(&stream(), Grid::cover(10), (&mut array,)).expect("queued");
        stream().synchronize().expect("it ran");
        drop(watch.latest());
    }),
    ("large", || drop(SmartArray::<f32, _>::ones(6 << 20).gpu_on(&stream()).expect("uploaded"))),
    ("device array", || {
        let array = DeviceArray::<f32, _>::zeros_on(&stream(), 10).expect("allocated");
        assert_eq!(array.copy_to_host().expect("copied").sum(), 0.0);
    }),
    ("pinned", || drop(PinnedArray::<f32, _>::zeros(10).expect("allocated"))),
    ("mapped", || drop(MappedArray::<f32, _>::zeros(10).expect("allocated"))),
    ("managed", || drop(ManagedArray::<f32, _>::zeros(10).expect("allocated"))),
    ("with_pinned", || {
        let mut host = Array1::<f32>::zeros(10);
        with_pinned(&mut host, |lent| lent.fill_on(&stream(), 3.0)).expect("filled");
        assert_eq!(host[9], 3.0);
    }),
    ("with_mapped", || {
        let mut host = Array1::<f32>::zeros(10);
        with_mapped(&mut host, |lent| lent.fill_on(&stream(), 3.0)).expect("filled");
        assert_eq!(host[9], 3.0);
    }),
    ("sum", || assert_eq!(on_device().sum().expect("it ran"), 20.0)),
    ("sum_on", || ops::sum_on(&stream(), &ones(), &mut SmartArray::zeros(1)).expect("queued")),
    ("large sum", || {
        let ones = SmartArray::<f32, _>::ones(3 << 20);
        let _here = Device::cpu().enter();
        assert_eq!(ones.sum().expect("it ran"), (3 << 20) as f32);
    }),
    ("host function", || {
        let function = stream().launch_host_function(|| 3).expect("queued");
        assert_eq!(function.wait().expect("it ran"), 3);
    }),
    ("event", || stream().record().expect("recorded").synchronize().expect("it comes")),
    ("auto_synchronize", || drop(stream().auto_synchronize())),
    ("capture", || {
        let (_array, report) = audit::capture(on_device);
        assert_eq!(report.traffic().to_device.bytes, 0, "ones are filled");
        let array = on_device();
        let (outcome, report) = audit::capture(|| array.host().map(drop));
        outcome.expect("it ran");
        assert_eq!(report.traffic().to_host.bytes, 40);
    }),
    ("capture_all", || drop(audit::capture_all(on_device))),
    ("scope", || assert_eq!(audit::scope().run(|| 1), 1)),
    ("deny", || {
        let (array, guard) = (on_device(), audit::deny(audit::Implicit::ALL));
        assert!(matches!(array.host(), Err(Error::Denied { .. })));
        let allowed = audit::allow(audit::Implicit::TO_HOST);
        assert!(array.host().is_ok());
        drop((guard, allowed));
    }),
    ("log", || {
        let guard = audit::log(audit::Implicit::ALL);
        assert!(on_device().host().is_ok());
        drop(guard);
    }),
    ("budget", || {
        let array = on_device();
        let budget = audit::Budget::new().to_host(0);
        assert!(budget.enforce(|| array.host().map(drop)).is_err());
    }),
    ("compare_contents", || drop(audit::compare_contents())),
    ("inventory", || drop(audit::inventory())),
    ("emulated", || {
        let device = Device::emulated(Emulation::new());
        ones().prefetch(&device.stream()).expect("queued");
        assert_ordered(&device);
    }),
    ("seeded", || {
        let (device, mut array) = (Device::emulated(Emulation::new().seed(1)), ones());
        increment().launch_on(&device.stream(), Grid::cover(10), (&mut array,)).expect("queued");
        assert_eq!(array.to_vec().expect("it ran"), [2.0; 10]);
    }),
    ("CUDA C", || cuda(&Device::emulated(Emulation::new()))),
    ("CUDA C, checked", || cuda(&Device::emulated(Emulation::new().sanitize(true)))),
    ("CUDA C, seeded", || cuda(&Device::emulated(Emulation::new().seed(1)))),
];

/// Blocks need stacks and shared memory of the thread that runs them, which may be this one.
fn cuda(device: &Device) {
    let source = "extern \"C\" __global__ void add(float *x) {
        extern __shared__ float all[];
        all[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = all[9 - threadIdx.x] + 1;
    }";
    // SAFETY: the threads of the one block access the ten elements, and four bytes each of shared
    // memory.
    let add = unsafe { Kernel::<(InOut<f32>,)>::new("add").cuda(source) };
    if cfg!(not(cxx)) {
        return;
    }
    let mut array = ones();
    let grid = Grid::new(1, 10).shared_bytes(40);
    add.launch_on(&device.stream(), grid, (&mut array,)).expect("queued");
    match array.to_vec() {
        Ok(values) => assert_eq!(values, [2.0; 10]),
        Err(Error::Lost { cause, .. }) => {
            assert!(cause.to_string().contains("is ending"), "{cause}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Lets the library make its thread-locals between those of the test: those that are registered
/// first are destroyed last.
fn use_library_between() {
    EARLY.set(Some(Caller("after the library's")));
    for (name, call) in CALLS {
        assert!(catch_unwind(call).is_ok(), "{name}");
    }
    LATE.set(Some(Caller("before the library's")));
}

fn assert_all_made() {
    let failed = std::mem::take(&mut *FAILED.lock().expect("no panic"));
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(MADE.load(Ordering::Relaxed), 2 * CALLS.len());
}

#[test]
#[ignore = "may end its process: run in processes of its own by the test below"]
fn ends_a_thread() {
    std::thread::spawn(use_library_between).join().expect("no panic");
    assert_all_made();
    println!("all calls were made");
}

#[test]
#[ignore = "ends its process: run in processes of its own by the test below"]
fn ends_the_process() {
    extern "C" fn tell() {
        assert_all_made();
        println!("all calls were made");
    }
    // SAFETY: the function is one of this program, and ends the process if it panics.
    assert_eq!(unsafe { libc::atexit(tell) }, 0);
    use_library_between();
    // As in `main`: the destructors of this thread run, and the process ends.
    std::process::exit(0);
}

#[test]
fn calls_in_destructors_of_thread_locals_end_no_process() {
    for test in [test_name!(ends_a_thread), test_name!(ends_the_process)] {
        let output = own_process::run_within(Duration::from_secs(120), test, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("all calls were made"),
            "{test}: {}\n{errors}",
            output.status
        );
    }
}
