//! `Kernel::compare`: the body in Rust beside the one in CUDA C, on every kind of device.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use resident::audit::Implicit;
use resident::{CudaSource, GridLimits, Signature};
use support::own_process;
use support::prelude::*;

/// The kernels of this file, which are one source.
const SOURCE: &str = r#"
    extern "C" __global__ void half(const float *x, float *y) {
        y[threadIdx.x] = x[threadIdx.x] / (threadIdx.x == 5 ? 3 : 2);
    }
    extern "C" __global__ void drifting(
        resident::View2<const unsigned char> marks, resident::View2<float> values
    ) {
        long long i = resident::thread();
        if (i < marks.size()) values.at(i) += 1.0f + marks.at(i);
    }
    extern "C" __global__ void increment(unsigned len, float *x) {
        long long i = resident::thread();
        if (i < len) x[i] += 1;
    }
    extern "C" __global__ void note(unsigned long long threads, unsigned long long *x) {
        if (resident::thread() == 0) *x = threads;
    }
    extern "C" __global__ void copy(unsigned len, const float *x, float *y) {
        long long i = resident::thread();
        if (i < len) y[i] = x[i];
    }
    extern "C" __global__ void accumulate(
        const unsigned *x, unsigned *y, unsigned long long len
    ) {
        long long i = resident::thread();
        if (i < len) y[i] += x[i];
    }
    extern "C" __global__ void add_sized(unsigned k, resident::View2<unsigned> x) {
        long long i = resident::thread();
        if (i < x.size()) x.at(i) += k;
    }
"#;

/// Adds the body in CUDA C of the kernel's name.
fn with_cuda<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    let source = CudaSource::c(SOURCE).entry(kernel.name());
    // SAFETY: the sources access elements below the length that tests pass, or that the view has.
    unsafe { kernel.cuda(source) }
}

/// Devices that run the body in Rust, and one that prefers CUDA C.
fn devices() -> [Device; 4] {
    let emulations =
        [Emulation::new(), Emulation::new().seed(5), Emulation::new().prefer_cuda(true)];
    let [plain, seeded, preferring] = emulations.map(Device::emulated);
    [Device::cpu(), plain, seeded, preferring]
}

fn half() -> Kernel<(In<f32>, Out<f32>)> {
    let half = Kernel::<(In<f32>, Out<f32>)>::new("half");
    with_cuda(half.host(|_, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y = x / 2.0)))
}

fn increment() -> Kernel<(u32, InOut<f32>)> {
    let increment = Kernel::<(u32, InOut<f32>)>::new("increment");
    with_cuda(increment.host_each(|_, (_, x)| *x += 1.0))
}

#[test]
fn a_body_is_never_compared_with_itself() -> Result<()> {
    for device in devices() {
        let (x, mut y) =
            (SmartArray::<f32, _>::ones(8), SmartArray::<f32, _>::uninit(8).named("y"));
        let found = half().compare(&device, Grid::new(1, 8), (&x, &mut y), 1e-6)?;
        let text = found.expect("a half is not a third").to_string();
        let said = "kernel \"half\" gives \"y\" (parameter 1) two values at [5]: 0.5 by its host \
                    body, 0.3333333432674408 on cpu:";
        assert!(text.starts_with(said), "{text}");
    }
    Ok(())
}

#[test]
#[ignore = "needs variables: run in processes of its own by the test below"]
fn bodies_differ_here() {
    a_body_is_never_compared_with_itself().expect("both run");
}

#[test]
fn variables_change_nothing_of_it() {
    let test = support::test_name!(bodies_differ_here);
    for variable in [("RESIDENT_CPU_KERNELS", "cuda"), ("RESIDENT_SANITIZE", "1")] {
        assert_success(&own_process::run(test, &[variable]), test);
    }
}

