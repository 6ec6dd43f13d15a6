//! The programs, written with this library.

use resident::ndarray::{Array1, Ix1};
use resident::{Chain, Device, Grid, InOut, Kernel, SmartArray, Stream};

use super::kernels::{LEN, Read1, STEPS, THREADS, Touch0, Touch1, Touch4, Touch8, Touch16, kernel};

type Floats = SmartArray<f32, Ix1>;

/// A program that can be run again and again.
pub type Program = Box<dyn FnMut()>;

fn grid() -> Grid {
    Grid::new(1, THREADS)
}

/// The GPU of the free driver.
///
/// # Panics
///
/// If the driver is not loaded.
pub fn gpu() -> Device {
    resident_free_driver::load().expect("the free driver loads");
    Device::cuda(0).expect("the free driver has a device")
}

/// Arrays that are valid on the device, where this stream has read them.
fn arrays<const COUNT: usize>(stream: &Stream) -> [Floats; COUNT] {
    std::array::from_fn(|_| {
        let array = Floats::from(Array1::zeros(LEN));
        array.prefetch(stream).expect("an upload");
        stream.synchronize().expect("nothing fails");
        array
    })
}

/// A launch with arrays that only its own stream has used, or that another stream has used too.
///
/// # Panics
///
/// If there is no kernel for this number of arrays.
pub fn launch(count: usize, has_other_stream: bool) -> Program {
    let device = gpu();
    let stream = device.new_stream().expect("a stream");
    let first = if has_other_stream { device.stream() } else { stream.clone() };
    match count {
        0 => {
            let kernel: Touch0 = kernel(0);
            Box::new(move || kernel.launch_on(&stream, grid(), (7,)).expect("a launch"))
        }
        1 => {
            let (kernel, [mut a]): (Touch1, _) = (kernel(1), arrays(&first));
            Box::new(move || kernel.launch_on(&stream, grid(), (&mut a,)).expect("a launch"))
        }
        4 => {
            let (kernel, [a, b, c, mut d]): (Touch4, _) = (kernel(4), arrays(&first));
            Box::new(move || {
                kernel.launch_on(&stream, grid(), (&a, &b, &c, &mut d)).expect("a launch");
            })
        }
        8 => {
            let (kernel, [a, b, c, d, e, f, g, mut h]): (Touch8, _) = (kernel(8), arrays(&first));
            Box::new(move || {
                kernel
                    .launch_on(&stream, grid(), (&a, &b, &c, &d, &e, &f, &g, &mut h))
                    .expect("a launch");
            })
        }
        16 => launch_sixteen(stream, &first),
        _ => panic!("there is no kernel for {count} arrays"),
    }
}

fn launch_sixteen(stream: Stream, first: &Stream) -> Program {
    let (kernel, [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, mut p]): (Touch16, _) =
        (kernel(16), arrays(first));
    Box::new(move || {
        let arguments = (&a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k, &l, &m, &n, &o, &mut p);
        kernel.launch_on(&stream, grid(), arguments).expect("a launch");
    })
}

/// A chain of [`STEPS`] launches that write one array.
pub fn chain() -> Program {
    let stream = gpu().new_stream().expect("a stream");
    let (kernel, [mut a]): (Touch1, _) = (kernel(1), arrays(&stream));
    let chain = Chain::<(InOut<f32, Ix1>,)>::record("chain", |r, (a,)| {
        (0..STEPS).try_for_each(|_| r.launch(&kernel, grid(), (a.read_write(),)))
    });
    let chain = chain.expect("a chain");
    Box::new(move || chain.launch_on(&stream, (&mut a,)).expect("a replay"))
}

/// The same on the embedded device, whose body has no loop.
pub fn embedded_chain() -> Program {
    let stream = Device::cpu().new_stream().expect("a stream");
    let first = Kernel::<(InOut<f32>,)>::new("first").host(|_grid, (a,)| a[0] += 1.0);
    let mut a = Floats::from(Array1::zeros(LEN));
    let chain = Chain::<(InOut<f32, Ix1>,)>::record("chain", |r, (a,)| {
        (0..STEPS).try_for_each(|_| r.launch(&first, grid(), (a.read_write(),)))
    });
    let chain = chain.expect("a chain");
    Box::new(move || {
        chain.launch_on(&stream, (&mut a,)).expect("a replay");
        stream.synchronize().expect("no failure");
    })
}

/// A launch that writes an array, and a read of the array's first element.
pub fn launch_and_get() -> Program {
    let stream = gpu().stream();
    let (kernel, [mut a]): (Touch1, _) = (kernel(1), arrays(&stream));
    Box::new(move || {
        kernel.launch_on(&stream, grid(), (&mut a,)).expect("a launch");
        std::hint::black_box(a.get(0).expect("a number"));
    })
}

/// As [`launch_and_get`], where the launch is known to be complete before the read.
pub fn launch_wait_and_get() -> Program {
    let stream = gpu().stream();
    let (kernel, [mut a]): (Touch1, _) = (kernel(1), arrays(&stream));
    Box::new(move || {
        kernel.launch_on(&stream, grid(), (&mut a,)).expect("a launch");
        stream.synchronize().expect("no failure");
        std::hint::black_box(a.get(0).expect("a number"));
    })
}

/// An array of 16 KiB, written on the host and read by a launch.
pub fn write_and_launch() -> Program {
    let stream = gpu().stream();
    let (kernel, [mut a]): (Read1, _) = (kernel(1), arrays(&stream));
    Box::new(move || {
        a.host_mut().expect("the host's copy").fill(1.0);
        kernel.launch_on(&stream, grid(), (&a,)).expect("a launch");
    })
}
