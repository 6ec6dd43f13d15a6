//! `printf` in kernels: to `tracing` if a subscriber wants it, else to standard output; and what
//! the checker finds. The tests run in processes of their own, since a subscriber belongs to the
//! process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use resident::{Device, Grid, InOut, Out, Result, SmartArray};
use support::own_process::assert_success;
use support::{own_process, test_name};
use tracing::field::{Field, Visit};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::{checking, device, kernel, one_of};

/// The kernels of these tests but the first.
const SOURCE: &str = r#"
    extern "C" __global__ void fill(int len, int *x) {
        if (threadIdx.x < len) x[threadIdx.x] = 1;
    }
    extern "C" __global__ void count(int *x) {
        if (threadIdx.x == 0 && blockIdx.x % 16 == 3) printf("here");
        __syncthreads();
        atomicAdd(x, 1);
    }
    extern "C" __global__ void chat(unsigned *x) {
        __shared__ unsigned all[256];
        all[threadIdx.x] = x[resident::thread()];
        __syncthreads();
        if (threadIdx.x == 3) printf("block %u\n", blockIdx.x);
        __syncthreads();
        x[resident::thread()] = all[255 - threadIdx.x] + 1;
    }
"#;

/// Lets a kernel print.
fn print() -> Result<()> {
    let source = r#"
        template <int N, typename T> __global__ void greet(T *x) {
            printf("thread %d has %d\n", threadIdx.x, x[threadIdx.x]);
            if (threadIdx.x == N - 1) printf("%s", "no end of line");
        }
    "#;
    let source = resident::CudaSource::c(source).entry("greet<2, int>");
    let greet = kernel::<(InOut<i32>,)>("greeting", source);
    let mut x = SmartArray::from(vec![7, 8]);
    greet.launch_on(&device().stream(), Grid::new(1, 2), (&mut x,))?;
    assert_eq!(x.to_vec()?, [7, 8]);
    Ok(())
}

#[test]
#[ignore = "prints: run in processes of its own by the test below"]
fn prints() {
    print().expect("it runs");
}

#[test]
fn text_goes_to_standard_output() {
    let output = own_process::run(test_name!(prints), &[]);
    assert_success(&output, "prints");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("thread 0 has 7\nthread 1 has 8\nno end of line"), "{text}");
}

/// Makes a layer, and sets it as the process's subscriber.
fn subscribe<L: Layer<Registry> + Clone + Default + Send + Sync>() -> L {
    let layer = L::default();
    let subscriber = tracing_subscriber::registry().with(layer.clone());
    tracing::subscriber::set_global_default(subscriber).expect("the first");
    layer
}

/// Keeps the fields of each event of kernels.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Vec<(String, String)>>>);

impl<S: tracing::Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        if ["resident::printf", "resident::finding"].contains(&metadata.target()) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            if metadata.target() == "resident::finding" {
                fields.message = format!("{} {}", metadata.level(), fields.message);
            }
            self.0.lock().expect("no panic").push((fields.kernel, fields.message));
        }
    }
}

#[derive(Default)]
struct Fields {
    kernel: String,
    message: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "kernel" {
            self.kernel = value.to_owned();
        }
    }
}

#[test]
#[ignore = "sets the process's subscriber: run in processes of its own by the test below"]
fn prints_to_a_subscriber() {
    let keeper: Keeper = subscribe();
    print().expect("it runs");
    let kept = keeper.0.lock().expect("no panic").clone();
    let kernel = |text: &str| ("greet<2, int>".to_owned(), text.to_owned());
    let expected = ["thread 0 has 7", "thread 1 has 8", "no end of line"].map(kernel);
    assert_eq!(kept, expected);
}

#[test]
fn a_subscriber_gets_the_text_instead() {
    let output = own_process::run(test_name!(prints_to_a_subscriber), &[]);
    assert_success(&output, "prints_to_a_subscriber");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("thread 0"), "{text}");
}

#[test]
fn a_subscriber_gets_what_the_checker_finds() {
    own_process!();
    let keeper: Keeper = subscribe();
    let fill = one_of::<(i32, Out<i32>)>(SOURCE, "fill");
    let device = checking();
    let mut x = SmartArray::<i32, _>::uninit(4);
    for len in [3, 5] {
        fill.launch_on(&device.stream(), Grid::new(1, 8), (len, &mut x)).expect("queued");
        let _lost = device.synchronize();
    }
    let kept = keeper.0.lock().expect("no panic").clone();
    let starts = ["INFO kernel \"kernel\" leaves unwritten", "ERROR kernel \"kernel\" writes"];
    assert_eq!(kept.len(), starts.len(), "{kept:?}");
    for ((kernel, text), start) in kept.iter().zip(starts) {
        assert!(kernel == "kernel" && text.starts_with(start), "{text}");
    }
}

