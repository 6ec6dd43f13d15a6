//! The measured operations.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use coaster::framework::IFramework;
use coaster::frameworks::Native;
use coaster::tensor::SharedTensor;
use resident::ndarray::{Array2, Ix1, Ix2, Ix3, s};
use resident::{Device, Grid, In, InOut, Kernel, SmartArray, SmartView, Stream, audit};
use tracing_subscriber::layer::SubscriberExt;

use crate::coaster_device::Second;
use crate::gate::Gate;
use crate::measure::{Row, batched, compared, difference, single, turns};
use resident_benches::cube::{cube, launch_on_faces};

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
    of_valid_elements(&stream, |element| element.prefetch(&stream).expect("valid"))
}

/// The same query by `residency`, which checks every location.
fn residency_stale() -> Row {
    let stream = Device::cpu().stream();
    let device = stream.device();
    of_valid_elements(&stream, |element| {
        black_box(element.residency().on(&device));
    })
}

/// A query of single elements that are valid on the device, beside stale ones.
fn of_valid_elements(stream: &Stream, query: impl Fn(&SmartView<'_, u32, Ix1>)) -> Row {
    let array = checkered(stream);
    let places = (0..1_024).map(|turn| 2 * (turn * 7919 % 16_384));
    let views: Vec<_> = places.map(|place| array.slice(s![place + 1..place + 2])).collect();
    let mut turn = 0_usize;
    single(100, || {
        turn = (turn + 1) % views.len();
        query(black_box(&views[turn]));
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

/// A kernel that does nothing, with a number.
fn launch_empty(stream: &Stream, grid: Grid, times: usize) -> impl FnMut() {
    let bare = Kernel::<(u32,)>::new("bare").host(|_grid, _scalar| ());
    let stream = stream.clone();
    move || (0..times).for_each(|_| bare.launch_on(&stream, grid, (1,)).expect("launched"))
}

/// The time for which `launch` queues, above that of so many empty launches.
fn above_empty(
    expected_ns: usize,
    grid: Grid,
    empty: usize,
    mut launch: impl FnMut(&Stream),
) -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(expected_ns));
    let mut launch_empty = launch_empty(&stream, grid, empty);
    difference(
        || gate.time_queueing(&stream, turns, || launch(&stream)),
        || gate.time_queueing(&stream, turns, &mut launch_empty),
    )
}

fn launch_four() -> Row {
    let four: Four = Kernel::new("four").host(|_grid, _arrays| ());
    let (a, b, mut c, mut d) = (small(), small(), small(), small());
    let grid = Grid::cover(256);
    above_empty(200, grid, 1, |stream| {
        four.launch_on(stream, grid, (&a, &b, &mut c, &mut d)).expect("launched");
    })
}

fn launch_bare() -> Row {
    let (gate, stream, turns) = (Gate::new(), Device::cpu().stream(), turns(100));
    let mut launch = launch_empty(&stream, Grid::cover(256), 1);
    batched(|| gate.time_queueing(&stream, turns, &mut launch))
}

fn launch_interior() -> Row {
    let touch = Kernel::<(InOut<u8, Ix3>,)>::new("touch").host(|_grid, _cube| ());
    let mut cube = cube();
    let mut interior = cube.slice_mut(s![1..1023, 1..1023, 1..1023]);
    above_empty(1000, Grid::cover(1), 1, |stream| {
        touch.launch_on(stream, Grid::cover(1), (&mut interior,)).expect("launched");
    })
}

fn launch_faces() -> Row {
    let touch = Kernel::<(InOut<u8, Ix2>,)>::new("touch").host(|_grid, _face| ());
    let mut cube = cube();
    above_empty(5000, Grid::cover(1), 6, |stream| launch_on_faces(&touch, &mut cube, stream))
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