#[test]
fn a_kernel_with_one_body_is_an_error_that_names_the_other() {
    let new = || Kernel::<(u32, InOut<f32>)>::new("increment");
    let kernels = [
        (new().host(|_, _| ()), "`.cuda(..)`", "none for cpu:"),
        (with_cuda(new()), "`.host(..)`", "none for the host;"),
        (new(), "`.host(..)`", "none for the host;"),
    ];
    for device in devices() {
        for (kernel, method, place) in &kernels {
            let mut x = SmartArray::<f32, _>::ones(8);
            let refused = kernel.compare(&device, 8, (8, &mut x), 0.0);
            let Err(error @ Error::NoKernelBody { .. }) = refused else { panic!("{refused:?}") };
            let text = error.to_string();
            assert!(text.contains(&format!("add one with {method}")), "{text}");
            assert!(text.contains(place), "{text}");
        }
    }
}

/// In CUDA C marked elements become larger.
fn drifting() -> Kernel<(In<u8, Ix2>, InOut<f32, Ix2>)> {
    let drifting = Kernel::<(In<u8, Ix2>, InOut<f32, Ix2>)>::new("drifting");
    with_cuda(drifting.host_each(|_, (_, value)| *value += 1.0))
}

#[test]
fn the_first_difference_in_index_order_is_reported_and_the_arguments_stay() -> Result<()> {
    let device = lab();
    let mut marks = Array2::<u8>::zeros((3, 4));
    marks[[1, 2]] = 1;
    marks[[2, 0]] = 1;
    let marks = SmartArray::from(marks);
    // A column-major array, and a part of it with a step. The differing element must be reported by
    // its index in the argument.
    let mut values = SmartArray::from(Array2::<f32>::zeros((3, 8).f())).named("values");
    let mut part = values.slice_mut(s![.., ..;2]);
    let found = drifting().compare(&device, Grid::cover(12), (&marks, &mut part), 0.4)?;
    let difference = found.expect("they differ");
    assert_eq!(
        (difference.parameter, &*difference.index, difference.count, difference.len),
        (1, &[1, 2][..], 2, 12)
    );
    assert_eq!(
        (&*difference.array, &*difference.host, &*difference.device),
        ("\"values\"", "1", "2")
    );
    assert_eq!(
        drifting().compare(&device, Grid::cover(12), (&marks, &mut part), 0.5)?,
        None,
        "within the tolerance"
    );
    assert_eq!(values.host()?.sum(), 0.0);
    assert_eq!(values.traffic(), Traffic::default(), "only copies of them moved");
    Ok(())
}

#[test]
fn it_refuses_what_a_launch_refuses() {
    let (x, mut y) = (SmartArray::<f32, _>::uninit(3), SmartArray::<f32, _>::uninit(4));
    let copy = Kernel::<(u32, In<f32>, Out<f32>)>::new("copy")
        .require("one length", |_grid, (_, x, y)| x.len() == y.len());
    let copy = with_cuda(copy.host(|_grid, (_, x, y)| y.copy_from_slice(x)));
    let compare = |y: &mut SmartArray<f32, Ix1>, grid| copy.compare(&lab(), grid, (3, &x, y), 0.0);
    assert!(matches!(compare(&mut y, Grid::cover(3)), Err(Error::Requirement { .. })));
    assert!(matches!(
        compare(&mut SmartArray::uninit(3), Grid::cover(3)),
        Err(Error::Uninitialised { .. })
    ));
    assert!(matches!(compare(&mut y, Grid::new(0, 1)), Err(Error::Grid { .. })));
}

