//! The measured operations.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use coaster::framework::IFramework;
use coaster::frameworks::Native;
use coaster::tensor::SharedTensor;
use resident::ndarray::{Array2, Ix1, Ix2, Ix3, s};
use resident::{Device, Grid, In, InOut, Kernel, SmartArray, Stream, audit};
use tracing_subscriber::layer::SubscriberExt;

use crate::coaster_device::Second;
use crate::gate::Gate;
use crate::measure::{Row, batched, compared, difference, single, turns};
use resident_benches::cube::{Cube, cube};

pub type Operation = fn() -> Row;

/// Names and operations, in the order in which they are printed.
pub const ALL: &[(&str, Operation)] = &[
    ("host(), valid", host_valid),
    ("host(), valid, two threads on one array, each", host_valid_two_threads),
    ("gpu_on(), stream known as a reader", gpu_known),
    ("gpu_on(), first read on a stream", gpu_first),
    ("switch of sides without a copy", flip),
    ("create and drop an uninit array", create),
    ("slice and permuted_axes of four axes, both", view_of_four_axes),
    ("query among 16,384 stale boxes", query_stale),
    ("residency of an element among 16,384 stale boxes", residency_stale),
    ("launch with four arrays, above an empty launch", launch_four),
    ("launch without arrays, queueing only", launch_bare),
    ("launch on the interior of 1,024^3, above an empty one", launch_interior),
    ("launches on six faces of 1,024^3, above six empty ones", launch_faces),
    ("host() inside a capture, valid", host_in_capture),
    ("check whether a transfer is traced, no subscriber", trace_without_subscriber),
    ("report a transfer to a layer that counts", trace_counted),
    ("queueing a transfer", transfer),
];

/// Two views: a slice, and its axes in another order.
fn view_of_four_axes() -> Row {
    let array = SmartArray::<f32, _>::zeros((4, 6, 5, 3));
    single(30, || {
        let part = black_box(&array).slice(black_box(s![1..3, 2.., ..;2, ..]));
        black_box(part.permuted_axes(black_box([3, 1, 0, 2])));
    })
}

fn small() -> SmartArray<f32, Ix2> {
    SmartArray::from(Array2::zeros((16, 16)))
}

fn host_valid() -> Row {
    let array = small();
    let native = Native::new();
    let cpu = native.new_device(native.hardwares()).expect("the host");
    let mut tensor = SharedTensor::<f32>::new(&vec![16, 16]);
    tensor.write_only(&cpu).expect("room");
    compared(
        3,
        || {
            black_box(&*black_box(&array).host().expect("valid"));
        },
        || {
            black_box(black_box(&tensor).read(&cpu).expect("valid"));
        },
    )
}

fn host_valid_two_threads() -> Row {
    let array = small();
    let turns = turns(3);
    let barrier = Barrier::new(2);
    let batch = || {
        barrier.wait();
        let start = Instant::now();
        for _ in 0..turns {
            black_box(&*black_box(&array).host().expect("valid"));
        }
        start.elapsed().as_nanos() as f64 / turns as f64
    };
    std::thread::scope(|scope| {
        scope.spawn(|| batched(batch));
        batched(batch)
    })
}

fn gpu_known() -> Row {
    let array = small();
    let stream = Device::cpu().stream();
    drop(array.gpu_on(&stream).expect("room"));
    let mut tensor = SharedTensor::<f32>::new(&vec![16, 16]);
    tensor.write_only(&Second).expect("room");
    compared(
        6,
        || {
            black_box(black_box(&array).gpu_on(&stream).expect("valid").address());
        },
        || {
            black_box(black_box(&tensor).read(&Second).expect("valid"));
        },
    )
}

