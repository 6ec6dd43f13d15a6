//! Streams and failures that are gone, arguments of a launch, and threads that launch.

use std::time::Instant;

use resident::ndarray::Ix1;
use resident::{Device, Emulation, Grid, InOut, Kernel, SmartArray};

use crate::{Line, median_ns};

const GONE: &[usize] = &[1, 1_000, 100_000, 1_000_000];

pub const LINES: &[Line] = &[
    Line { name: "stream made and dropped, after n others", sizes: GONE, operation: stream },
    Line { name: "healthy synchronize, after n failures", sizes: GONE, operation: synchronize },
    Line { name: "launch with n arrays", sizes: &[1, 2, 4, 8, 16], operation: launch },
    Line { name: "launch with one array, n threads at once", sizes: &[1, 2], operation: threads },
];

fn stream(gone: usize) -> f64 {
    let device = Device::cpu();
    for _ in 0..gone {
        drop(device.new_stream().expect("a stream"));
    }
    median_ns(21, 256, |_| drop(device.new_stream().expect("a stream")))
}

/// With nothing to wait for, behind launches that failed.
fn synchronize(failures: usize) -> f64 {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let fails = Kernel::<(InOut<f32, Ix1>,)>::new("fails")
        .host(|_grid, (_xs,)| std::panic::resume_unwind(Box::new("no such value")));
    let mut array = SmartArray::<f32, Ix1>::zeros(16);
    for _ in 0..failures {
        array.fill(0.0).expect("filled");
        fails.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
        let _lost = stream.synchronize();
    }
    median_ns(21, 256, |_| stream.synchronize().expect("nothing failed since"))
}

fn launch(arrays: usize) -> f64 {
    let mut all: Vec<_> = (0..arrays).map(|_| SmartArray::<f32, Ix1>::zeros(16)).collect();
    let stream = Device::cpu().stream();
    let mut rest = all.iter_mut();
    let mut next = || rest.next().expect("as many arrays as arguments");
    macro_rules! launches {
        ($($argument:ident)+) => {{
            type Array = InOut<f32, Ix1>;
            let kernel = Kernel::<($(launches!(@ $argument Array),)+)>::new("touch")
                .host(|_grid, _arrays| ());
            $(let $argument = next();)+
            median_ns(21, 1_024, |_| {
                let arguments = ($(&mut *$argument,)+);
                kernel.launch_on(&stream, Grid::cover(1), arguments).expect("launched");
            })
        }};
        (@ $argument:ident $kind:ty) => { $kind };
    }
    match arrays {
        1 => launches!(a),
        2 => launches!(a b),
        4 => launches!(a b c d),
        8 => launches!(a b c d e f g h),
        _ => launches!(a b c d e f g h i j k l m n o p),
    }
}

/// Each thread has a stream and an array of its own. Nanoseconds for a launch of one thread.
fn threads(count: usize) -> f64 {
    const LAUNCHES: usize = 1 << 17;
    let kernel = Kernel::<(InOut<f32, Ix1>,)>::new("touch").host(|_grid, _array| ());
    let run = || {
        let stream = Device::cpu().new_stream().expect("a stream");
        let mut array = SmartArray::<f32, Ix1>::zeros(16);
        for _ in 0..LAUNCHES {
            kernel.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
        }
        stream.synchronize().expect("nothing failed");
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(run);
        }
    });
    start.elapsed().as_nanos() as f64 / LAUNCHES as f64
}