#[test]
fn grids_are_those_of_the_device() -> Result<()> {
    let note = Kernel::<(u64, InOut<u64>)>::new("note")
        .require("all threads", |grid, (threads, _)| {
            grid.blocks().count() * grid.threads().count() == threads || threads == 0
        })
        .host(|_grid, (threads, xs)| xs[0] = threads);
    let (note, mut array) = (with_cuda(note), SmartArray::<u64, _>::zeros(1));
    assert_eq!(note.compare(&lab(), (9, 1), (16 * 32, &mut array), 0.0)?, None);
    let too_large = [
        Grid::new(1, 1025),
        Grid::new(1, (64, 32)),
        Grid::new(1, (1, 1, 65)),
        Grid::new(1 << 31, 32),
        Grid::new((1, 65_536), 32),
        Grid::new((1, 1, 65_536), 32),
        Grid::new(1, 32).shared_bytes(232_449),
        Grid::cover_2d((10, 10), (64, 64)),
    ];
    for grid in too_large {
        let compared = note.compare(&lab(), grid, (0, &mut array), 0.0);
        assert!(matches!(compared, Err(Error::Grid { .. })), "{compared:?}");
    }
    let limits = GridLimits { block_threads_max: 64, ..GridLimits::default() };
    let small = Device::emulated(Emulation::new().limits(limits));
    let compared = note.compare(&small, Grid::new(1, 65), (0, &mut array), 0.0);
    assert!(matches!(compared, Err(Error::Grid { .. })), "{compared:?}");
    assert_eq!(array.traffic().to_device.count, 0);
    Ok(())
}

#[test]
fn its_copies_are_never_denied() -> Result<()> {
    let _guard = audit::deny(Implicit::ALL);
    let mut array = SmartArray::from(vec![1.0; 10]);
    assert_eq!(increment().compare(&lab(), Grid::cover(10), (10, &mut array), 0.0)?, None);
    Ok(())
}

#[test]
fn arguments_of_each_kind_are_compared_on_copies() -> Result<()> {
    let device = Device::cpu();
    let mut line = DeviceArray::full_on(&device.stream(), 3, 2.0_f32)?;
    assert_eq!(increment().compare(&device, Grid::cover(3), (3, &mut line), 0.0)?, None);
    assert_eq!(line.copy_to_host()?.to_vec(), [2.0; 3]);
    let accumulate =
        Kernel::<(In<u32>, InOut<u32>, u64)>::new("accumulate").host(|_, (x, y, _)| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x));
        });
    let numbers = || SmartArray::from((0..1000).collect::<Vec<u32>>());
    let (x, mut y) = (numbers(), numbers());
    let arguments = (&x, &mut y, 1000);
    assert_eq!(with_cuda(accumulate).compare(&device, Grid::cover(1000), arguments, 0.0)?, None);
    assert_eq!(*y.host()?, Array1::from_iter(0..1000), "the arguments are unchanged");
    let add_sized = Kernel::<(u32, InOut<u32, Ix2>)>::new("add_sized")
        .host(|_, (k, mut x)| x.mapv_inplace(|x| x.wrapping_add(k)));
    let mut matrix = SmartArray::from(Array2::from_shape_fn((12, 34), |(i, j)| (i + j) as u32));
    let arguments = (3, &mut matrix.slice_mut(s![..;2, ..;-3]));
    assert_eq!(with_cuda(add_sized).compare(&device, Grid::cover(6 * 12), arguments, 0.0)?, None);
    Ok(())
}

/// Compares when it drops.
struct Comparing;

static COMPARED: AtomicU32 = AtomicU32::new(0);

impl Drop for Comparing {
    fn drop(&mut self) {
        let mut array = SmartArray::from(vec![1.0; 10]);
        let compared = increment().compare(&Device::cpu(), 10, (10, &mut array), 0.0);
        if compared.is_ok_and(|difference| difference.is_none()) {
            COMPARED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The library's own thread-locals may be destroyed before, or may be made anew.
#[test]
fn it_works_in_destructors_of_thread_locals() {
    thread_local! {
        static EARLY: RefCell<Option<Comparing>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<Comparing>> = const { RefCell::new(None) };
    }
    increment().prepare(&Device::cpu()).expect("it compiles");
    let thread = std::thread::spawn(|| {
        EARLY.set(Some(Comparing));
        drop(increment().compare(&Device::cpu(), 10, (10, &mut SmartArray::ones(10)), 0.0));
        LATE.set(Some(Comparing));
    });
    thread.join().expect("it ends");
    assert_eq!(COMPARED.load(Ordering::Relaxed), 2);
}