/// Each iteration makes the device's copy the newest, which clears the list of streams known as
/// readers, and then reads it. The time of the write is subtracted.
fn gpu_first() -> Row {
    let stream = Device::cpu().stream();
    let turns = turns(40);
    let mut written = small();
    let mut read = small();
    let time = |array: &mut SmartArray<f32, Ix2>, reads: bool| {
        let start = Instant::now();
        for _ in 0..turns {
            drop(array.gpu_overwrite_on(&stream).expect("room"));
            if reads {
                black_box(array.gpu_on(&stream).expect("valid").address());
            }
        }
        start.elapsed().as_nanos() as f64 / turns as f64
    };
    difference(|| time(&mut read, true), || time(&mut written, false))
}

fn flip() -> Row {
    let stream = Device::cpu().stream();
    let mut array = small();
    let native = Native::new();
    let cpu = native.new_device(native.hardwares()).expect("the host");
    let mut tensor = SharedTensor::<f32>::new(&vec![16, 16]);
    let mut turn = false;
    let mut peer_turn = false;
    compared(
        15,
        || {
            turn = !turn;
            if turn {
                black_box(array.gpu_overwrite_on(&stream).expect("room").address());
            } else {
                black_box(&*array.host_overwrite().expect("room"));
            }
        },
        || {
            peer_turn = !peer_turn;
            if peer_turn {
                black_box(tensor.write_only(&Second).expect("room"));
            } else {
                black_box(tensor.write_only(&cpu).expect("room"));
            }
        },
    )
}

fn create() -> Row {
    let native = Native::new();
    let cpu = native.new_device(native.hardwares()).expect("the host");
    compared(
        110,
        || {
            black_box(SmartArray::<f32, _>::uninit((16, 16)));
        },
        || {
            let mut tensor = SharedTensor::<f32>::new(&vec![4, 4]);
            black_box(tensor.write_only(&cpu).expect("room"));
        },
    )
}

/// Every second element of the device copy is stale. The prefetch requests valid elements, so it
/// only queries the state.
fn query_stale() -> Row {
    let stream = Device::cpu().stream();
    let array = checkered(&stream);
    let views: Vec<_> = (0..1_024)
        .map(|turn| turn * 7919 % 16_384)
        .map(|index| array.slice(s![2 * index + 1..2 * index + 2]))
        .collect();
    let mut turn = 0_usize;
    single(100, || {
        turn = (turn + 1) % views.len();
        black_box(&views[turn]).prefetch(&stream).expect("valid");
    })
}

/// The same query by `residency`, which checks every location.
fn residency_stale() -> Row {
    let stream = Device::cpu().stream();
    let device = stream.device();
    let array = checkered(&stream);
    let views: Vec<_> = (0..1_024)
        .map(|turn| turn * 7919 % 16_384)
        .map(|index| array.slice(s![2 * index + 1..2 * index + 2]))
        .collect();
    let mut turn = 0_usize;
    single(100, || {
        turn = (turn + 1) % views.len();
        black_box(black_box(&views[turn]).residency().on(&device));
    })
}

/// An array with every second element stale on the device.
fn checkered(stream: &Stream) -> SmartArray<u32, Ix1> {
    let mut array = SmartArray::from(vec![0_u32; 2 * 16_384]);
    drop(array.gpu_on(stream).expect("room"));
    for index in 0..16_384 {
        array.slice_mut(s![2 * index..2 * index + 1]).host_mut().expect("valid")[0] = 1;
    }
    array
}

type Four = Kernel<(In<f32, Ix2>, In<f32, Ix2>, InOut<f32, Ix2>, InOut<f32, Ix2>)>;

fn launch_four() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(200));
    let four: Four = Kernel::new("four").host(|_grid, _arrays| ());
    let bare = Kernel::<(u32,)>::new("bare").host(|_grid, _scalar| ());
    let (a, b, mut c, mut d) = (small(), small(), small(), small());
    difference(
        || {
            gate.time_queueing(&stream, turns, || {
                four.launch_on(&stream, Grid::cover(256), (&a, &b, &mut c, &mut d))
                    .expect("launched");
            })
        },
        || {
            gate.time_queueing(&stream, turns, || {
                bare.launch_on(&stream, Grid::cover(256), (1,)).expect("launched");
            })
        },
    )
}