/// Uses the library where it is told what a kernel prints, and keeps what that returns.
#[derive(Clone, Default)]
struct Caller(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Caller {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::printf" {
            let other = SmartArray::<f32, _>::zeros(4);
            let run = || -> Result<f32> {
                let stream = Device::cpu().stream();
                drop(other.gpu_on(&stream)?);
                stream.synchronize()?;
                Ok(other.host()?.sum())
            };
            let outcome = run().map_or_else(|error| error.to_string(), |sum| sum.to_string());
            self.0.lock().expect("no panic").push(outcome);
        }
    }
}

/// On each thread of the machine that runs blocks, such a call is one of a body: it waits for
/// nothing.
#[test]
fn a_subscriber_may_use_the_library() {
    own_process!();
    let caller: Caller = subscribe();
    let count = one_of::<(InOut<i32>,)>(SOURCE, "count");
    let mut x = SmartArray::from(vec![0]);
    count.launch_on(&Device::cpu().stream(), Grid::new(64, 256), (&mut x,)).expect("queued");
    assert_eq!(x.to_vec().expect("it ran"), [64 * 256]);
    let outcomes = caller.0.lock().expect("no panic").clone();
    assert_eq!(outcomes.len(), 4, "{outcomes:?}");
}

/// Computes in parallel where it is told what a kernel prints, and counts how often it is told.
#[derive(Clone, Default)]
struct Parallel(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Parallel {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::printf" {
            self.0.fetch_add(1, Ordering::Relaxed);
            let nap = || std::thread::sleep(Duration::from_micros(300));
            rayon::join(nap, nap);
            (0..4).into_par_iter().for_each(|_| nap());
        }
    }
}

/// A thread of rayon's that waits for rayon runs other jobs meanwhile: no kernel's may be among
/// them.
#[test]
fn a_subscriber_may_compute_in_parallel() {
    const STREAMS: usize = 4;
    const ROUNDS: usize = 5;
    own_process!();
    let parallel: Parallel = subscribe();
    let chat = one_of::<(InOut<u32>,)>(SOURCE, "chat");
    let device = Device::cpu();
    let new_stream = |_| device.new_stream().expect("a stream");
    let streams: Vec<_> = (0..STREAMS).map(new_stream).collect();
    for _ in 0..ROUNDS {
        let start: Vec<u32> = (0..256 * 64).collect();
        let mut arrays = [(); STREAMS].map(|()| SmartArray::from(start.clone()));
        for (array, stream) in arrays.iter_mut().zip(&streams) {
            chat.launch_on(stream, Grid::new(64, 256), (array,)).expect("queued");
        }
        let expected: Vec<u32> = start.iter().map(|at| at / 256 * 256 + 256 - at % 256).collect();
        for array in &arrays {
            assert_eq!(array.to_vec().expect("it ran"), expected);
        }
    }
    assert_eq!(parallel.0.load(Ordering::Relaxed), STREAMS * ROUNDS * 64);
}

/// Where it is first told of a finding, waits for a thread that launches the same kernel and waits.
#[derive(Clone, Default)]
struct Relaunching(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>, Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Relaunching {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::finding"
            && self.1.fetch_add(1, Ordering::Relaxed) == 0
            && let Some(launch) = self.0.get()
        {
            std::thread::scope(|scope| drop(scope.spawn(launch)));
        }
    }
}

#[test]
#[ignore = "sets the process's subscriber: run in processes of its own by the test below"]
fn tells_a_subscriber_that_waits_for_another_launch() {
    let relaunching: Relaunching = subscribe();
    let fill = one_of::<(i32, Out<i32>)>(SOURCE, "fill");
    let device = checking();
    let launch = move |stream: &resident::Stream| {
        let mut x = SmartArray::<i32, _>::uninit(4);
        fill.launch_on(stream, Grid::new(1, 4), (3, &mut x)).expect("queued");
        stream.synchronize().expect("a note fails no launch");
    };
    let (other, again) = (device.new_stream().expect("a stream"), launch.clone());
    relaunching.0.set(Box::new(move || again(&other))).ok().expect("set once");
    launch(&device.stream());
    assert_eq!(relaunching.1.load(Ordering::Relaxed), 2);
}

/// The code of a checked kernel runs one launch at a time; the launch is over when a subscriber is
/// told.
#[test]
fn a_subscriber_of_findings_may_wait_for_other_launches() {
    let test = test_name!(tells_a_subscriber_that_waits_for_another_launch);
    let output = own_process::run_within(Duration::from_secs(60), test, &[]);
    assert_success(&output, "tells_a_subscriber_that_waits_for_another_launch");
}
