//! Long runs in one process: a program like a server, with short-lived streams, arrays and guards,
//! and one like a batch job, with arrays that live long and are used in parts.
//!
//! `RESIDENT_SOAK_SECONDS` sets how long each of the two runs; 10 by default. The first tenth of a
//! run warms up. In the last tenth, the process must not have more memory than then, within 2 % and
//! 1 MiB, nor 100 threads more. The time of a round is only printed, because other tests and
//! programs use the machine too.

use std::time::{Duration, Instant};

use resident::ndarray::{Ix1, Ix2, s};
use resident::{Device, Grid, In, InOut, Kernel, SmartArray, Stream};
use support::own_process::{self, assert_success};
use support::test_name;

/// The memory that an allocator may take at any time.
const SLACK_BYTES: u64 = 1 << 20;

/// The threads of streams that were dropped a moment ago. A program like a server drops thousands.
const SLACK_THREADS: u64 = 100;

fn seconds() -> u64 {
    let asked = std::env::var("RESIDENT_SOAK_SECONDS").ok();
    asked.map_or(10, |text| text.parse().expect("RESIDENT_SOAK_SECONDS is a number of seconds"))
}

/// What a process has: bytes of memory in use, and threads.
#[derive(Clone, Copy, Debug)]
struct Usage {
    memory_bytes: u64,
    threads: u64,
}

impl Usage {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).expect(name);
            let number = line.split_whitespace().nth(1).expect(name);
            number.parse().expect(name)
        };
        Self { memory_bytes: field("VmRSS:") << 10, threads: field("Threads:") }
    }
}

/// The time of the fastest of many rounds, which other programs disturb least.
fn fastest(rounds: &[Duration]) -> Duration {
    rounds.iter().copied().min().expect("a round")
}

/// Runs `round` for the time asked for, and compares the end with the end of the first tenth.
fn soak(name: &str, mut round: impl FnMut(u64)) {
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds()));
    let mut number = 0;
    let mut run_until = |end: Duration| {
        let (mut rounds, mut most) = (Vec::new(), Usage { memory_bytes: 0, threads: 0 });
        while start.elapsed() < end || rounds.is_empty() {
            let begin = Instant::now();
            round(number);
            rounds.push(begin.elapsed());
            number += 1;
            let now = Usage::now();
            most.memory_bytes = most.memory_bytes.max(now.memory_bytes);
            most.threads = most.threads.max(now.threads);
        }
        (fastest(&rounds), rounds.len(), most)
    };
    let (warm_time, _, warm) = run_until(limit / 10);
    let _ = run_until(limit * 9 / 10);
    let (time, count, last) = run_until(limit);
    println!(
        "{name}: {warm_time:?} and {warm:?} at first, {time:?} and {last:?} at last ({count})"
    );
    let memory_max = warm.memory_bytes + warm.memory_bytes / 50 + SLACK_BYTES;
    assert!(last.memory_bytes <= memory_max, "{name}: {warm:?} became {last:?}");
    assert!(last.threads <= warm.threads + SLACK_THREADS, "{name}: {warm:?} became {last:?}");
}

fn add_one() -> Kernel<(InOut<f32>,)> {
    Kernel::new("add_one").host(|_, (xs,): (&mut [f32],)| xs.iter_mut().for_each(|x| *x += 1.0))
}

/// One request: a stream of its own, an array that comes and goes, and a shared one that is read.
fn request(device: &Device, shared: &SmartArray<f32, Ix1>, kernel: &Kernel<(InOut<f32>,)>) {
    let stream = device.new_stream().expect("a stream");
    let mut array = SmartArray::from(vec![1.0_f32; 256]);
    kernel.launch_on(&stream, Grid::cover(256), (&mut array,)).expect("launched");
    drop(shared.gpu_on(&stream).expect("room"));
    drop(shared.slice(s![3..9]).gpu_on(&stream).expect("room"));
    let other = device.new_stream().expect("a stream");
    other.wait(&stream.record().expect("an event")).expect("a wait");
    kernel.launch_on(&other, Grid::cover(256), (&mut array,)).expect("launched");
    assert_eq!(array.get(7).expect("copied"), 3.0);
    assert_eq!(array.host().expect("copied").sum(), 3.0 * 256.0);
    other.synchronize().expect("nothing failed");
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn like_a_server() {
    let device = Device::cpu();
    let (shared, kernel) = (SmartArray::<f32, Ix1>::zeros(1 << 12), add_one());
    soak("like a server", |_| {
        for _ in 0..100 {
            request(&device, &shared, &kernel);
        }
    });
}

/// Long-lived arrays of a batch job.
struct Batch {
    streams: Vec<Stream>,
    matrix: SmartArray<f32, Ix2>,
    sums: SmartArray<f32, Ix1>,
    smooth: Kernel<(In<f32, Ix2>, InOut<f32>)>,
    add_one: Kernel<(InOut<f32>,)>,
}

impl Batch {
    fn new() -> Self {
        let device = Device::cpu();
        let smooth = Kernel::<(In<f32, Ix2>, InOut<f32>)>::new("smooth")
            .host(|_, (tile, sums)| sums[0] = tile.sum());
        Self {
            streams: (0..4).map(|_| device.new_stream().expect("a stream")).collect(),
            matrix: SmartArray::zeros((64, 64)),
            sums: SmartArray::zeros(64),
            smooth,
            add_one: add_one(),
        }
    }

    /// Writes rows on devices and on the host, reads overlapping tiles, fills parts, and looks.
    fn run(&mut self, round: u64) {
        for step in 0..64_usize {
            let stream = &self.streams[(step + round as usize) % 4];
            let mut row = self.matrix.slice_mut(s![step, ..]);
            self.add_one.launch_on(stream, Grid::cover(64), (&mut row,)).expect("launched");
            let top = step.saturating_sub(2);
            let tile = self.matrix.slice(s![top..(step + 3).min(64), 10..40]);
            let mut sum = self.sums.slice_mut(s![step..=step]);
            self.smooth.launch_on(stream, Grid::cover(1), (&tile, &mut sum)).expect("launched");
        }
        let column = (round % 64) as usize;
        self.matrix.slice_mut(s![.., column]).fill(round as f32).expect("filled");
        self.matrix.set((column, 3), 1.0).expect("set");
        assert_eq!(self.matrix.get((column, 3)).expect("there"), 1.0);
        self.sums.host().map(drop).expect("copied");
    }
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn like_a_batch_job() {
    let mut batch = Batch::new();
    soak("like a batch job", |round| batch.run(round));
}

/// Other tests of this program would disturb the counts, so each program runs in a process that
/// runs nothing else.
#[test]
fn long_runs_take_no_more_memory_or_threads() {
    let limit = Duration::from_secs(2 * seconds() + 60);
    for test in [test_name!(like_a_server), test_name!(like_a_batch_job)] {
        let output = own_process::run_within(limit, test, &[]);
        println!("{}", String::from_utf8_lossy(&output.stdout));
        assert_success(&output, test);
    }
}