fn launch_bare() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(100));
    let bare = Kernel::<(u32,)>::new("bare").host(|_grid, _scalar| ());
    batched(|| {
        gate.time_queueing(&stream, turns, || {
            bare.launch_on(&stream, Grid::cover(256), (1,)).expect("launched");
        })
    })
}

fn launch_interior() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(1000));
    let touch = Kernel::<(InOut<u8, Ix3>,)>::new("touch").host(|_grid, _cube| ());
    let bare = Kernel::<(u32,)>::new("bare").host(|_grid, _scalar| ());
    let mut cube = cube();
    let mut interior = cube.slice_mut(s![1..1023, 1..1023, 1..1023]);
    difference(
        || {
            gate.time_queueing(&stream, turns, || {
                touch.launch_on(&stream, Grid::cover(1), (&mut interior,)).expect("launched");
            })
        },
        || {
            gate.time_queueing(&stream, turns, || {
                bare.launch_on(&stream, Grid::cover(1), (1,)).expect("launched");
            })
        },
    )
}

fn launch_faces() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(5000));
    let touch = Kernel::<(InOut<u8, Ix2>,)>::new("touch").host(|_grid, _face| ());
    let bare = Kernel::<(u32,)>::new("bare").host(|_grid, _scalar| ());
    let mut cube = cube();
    let launch_all = |cube: &mut Cube| {
        let launch = |face: &mut resident::SmartViewMut<'_, u8, Ix2>| {
            touch.launch_on(&stream, Grid::cover(1), (face,)).expect("launched");
        };
        launch(&mut cube.slice_mut(s![0, .., ..]));
        launch(&mut cube.slice_mut(s![1023, .., ..]));
        launch(&mut cube.slice_mut(s![.., 0, ..]));
        launch(&mut cube.slice_mut(s![.., 1023, ..]));
        launch(&mut cube.slice_mut(s![.., .., 0]));
        launch(&mut cube.slice_mut(s![.., .., 1023]));
    };
    let six_bare =
        || (0..6).for_each(|_| bare.launch_on(&stream, Grid::cover(1), (1,)).expect("launched"));
    difference(
        || gate.time_queueing(&stream, turns, || launch_all(&mut cube)),
        || gate.time_queueing(&stream, turns, six_bare),
    )
}

fn host_in_capture() -> Row {
    let array = small();
    let (row, _report) = audit::capture(|| {
        single(3, || {
            black_box(&*black_box(&array).host().expect("valid"));
        })
    });
    row
}

/// The check for a `tracing` subscriber, which each transfer makes before it creates an event.
fn trace_without_subscriber() -> Row {
    single(30, || {
        black_box(tracing::event_enabled!(target: "resident::transfer", tracing::Level::DEBUG));
    })
}

/// A `tracing` layer that counts events and reads no field.
struct Counter(AtomicU64);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Counter {
    fn on_event(
        &self,
        _event: &tracing::Event<'_>,
        _context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn trace_counted() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(1000));
    let (mut traced, mut untraced) = (small().named("traced"), small().named("untraced"));
    let counting = tracing_subscriber::registry().with(Counter(AtomicU64::new(0)));
    let dispatch = tracing::Dispatch::new(counting);
    difference(
        || {
            tracing::dispatcher::with_default(&dispatch, || {
                gate.time_queueing(&stream, turns, || upload(&mut traced, &stream))
            })
        },
        || gate.time_queueing(&stream, turns, || upload(&mut untraced, &stream)),
    )
}

fn transfer() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(1000));
    let mut array = small();
    batched(|| gate.time_queueing(&stream, turns, || upload(&mut array, &stream)))
}

fn upload(array: &mut SmartArray<f32, Ix2>, stream: &Stream) {
    black_box(&*array.host_overwrite().expect("room"));
    array.prefetch(stream).expect("room");
}
